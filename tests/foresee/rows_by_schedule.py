"""Predictions with predicate reads at PostgreSQL's profiles by brute force, over all schedules.

As in :mod:`foresee.by_schedule`, a stranger executes its first statements; then some others run,
each alone; then the stranger ends. The rows are those of :mod:`foresee.with_predicates`, and a
statement may also write all rows that match. The keys are unique, and so are values above 1.
"""

from __future__ import annotations

import io
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from foresee import with_predicates as rows
from foresee.agreement import levels_of, partitions, searched_history
from foresee.enumeration import Schedule, all_schedules, schedules_of_strangers
from foresee.with_predicates import ABSENT, INITIAL, Answers, Rows, Statement, depends_on, ser

import isolang
from isolang.history import write_history
from isolang.history.remarks import UNIQUE_COMMENT


class _Refused(Exception):  # noqa: N818 - an outcome
    """Somebody waits, or fails, or its statement would write other rows."""


# --- random runs ---


def random_runs(seed: int, n: int, count: int, most: int = 3) -> Iterator[Rows]:
    """Runs whose transactions send up to ``most`` statements each, and write a key once."""
    draw = random.Random(seed)
    sessions = list(partitions(n))
    for _ in range(count):
        initial = {key: draw.choice([None, 0, 1]) for key in rows.KEYS}
        values = dict(initial)
        programs = [_random_program(draw, values, most) for _ in range(n)]
        yield Rows(draw.choice(sessions), programs, initial)


def _random_program(
    draw: random.Random, values: dict[str, int | None], most: int
) -> list[Statement]:
    """A transaction that runs alone after others left these values, which it changes."""
    statements: list[Statement] = []
    unwritten = set(rows.KEYS)
    for number in range(1, draw.choice(range(1, most + 1)) + 1):
        kind = draw.choice(["scan", "scan", "get", "write", "write", "delete", "all", "all"])
        value = draw.choice([0, 1, 1, 2, 2])
        if kind in ("scan", "get"):
            lock = draw.choice(["", "", "update", "share"])
            key = "" if kind == "scan" else draw.choice(rows.KEYS)
            statements.append(Statement(kind, key, lock=lock, number=number))
            continue
        keys, reads = [draw.choice(rows.KEYS)], []
        if kind == "all":
            keys = [key for key in rows.KEYS if values[key] == 1]
            reads = [Statement("scan", number=number)]
            kind = draw.choice(["write", "write", "delete"])
        unique = kind == "delete" or value < 2 or (len(keys) == 1 and value not in values.values())
        if keys and unwritten.issuperset(keys) and unique:
            statements += reads + [Statement(kind, key, value, number=number) for key in keys]
            unwritten -= set(keys)
            values.update(dict.fromkeys(keys, None if kind == "delete" else value))
    return statements or [Statement("scan", number=1)]


def inserts(run: Rows) -> set[tuple[int, str]]:
    """The keys whose row a transaction inserts in the run."""
    last, inserted = dict.fromkeys(rows.KEYS, INITIAL), set()
    for i, program in enumerate(run.programs):
        for statement in program:
            if (
                statement.kind == "write"
                and run.version(statement.key, last[statement.key]) is None
            ):
                inserted.add((i, statement.key))
        last |= {statement.key: i for statement in program if statement.kind in ("write", "delete")}
    return inserted


# --- schedules ---


def _sent(program: Sequence[Statement]) -> list[list[tuple[int, Statement]]]:
    """The operations of each SQL statement, with their places."""
    return [
        list(group) for _, group in groupby(enumerate(program), key=lambda pair: pair[1].number)
    ]


