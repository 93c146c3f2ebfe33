"""Plays the phenomena of Hermitage (M. Kleppmann) under their Hermitage names.

Each phenomenon is one interleaving of two or three transactions; some use predicates, and some
abort. It occurs if the recorded history violates the weakest level that forbids the phenomenon. The
names G0 to G2 are those of A. Adya's thesis; P4 is the lost update of Berenson and others (1995),
PMP is a predicate with many preceders, and OTV is an observed transaction that vanishes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from isolang.run.operation import Abort, Operation, Program, Read, SelectRange, Write
from isolang.run.play.interleave import interleave
from isolang.run.record.recorder import Recorder
from isolang.run.settings import LitmusSettings
from isolang.run.sql import SqlTarget
from isolang.run.targets import level_named, target_named

_FIRST: Final = 1_000_000_000  # the least value in any predicate's range
_WIDTH: Final = 1_000  # how many values are reserved for each phenomenon


class Phenomenon(Struct, frozen=True, kw_only=True):
    """A phenomenon, and the interleaving in which it may occur.

    Attributes:
        forbidden_by: the weakest level of the library that forbids it.
        programs: the transactions, on the keys ``x`` and ``y``. Predicates select the values from
            100 to 199 or those from 200 to 299.
        schedule: for each step, the index of the transaction that performs it.
    """

    name: str
    title: str
    forbidden_by: str
    programs: tuple[tuple[Operation, ...], ...]
    schedule: tuple[int, ...]


class Occurrence(Struct, frozen=True, kw_only=True):
    """The result of playing a phenomenon at a level of a database.

    Attributes:
        name: the name in Hermitage.
        title: what the phenomenon is, in words.
        level: the level of the database.
        forbidden_by: the weakest level of the library that forbids the phenomenon.
        outcome: whether it occurred; ``not played`` if the database lacks what it needs.
        anomaly: the name of the violation; empty if it did not occur.
    """

    name: str
    title: str
    level: str
    forbidden_by: str
    outcome: Literal["occurs", "prevented", "not played"]
    anomaly: str = ""


_IN, _THERE = SelectRange(100, 199), SelectRange(200, 299)

PHENOMENA: Final = (
    Phenomenon(
        name="G0",
        title="write cycle",
        forbidden_by="pl-1",
        programs=(
            (Write("x", 1), Write("y", 1)),
            (Write("x", 2), Write("y", 2)),
            (Read("x"), Read("y")),
        ),
        schedule=(0, 1, 0, 0, 1, 1, 2, 2, 2),
    ),
    Phenomenon(
        name="G1a",
        title="aborted read",
        forbidden_by="pl-2",
        programs=((Write("x", 1), Abort()), (Read("x"), Read("x"))),
        schedule=(0, 1, 0, 1, 1),
    ),
    Phenomenon(
        name="G1b",
        title="intermediate read",
        forbidden_by="pl-2",
        programs=((Write("x", 1), Write("x", 2)), (Read("x"),)),
        schedule=(0, 1, 0, 0, 1),
    ),
    Phenomenon(
        name="G1c",
        title="circular information flow",
        forbidden_by="pl-2",
        programs=((Write("x", 1), Read("y")), (Write("y", 2), Read("x"))),
        schedule=(0, 1, 0, 1, 0, 1),
    ),
    Phenomenon(
        name="OTV",
        title="observed transaction vanishes",
        forbidden_by="ra-nosession",
        programs=(
            (Write("x", 1), Write("y", 1)),
            (Write("x", 2), Write("y", 2)),
            (Read("y"), Read("x")),
        ),
        schedule=(0, 0, 1, 0, 1, 1, 2, 2, 2),
    ),
    Phenomenon(
        name="PMP",
        title="predicate with many preceders",
        forbidden_by="pl-2-plus",
        programs=((_IN, _IN), (Write("x", 100),)),
        schedule=(0, 1, 1, 0, 0),
    ),
    Phenomenon(
        name="P4",
        title="lost update",
        forbidden_by="pl-2-plus",
        programs=((Read("x"), Write("x", 1)), (Read("x"), Write("x", 2)), (Read("x"),)),
        schedule=(0, 1, 0, 1, 0, 1, 2, 2),
    ),
    Phenomenon(
        name="G-single",
        title="read skew",
        forbidden_by="pl-2-plus",
        programs=((Read("x"), Read("y")), (Read("x"), Read("y"), Write("x", 1), Write("y", 1))),
        schedule=(0, 1, 1, 1, 1, 1, 0, 0),
    ),
    Phenomenon(
        name="G-single, by a predicate",
        title="a row is in two ranges",
        forbidden_by="pl-2-plus",
        programs=((Write("x", 100),), (_IN, _THERE), (Read("x"), Write("x", 200))),
        schedule=(0, 0, 1, 2, 2, 2, 1, 1),
    ),
    Phenomenon(
        name="G2-item",
        title="write skew",
        forbidden_by="pl-2-99",
        programs=((Read("x"), Read("y"), Write("x", 1)), (Read("x"), Read("y"), Write("y", 2))),
        schedule=(0, 0, 1, 1, 0, 1, 0, 1),
    ),
    Phenomenon(
        name="G2",
        title="write skew by a predicate",
        forbidden_by="pl-3",
        programs=((_IN, Write("x", 100)), (_IN, Write("y", 101))),
        schedule=(0, 1, 0, 1, 0, 1),
    ),
)


def play_hermitage(playing: LitmusSettings, levels: Sequence[str]) -> tuple[Occurrence, ...]:
    """Play all phenomena at the given levels of a database, and return the results.

    Raises:
        TargetError: the database cannot be reached, or the level does not exist.
    """
    found: list[Occurrence] = []
    registers = [f"{one.name}/{key}" for one in PHENOMENA for key in "xy"]
    for name in levels:
        target = target_named(playing.target, prefix=playing.prefix)
        level = level_named(target, name).name
        if isinstance(target, SqlTarget):
            target.options(level=level)
        try:
            target.start()
            target.setup(registers, ())
            for number, one in enumerate(PHENOMENA):
                queries = any(isinstance(op, SelectRange) for ops in one.programs for op in ops)
                occurrence = Occurrence(
                    name=one.name,
                    title=one.title,
                    level=level,
                    forbidden_by=one.forbidden_by,
                    outcome="not played",
                )
                if not (queries and "range reads" in target.lacks):
                    programs = [_on_own_keys(ops, one.name, number) for ops in one.programs]
                    with tempfile.TemporaryDirectory(prefix="isocheck-") as folder:
                        path = Path(folder, "history.edn")
                        with Recorder(path) as recorder:
                            interleave(
                                programs, one.schedule, target=target, level=level,
                                recorder=recorder,
                            )  # fmt: skip
                        anomaly = _violation(path, one.forbidden_by)
                    occurrence = replace(
                        occurrence, outcome="occurs" if anomaly else "prevented", anomaly=anomaly
                    )
                found.append(occurrence)
        finally:
            target.close()
    return tuple(found)


def _on_own_keys(ops: Sequence[Operation], name: str, number: int) -> Program:
    """Return a transaction, moved to keys and value ranges that only its phenomenon uses.

    SOUND BECAUSE: no other phenomenon has values in these ranges, so a predicate returns only rows
    of the recorded history.
    """
    base = _FIRST + number * _WIDTH

    def own(op: Operation) -> Operation:
        if isinstance(op, SelectRange):
            return SelectRange(base + op.low, base + op.high)
        if isinstance(op, Write):
            return Write(f"{name}/{op.key}", base + op.value)
        return Read(f"{name}/{op.key}") if isinstance(op, Read) else op

    return tuple(own(op) for op in ops)


def _violation(path: Path, spec: str) -> str:
    """Return the certified anomaly by which a history violates a level; empty if valid."""
    from isolang.api import check, load_history
    from isolang.verdict import Invalid

    verdict = check(load_history(path, superseded_reads="count"), spec)
    return verdict.violation.anomaly if isinstance(verdict, Invalid) and verdict.certified else ""
