"""The schedules in which one call is held while others run."""

from isolang.court.case import parse_case
from isolang.court.schedules import CallSchedule, serial_orders, serial_schedule, split_schedules
from isolang.court.words import script_lines
from isolang.observe.wire.holds import (
    Turn,
    TurnStatement,
    commits_at_once,
    released_early,
    sent_together,
    stops_of,
)


def turns(*kinds, call=1):
    """The turns of a call, each with the kinds of its statements."""
    return [
        Turn(call, place, 0, [TurnStatement(kind, kind.upper()) for kind in some.split()])
        for place, some in enumerate(kinds)
    ]


def test_a_call_is_held_after_each_statement_that_reads_or_writes():
    """Before COMMIT, too, but not after BEGIN, and not when it has ended."""
    assert [*stops_of(turns("", "quiet", "begin", "select", "update", "commit", ""))] == [4, 5]
    assert [*stops_of(turns("begin select", "commit"))] == [1]
    assert [*stops_of(turns("select", "update"))] == [1]
    assert [*stops_of(turns("update"))] == []
    two = turns("begin", "select", "commit", "begin", "update", "commit")
    assert [*stops_of(two)] == [2, 3, 5]


def test_a_call_is_held_after_it_releases_locks():
    """Another call need not wait any more, although the first one has not committed."""
    assert [*stops_of(turns("begin select", "rollback", "begin update", "commit"))] == [1, 2, 3]
    assert [*stops_of(turns("begin", "savepoint", "select", "back", "update", "commit"))] == [
        3, 4, 5,
    ]  # fmt: skip
    locking = turns("quiet", "begin select", "quiet", "commit")
    locking[2].executed = 1
    assert ([*stops_of(locking)], released_early(locking)) == ([2], [])
    locking[2].statements[0] = TurnStatement("quiet", "SELECT pg_advisory_unlock(7)")
    assert [*stops_of(locking)] == [2, 3]
    assert released_early(locking) == ["SELECT pg_advisory_unlock(7)"]
    locking[2].executed = 0  # after COMMIT
    assert released_early(locking) == []


def test_a_call_cannot_be_held_between_statements_of_a_message():
    """Only what reads or writes counts."""
    assert sent_together(turns("begin level select", "update commit")) == []
    assert sent_together(turns("begin", "select update")) == ["UPDATE"]


def test_a_write_that_commits_at_once_cannot_be_held():
    """In autocommit, or with COMMIT in the same message. Plain reads lock nothing."""
    apart = turns("begin", "update", "commit")
    for place, executed in enumerate((0, 0, 1)):
        apart[place].executed = executed
    assert commits_at_once(apart) == []
    assert commits_at_once(turns("select", "update")) == ["UPDATE"]
    assert commits_at_once(turns("begin insert commit", "quiet")) == ["INSERT"]
    assert commits_at_once(turns("select", "select", "")) == []
    locking = turns("select")
    locking[0].statements[0] = TurnStatement("select", "SELECT 1 FROM t FOR NO KEY UPDATE")
    assert commits_at_once(locking) == ["SELECT 1 FROM t FOR NO KEY UPDATE"]


def test_all_schedules_of_two_calls():
    """Each call is held at each stop, while the other one runs."""
    schedules = [*split_schedules(2, lambda before, call: [1, 2] if not before else [9])]
    assert schedules == [
        CallSchedule(call, stop, (1 - call,)) for call in (0, 1) for stop in (1, 2)
    ]


def test_all_schedules_of_three_calls():
    """While one call is held, one or two others run; or one runs before."""
    schedules = [*split_schedules(3, lambda before, call: [1])]
    assert len(schedules) == len(set(schedules)) == 6 + 6 + 6
    assert {len(s.between) for s in schedules} == {1, 2}
    assert sum(bool(s.before) for s in schedules) == 6


def test_recorded_orders():
    """All orders of three calls; of five, one that begins with each."""
    assert len(serial_orders(3)) == 6
    assert sorted(order[0] for order in serial_orders(5)) == [0, 1, 2, 3, 4]
    assert serial_schedule((2, 0, 1)) == CallSchedule(1, before=(2, 0))


class Played:
    """What two calls sent."""

    schedule = CallSchedule(0, 2, (1,))
    waited = ()
    turns = (
        *turns("begin", "select"),
        *turns("update", call=2),
        *turns("commit"),
    )


def test_the_script_says_where_a_call_was_held():
    """After its second turn, until the other one had ended."""
    case = parse_case('calls = ["echo a", "echo bob"]', "x")
    assert [*script_lines(case, Played())] == [
        "echo a    BEGIN",
        "echo a    SELECT",
        "          -- held until echo bob ended",
        "echo bob  UPDATE",
        "echo a    COMMIT",
    ]
