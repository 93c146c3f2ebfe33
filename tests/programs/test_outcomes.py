"""The table of outcomes and levels."""

from __future__ import annotations

from isolang.programs.outcomes import file_name, outcomes, standing_of_verdict
from isolang.programs.syntax import parse_program
from isolang.verdict import Unknown

LEVELS = ("pl-1", "si", "ser")


def test_what_is_not_decided_is_unknown() -> None:
    """A level whose verdicts are unknown neither allows nor forbids what the program asks about."""
    program = parse_program("a = r(x) w(x, 1) || b = r(x) w(x, 2)\nexists a = 0 and b = 0")
    table = outcomes(program, LEVELS, timeout=1e-7)
    assert all(isinstance(v, Unknown) for one in table.outcomes for v in one.verdicts)
    assert not table.decided
    assert table.standing_of(program.targets[0], 0) == "unknown"


def test_a_value_that_is_initial_and_written() -> None:
    """A read of 0, which is the initial value and was written, may have returned either.

    Its history says so, so that the third transaction sees the second although x is 0 again.
    """
    program = parse_program("w(x, 1) -> w(x, 0) w(y, 1) || a = r(y) b = r(x)")
    table = outcomes(program, LEVELS)
    (one,) = [row for row in table.outcomes if row.reads == {"a": 1, "b": 0}]
    assert b':r-in "x" [nil 0]' in one.edn
    assert [standing_of_verdict(verdict) for verdict in one.verdicts] == ["allowed"] * 3
    (other,) = [row for row in table.outcomes if row.reads == {"a": 1, "b": 1}]
    assert [standing_of_verdict(verdict) for verdict in other.verdicts] == [
        "allowed",
        "forbidden",
        "forbidden",
    ]


def test_a_read_of_the_own_write_says_its_value() -> None:
    """Also where that is the initial one: what it returned is no question."""
    table = outcomes(parse_program("w(x, 0) r(x)"), LEVELS[:1])
    assert b'[[:w "x" 0] [:r "x" 0]]' in table.outcomes[0].edn


def test_reads_without_a_name() -> None:
    """They are named by transaction and key, and by their place if they are several of one key."""
    table = outcomes(parse_program("r(x) r(x) c = r(y) || w(x, 1)"), LEVELS[:1])
    assert table.reads == ("T1.x", "T1.x.2", "c")


def test_an_aborted_transaction() -> None:
    """What it wrote is seen by nobody at SI, and its number is in the table."""
    program = parse_program("a = r(x) if a = 0 { w(x, 1) abort } || b = r(x)")
    table = outcomes(program, LEVELS)
    assert [(row.reads, row.aborted) for row in table.outcomes] == [
        ({"a": 0, "b": 0}, (1,)),
        ({"a": 0, "b": 1}, (1,)),
    ]
    assert [standing_of_verdict(row.verdicts[1]) for row in table.outcomes] == [
        "allowed",
        "forbidden",
    ]


def test_files_of_levels() -> None:
    """The name of a level's file cannot lead out of the folder."""
    assert file_name("../../own level.iso") == "own-level"
    assert file_name("si") == "si"
    assert file_name("..") == "--"
