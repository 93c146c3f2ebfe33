"""What a comparison takes is counted, so that equal questions have equal answers."""

import time

import pytest

from isolang.comparison.effort import Effort
from isolang.comparison.normal import normal
from isolang.comparison.separate import Bounds, Separator, scope_of
from isolang.language.load import load_spec


def _takes(conflicts: int) -> bool:
    """Whether so many conflicts tell SI from SER."""
    si, ser = normal(load_spec("si")), normal(load_spec("ser"))
    separator = Separator(ser, scope_of((si, ser), Bounds(), 3))
    try:
        assert separator.smallest(si, Effort(conflicts)) is not None
    except TimeoutError:
        return False
    return True


@pytest.mark.slow
def test_the_same_number_of_conflicts_is_enough_on_a_slow_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A clock that runs a thousand times as fast changes nothing unless the user names seconds."""
    enough = [_takes(conflicts) for conflicts in (10, 100, 1000, 10_000)]
    assert (enough[0], enough[-1]) == (False, True)
    clock = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: clock() * 1000)
    assert [_takes(conflicts) for conflicts in (10, 100, 1000, 10_000)] == enough


def _ask(separator: Separator, effort: Effort, *, times: int) -> None:
    level = normal(load_spec("si"))
    for _ in range(times):
        assert separator.find(level, effort) is None


def test_each_question_has_an_effort_of_its_own() -> None:
    """What the first of two questions took does not shorten the second."""
    effort = Effort(40)
    spent = effort.for_next()
    ser = normal(load_spec("ser"))
    separator = Separator(ser, scope_of((ser,), Bounds(), 1))
    for _ in range(2):
        _ask(separator, spent, times=1)
        with pytest.raises(TimeoutError):
            _ask(separator, spent, times=10)
        spent = effort.for_next()


def test_no_seconds_are_left_where_none_were_given() -> None:
    """Seconds that the user names end a search that counts would go on with."""
    si, ser = normal(load_spec("si")), normal(load_spec("ser"))
    separator = Separator(ser, scope_of((si, ser), Bounds(), 2))
    with pytest.raises(TimeoutError):
        separator.find(si, Effort(10**9, seconds=0.0))