def played(run: Rows, schedule: Schedule, *, whole_snapshot: bool) -> dict[int, Answers]:
    """What everybody is answered in a schedule."""
    before, stranger, first, between = schedule
    last = dict.fromkeys(rows.KEYS, INITIAL)
    answers: dict[int, dict[tuple[int, str], int]] = {}
    inserted = inserts(run)
    uncommitted: set[int] = set()  # the unique values of the stranger's rows

    def check_indexes(i: int, statement: Statement, written: set[str]) -> None:
        if statement.kind == "delete":
            return
        if (i, statement.key) in inserted and run.version(
            statement.key, last[statement.key]
        ) is not None:
            raise _Refused
        values = {run.version(key, last[key]) for key in rows.KEYS if key not in written}
        if statement.value > 1 and (
            statement.value in values or (i != stranger and statement.value in uncommitted)
        ):
            raise _Refused
        if statement.value > 1 and i == stranger:
            uncommitted.add(statement.value)

    def execute(
        i: int, sent: Sequence[tuple[int, Statement]], seen: Mapping[str, int], written: set[str]
    ) -> tuple[set[str], set[str]]:
        """Execute a statement; return the keys that it locks, against all and against writers."""
        alone, shared = set[str](), set[str]()
        writes = [statement for _, statement in sent if statement.kind in ("write", "delete")]
        for at, statement in sent:
            for key in statement.reads():
                shown = key in written or run.answer(statement, key, seen[key]) != ABSENT
                if key not in written:
                    answers[i][at, key] = run.answer(statement, key, seen[key])
                    if writes and shown != (run.answers[i][at, key] != ABSENT):
                        raise _Refused
                if shown and statement.lock:
                    (alone if statement.lock == "update" else shared).add(key)
        alone |= {statement.key for statement in writes}
        for statement in writes:
            check_indexes(i, statement, written | {statement.key})
            written.add(statement.key)
        return alone, shared - alone

    def run_alone(i: int, alone: set[str], shared: set[str]) -> None:
        answers[i], written = {}, set[str]()
        for sent in _sent(run.programs[i]):
            own_alone, own_shared = execute(i, sent, last, written)
            if own_alone & (alone | shared) or own_shared & alone:
                raise _Refused
        last.update(dict.fromkeys(written, i))

    for i in before:
        run_alone(i, set(), set())
    snapshot = dict(last)
    answers[stranger], written = {}, set[str]()
    alone, shared = set[str](), set[str]()
    mine = _sent(run.programs[stranger])
    for sent in mine[:first]:
        more, others = execute(stranger, sent, snapshot, written)
        alone, shared = alone | more, shared | others
    for i in between:
        run_alone(i, alone, shared)
    for sent in mine[first:]:
        locked = execute(stranger, sent, snapshot if whole_snapshot else last, written)
        if whole_snapshot and any(last[k] != snapshot[k] for some in locked for k in some):
            raise _Refused
    return answers


def _statements(run: Rows) -> list[int]:
    return [len(_sent(program)) for program in run.programs]


def predicted(run: Rows, *, whole_snapshot: bool) -> bool:
    """Whether some schedule of one stranger is not serializable; all others read the same."""
    return any(
        _is_prediction(
            run, schedule, (*schedule.before, *schedule.between), whole_snapshot=whole_snapshot
        )
        for schedule in schedules_of_strangers(
            run, depends_on(run), _statements(run), whole_snapshot=whole_snapshot
        )
    )


def possible(run: Rows, *, whole_snapshot: bool) -> bool:
    """Whether some schedule of the same statements is not serializable, whatever they read."""
    return any(
        _is_prediction(run, schedule, (), whole_snapshot=whole_snapshot)
        for schedule in all_schedules(run, _statements(run), whole_snapshot=whole_snapshot)
    )


def _is_prediction(
    run: Rows, schedule: Schedule, same: Sequence[int], *, whole_snapshot: bool
) -> bool:
    """Whether a schedule is possible and not serializable, and some read what was recorded."""
    try:
        answers = played(run, schedule, whole_snapshot=whole_snapshot)
    except _Refused:
        return False
    if any(answers[i] != run.answers[i] for i in same):
        return False
    return not ser(run.part(schedule.kept(), answers))


def edn(run: Rows) -> str:
    """The history as a recorder writes it, with statements and locks."""
    stream = io.BytesIO()
    write_history(rows.history_of(run), stream, format="edn")
    lines = stream.getvalue().decode().splitlines()
    initial = len(lines) - run.n
    for i, program in enumerate(run.programs):
        noted = " ".join(
            f'"{statement.number}{" for " + statement.lock if statement.lock else ""}"'
            for statement in program
        )
        lines[initial + i] = f"{lines[initial + i][:-1]}, :statements [{noted}]}}"
    lines.append(f'{UNIQUE_COMMENT}{{"t": [["k"], ["u"]]}}')
    return "".join(f"{line}\n" for line in lines)


def compared(run: Rows, at: str) -> tuple[tuple[bool, bool], tuple[bool, bool]]:
    """What schedules and the search predict: by the first rule, and by either.

    The schedules follow the order of the run's witness, as the search does.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.edn"
        path.write_text(edn(run), encoding="utf-8")
        history = isolang.load_history(path)
        numbers = levels_of(at).run(history).numbers
        order = [number - min(numbers) for number in numbers]  # the initial rows may come first
        searched = searched_history(history, at)
    in_order = Rows([run.sessions[i] for i in order], [run.programs[i] for i in order], run.initial)
    whole = at == "postgresql-repeatable-read"
    first = predicted(in_order, whole_snapshot=whole)
    return (first, first or possible(in_order, whole_snapshot=whole)), searched
