import pytest
from browser import open_page
from plmcore.files import page


def test_texts_cannot_become_markup():
    assert "<i>" not in page.page("<i>", "")
    data = page.embedded({"text": "</script><script>alert(1)</script>"}, "data")
    assert data.count("<script") == data.count("</script>") == 1


def test_a_file_is_whole_or_absent(tmp_path):
    page.write(tmp_path / "a.html", "page \ud800")  # half of a character, from a model that stops early
    assert (tmp_path / "a.html").read_text() == "page ?"
    with pytest.raises(AttributeError):
        page.write(tmp_path / "a.html", None)
    assert [p.name for p in tmp_path.iterdir()] == ["a.html"] and (
        tmp_path / "a.html"
    ).read_text() == "page ?"


@pytest.mark.browser
@pytest.mark.parametrize(
    "body, script, said",
    [
        ("", "nothing()", "nothing is not defined"),
        ('<img src="http://example.com/a.png">', "", "Content Security Policy"),
        ("", "fetch('http://example.com')", "Content Security Policy"),
    ],
)
def test_what_a_page_must_not_do_is_seen(tmp_path, body, script, said):
    """The tests of other pages look for nothing on the console: this shows that there would be something."""
    page.write(tmp_path / "a.html", page.page("broken", body, script=script))
    assert any(said in line for line in open_page(tmp_path / "a.html", tmp_path / "profile").console)
