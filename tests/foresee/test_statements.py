"""What predictions and templates do with the statements and locks that a recording notes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from foresee.agreement import levels_of
from foresee.by_schedule import edn, possible, predicted, runs
from foresee.interleaved import always_serializable, random_program
from foresee.interleaved import edn as as_recorded

import isolang
from isolang.foresee.decide import decide
from isolang.foresee.extract import extract, shown
from isolang.foresee.predict import WORK, predict
from isolang.foresee.templates import templates
from isolang.history import History
from isolang.limits import Work
from isolang.programs.syntax import parse_templates

READ_COMMITTED, REPEATABLE_READ = "postgresql-read-committed", "postgresql-repeatable-read"


def read(folder: Path, text: str) -> History:
    path = folder / "history.edn"
    path.write_text(text, encoding="utf-8")
    return isolang.load_history(path)


def searched(history: History, at: str, *, b2: bool = False) -> bool:
    """Whether the search predicts something by one stranger, or by either rule."""
    levels = levels_of(at)
    search = levels.search(levels.run(history), Work(WORK), {})
    search.one_stranger()
    if b2 and not search.found:
        search.same_statements()
    return bool(search.found)


@pytest.mark.slow
@pytest.mark.parametrize("at", [REPEATABLE_READ, READ_COMMITTED])
def test_the_search_predicts_what_schedules_with_locks_do(at: str, tmp_path: Path) -> None:
    """Nothing is missed, and nothing is extra; without the statements, much would be extra."""
    yes = extra = 0
    for n, count in ((3, 100), (4, 350), (5, 40)):
        for executed, run in runs(seed=n, n=n, count=count):
            text = edn(executed, run)
            expected = predicted(executed, run, whole_snapshot=at == REPEATABLE_READ)
            assert searched(read(tmp_path, text), at) == expected, text
            if not expected:
                plain = "".join(
                    line[: line.index(", :statements")] + "}" for line in text.split("\n")[:-1]
                )
                extra += searched(read(tmp_path, plain), at)
            yes += expected
    assert min(yes, extra) > 10


@pytest.mark.slow
@pytest.mark.parametrize("at", [REPEATABLE_READ, READ_COMMITTED])
def test_the_same_statements_in_another_order_respect_locks(at: str, tmp_path: Path) -> None:
    """Nothing is missed, and nothing is extra, if everybody may read other values."""
    yes = 0
    for n, count in ((3, 150), (4, 100)):
        for executed, run in runs(seed=n + 77, n=n, count=count):
            text = edn(executed, run)
            expected = possible(executed, run, whole_snapshot=at == REPEATABLE_READ)
            assert searched(read(tmp_path, text), at, b2=True) == expected, text
            yes += expected
    assert yes > 5


SKEW = """
{:process 0, :type :ok, :value [[:r "a/1" nil] [:r "b/1" nil] [:w "a/1" 1]], :statements %s}
{:process 1, :type :ok, :value [[:r "a/1" 1] [:r "b/1" nil] [:w "b/1" 2]], :statements %s}
"""


@pytest.mark.parametrize(
    ("locks", "found"),
    [
        (["", ""], True),
        ([" for update", " for update"], False),
        ([" for share", " for share"], False),
        (["", " for share"], True),
        ([" for update", ""], True),
        ([" for no key update", " for no key update"], False),
        ([" for key share", " for key share"], True),
        ([" holding advisory/7", " holding advisory/7"], False),
        ([" holding advisory/7", " holding advisory/8 table/t advisory/7:shared"], False),
        ([" holding advisory/7:shared", " holding advisory/7:shared"], True),
        ([" holding advisory/7", " holding advisory/8"], True),
        ([" holding advisory/7", ""], True),
    ],
)
@pytest.mark.parametrize("at", [REPEATABLE_READ, READ_COMMITTED])
def test_a_write_skew_with_locks(at: str, locks: list[str], found: bool, tmp_path: Path) -> None:
    """A lock in one of them is not enough: the other one may read first, and end last."""
    kept = [lock * lock.startswith(" holding") for lock in locks]
    noted = [f'["1{a}" "2{a}" "3{b}"]' for a, b in zip(locks, kept, strict=True)]
    predictions = predict(read(tmp_path, SKEW % tuple(noted)), at)
    assert predictions.outcome == ("found" if found else "nothing found")


def test_the_rows_of_one_statement_are_read_together(tmp_path: Path) -> None:
    """At READ COMMITTED, others come between two statements, but not within one."""
    text = (
        '{:process 0, :type :ok, :value [[:w "a/1" 1] [:w "b/1" 1]], :statements ["1" "2"]}\n'
        '{:process 1, :type :ok, :value [[:r "a/1" 1] [:r "b/1" 1]], :statements ["1" "%s"]}\n'
    )
    assert predict(read(tmp_path, text % "2"), READ_COMMITTED).outcome == "found"
    assert predict(read(tmp_path, text % "1"), READ_COMMITTED).outcome == "nothing found"


@pytest.mark.parametrize("writer", ["", " for share", " for update"])
@pytest.mark.parametrize("reader", ["", " for share", " for update"])
def test_only_locks_that_conflict_make_others_wait(
    reader: str, writer: str, tmp_path: Path
) -> None:
    """FOR SHARE lets others read FOR SHARE, and nobody waits to read without a lock."""
    text = (
        '{:process 0, :type :ok, :value [[:r "a/1" nil] [:w "b/1" 1] [:w "c/1" 1]], '
        f':statements ["1{writer}" "2" "3"]}}\n'
        '{:process 1, :type :ok, :value [[:r "a/1" nil] [:r "b/1" 1] [:r "c/1" 1]], '
        f':statements ["1{reader}" "2" "3"]}}\n'
    )
    waits = bool(reader and writer) and " for update" in (reader, writer)
    outcome = predict(read(tmp_path, text), READ_COMMITTED).outcome
    assert outcome == ("nothing found" if waits else "found")


@pytest.mark.parametrize(("kept", "found"), [("", True), (" holding advisory/7", False)])
def test_a_lock_that_is_released_before_the_end(kept: str, found: bool, tmp_path: Path) -> None:
    """pg_advisory_unlock lets others run before the transaction ends, and what it read be old."""
    lock = " holding advisory/7"
    noted = f'["1{lock}" "2{kept}" "3{kept}"]', f'["1{lock}" "2{lock}" "3{lock}"]'
    predictions = predict(read(tmp_path, SKEW % noted), READ_COMMITTED)
    assert predictions.outcome == ("found" if found else "nothing found")


def test_library_levels_know_no_locks(tmp_path: Path) -> None:
    """At si, a database may or may not lock."""
    noted = ('["1 for update" "2 for update" "3"]',) * 2
    assert predict(read(tmp_path, SKEW % noted), "si").outcome == "found"


@pytest.mark.parametrize(
    ("ops", "statements", "expected"),
    [
        ('[:r "t/1" nil] [:w "t/1" 1]', '["1" "1"]', "u(t[t1], 0)"),
        ('[:r "t/1" nil] [:w "t/1" 1]', '["1" "2"]', "r(t[t1]) w(t[t1], 0)"),
        ('[:r "t/1" nil] [:w "t/1" 1]', '["" ""]', "r(t[t1]) w(t[t1], 0)"),
        ('[:r "t/1" nil] [:w "t/2" 1]', '["1" "1"]', "r(t[t1]) w(t[t2], 0)"),
        ('[:r "t/1" nil] [:w "t/1" 1]', '["1 for update" "3"]', "u(t[t1], 0) w(t[t1], 0)"),
        ('[:r "t/1" nil] [:w "t/1" 1]', '["1 for share" "3"]', "u(t[t1], 0) w(t[t1], 0)"),
        ('[:r "t/1" nil] [:w "t/2" 1]', '["1 for update" "3"]', "r(t[t1]) w(t[t2], 0)"),
        (
            '[:r "t/1" nil] [:r "t/2" nil] [:w "t/1" 1] [:w "t/2" 1] [:r "t/1" 1]',
            '["1" "1" "1" "1" "2 for update"]',
            "u(t[t1], 0) u(t[t2], 0) r(t[t1])",
        ),
        (
            '[:r "t/1" nil] [:r "t/1" nil] [:w "t/1" 1]',
            '["1" "2" "2"]',
            "r(t[t1]) u(t[t1], 0)",
        ),
    ],
)
def test_templates_have_updates(ops: str, statements: str, expected: str, tmp_path: Path) -> None:
    """A read and the write of its row are an update by one statement, or behind a lock."""
    text = f"{{:process 0, :type :ok, :value [{ops}], :statements {statements}}}\n"
    extracted = extract(read(tmp_path, text)).templates
    (line,) = shown(extracted)
    assert line.partition(") ")[2] == expected
    again = templates(parse_templates(line))
    for level in ("mvrc", "si"):
        one, other = (decide(of, dict.fromkeys(of.programs, level)) for of in (extracted, again))
        assert one.standing == other.standing


@pytest.mark.slow
@pytest.mark.parametrize("level", ["mvrc", "si"])
def test_locks_before_writes_are_updates(level: str, tmp_path: Path) -> None:
    """Robust programs have no cycle in any interleaving of a database with locks.

    The others have one, unless they lock what they do not write, which templates do not use.
    """
    draw = random.Random(51)
    more = 0
    for _ in range(150):
        programs = [random_program(draw) for _ in range(draw.choice([1, 2]))]
        text = as_recorded(programs)
        standing, plain = (
            decide(found, dict.fromkeys(found.programs, level), sessions=False).standing
            for one in (text, text.replace(":statements", ":left-out"))
            if (found := extract(read(tmp_path, one), same_keys=[("a", "b")]).templates)
        )
        if standing == "robust":
            assert always_serializable(programs, level), text
            more += plain != "robust"
        elif all(
            any(other in "wu" and x == row for other, x in program[n:])
            for program in programs
            for n, (kind, row) in enumerate(program)
            if kind.startswith("for")
        ):
            assert not always_serializable(programs, level), text
    assert more > 20 or level == "si"
