import threading

import plmcore as plm
import pytest


def draw():
    return plm.rand(3).numpy().tolist()


def test_a_generator_draws_what_a_seed_draws_and_leaves_the_threads_own_alone():
    plm.seed(5)
    want, own = draw(), plm.random_state()
    with plm.Generator(5):
        assert draw() == want
        assert plm.random_state() == [5, 3]
    assert plm.random_state() == own


def test_entered_again_it_goes_on():
    plm.seed(5)
    want = [draw(), draw()]
    generator = plm.Generator(5)
    found = []
    for _ in range(2):
        with generator:
            found.append(draw())
    assert found == want and repr(generator) == "Generator(seed=5, offset=6)"
    with plm.Generator(5, 3):
        assert draw() == want[1]


def test_scopes_nest_and_end_with_errors():
    plm.seed(1)
    before = plm.random_state()
    with pytest.raises(KeyError), plm.Generator(2), plm.Generator(3):
        plm.seed(4)
        raise KeyError
    assert plm.random_state() == before


def test_one_user_at_a_time():
    generator = plm.Generator(3)
    with (
        generator,
        pytest.raises(plm.ArgumentError, match=r"Generator\(seed=3, offset=0\) is in use"),
        generator,
    ):
        pass
    with generator:
        pass


def test_seeds_belong_to_threads():
    plm.seed(5)
    before, found = plm.random_state(), []

    def work():
        found.append(plm.random_state())  # as in a new process
        plm.seed(9)
        found.append(draw())

    for _ in range(2):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert found[0] == [0, 0] and found[:2] == found[2:] and plm.random_state() == before
