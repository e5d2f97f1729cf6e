"""Names of drawers: each stands for a function that is there."""

import inspect

import plmcore  # noqa: F401  # the face says who draws
import pytest
from plmcore.files import pages


@pytest.mark.parametrize("name", ["attention", "search"])
def test_every_name_is_a_function_of_a_path(name):
    assert next(iter(inspect.signature(pages.drawer(name)).parameters)) == "path"


def test_these_are_all():
    assert sorted(pages.DRAWERS) == ["attention", "search"]
