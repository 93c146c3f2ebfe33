"""Times in the prepared rows are those of the preparation, even if that was just before the run."""

from datetime import UTC, datetime
from types import SimpleNamespace

from isolang.harm.keys import Canonical, Ignoring, is_equal
from isolang.harm.outcome import RunOutcome
from isolang.harm.state import PreparedTable

BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()
PREPARED = "2026-01-02 03:04:05.5+00"


def items(read_at, window):
    """The parts of the outcome of a run that counted a reader of a post, and noted when."""
    table = PreparedTable(oid=1, schema="public", plain="post", columns=("id", "at", "read_at"))
    state = SimpleNamespace(
        tables={"post": table}, rows={"post": [("1", PREPARED, None)]}, times=None,
        read_at=BEGIN + 1, is_ignored=lambda *_: False,
    )  # fmt: skip
    outcome = RunOutcome(rows={"post": [("1", PREPARED, read_at)]}, answers={}, window=window)
    return Canonical(state, outcome, Ignoring(), ()).items


def test_a_time_of_the_preparation_is_none_of_the_run():
    """The clocks of two machines may differ a little, so it may be within the first run."""
    early = items("2026-01-02 03:04:06.5+00", (BEGIN + 1, BEGIN + 2))
    late = items("2026-01-02 03:05:05.5+00", (BEGIN + 60, BEGIN + 61))
    assert is_equal(early, late)
    assert not is_equal(early, items("2025-01-01 00:00:00+00", (BEGIN + 60, BEGIN + 61)))
