"""Defines scripts: a few transactions each, with an order of steps that may reveal an anomaly.

The scripts come from Hermitage (M. Kleppmann), from the papers by H. Berenson and others (1995) and
by A. Fekete and others (2004), and from bug reports: MDEV-26642 and MySQL #100328 (an update to the
value that the row already has) and duckdb#17223 (a delete concurrent with an update). Each script
has its own keys ``x`` and ``y``.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, structs

from isolang.run.operation import Abort, Delete, Insert, Operation, Program, Read, Write


class Script(Struct, frozen=True, kw_only=True):
    """A few transactions, with an order of steps that may reveal an anomaly.

    Attributes:
        programs: the transactions, on the keys ``x`` and ``y``.
        schedule: for each step, the index of the transaction that performs it; the last step of
            each transaction is COMMIT.
    """

    name: str
    programs: tuple[tuple[Operation, ...], ...]
    schedule: tuple[int, ...]

    def names(self) -> tuple[str, str]:
        """Return the names of the script's keys ``x`` and ``y`` in the database."""
        return f"{self.name}/x", f"{self.name}/y"

    def renamed_programs(self) -> tuple[Program, ...]:
        """Return the transactions, with the script's key names in the database."""
        return tuple(tuple(self._own(one) for one in program) for program in self.programs)

    def _own(self, operation: Operation) -> Operation:
        key = getattr(operation, "key", None)
        return operation if key is None else structs.replace(operation, key=f"{self.name}/{key}")


def _r(key: str) -> Read:
    return Read(key)


def _w(key: str, value: int) -> Write:
    return Write(key, value)


SCRIPTS: Final = (
    Script(
        name="write-cycle",
        programs=((_w("x", 1), _w("y", 1)), (_w("x", 2), _w("y", 2)), (_r("x"), _r("y"))),
        schedule=(0, 1, 0, 0, 1, 1, 2, 2, 2),
    ),
    Script(
        name="aborted-read",
        programs=((_w("x", 1), Abort()), (_r("x"), _r("x"))),
        schedule=(0, 1, 0, 1, 1),
    ),
    Script(
        name="intermediate-read",
        programs=((_w("x", 1), _w("x", 2)), (_r("x"),)),
        schedule=(0, 1, 0, 0, 1),
    ),
    Script(
        name="circular-information-flow",
        programs=((_w("x", 1), _r("y")), (_w("y", 2), _r("x"))),
        schedule=(0, 1, 0, 1, 0, 1),
    ),
    Script(
        name="observed-transaction-vanishes",
        programs=(
            (_w("x", 1), _w("y", 1)),
            (_w("x", 2), _w("y", 2)),
            (_r("x"), _r("y"), _r("x"), _r("y")),
        ),
        schedule=(0, 0, 1, 0, 2, 1, 2, 1, 2, 2, 2),
    ),
    Script(
        name="lost-update",
        programs=((_r("x"), _w("x", 1)), (_r("x"), _w("x", 2)), (_r("x"),)),
        schedule=(0, 1, 0, 1, 0, 1, 2, 2),
    ),
    Script(
        name="lost-update-in-turn",
        programs=((_r("x"), _w("x", 1)), (_r("x"), _w("x", 2)), (_r("x"),)),
        schedule=(0, 1, 0, 0, 1, 1, 2, 2),
    ),
    Script(
        name="read-skew",
        programs=((_r("x"), _r("y")), (_r("x"), _r("y"), _w("x", 1), _w("y", 1))),
        schedule=(0, 1, 1, 1, 1, 1, 0, 0),
    ),
    Script(
        name="read-skew-with-write",
        programs=((_r("x"), _w("y", 2)), (_r("x"), _r("y"), _w("x", 1), _w("y", 1)), (_r("y"),)),
        schedule=(0, 1, 1, 1, 1, 1, 0, 0, 2, 2),
    ),
    Script(
        name="fractured-re-read",
        programs=(
            (_r("x"), _r("y"), _w("x", 1), _r("x"), _r("y")),
            (_w("x", 2), _w("y", 2)),
            (_r("x"), _r("y")),
        ),
        schedule=(0, 0, 1, 1, 1, 0, 0, 0, 0, 2, 2, 2),
    ),
    Script(
        name="update-to-the-value-it-has",
        programs=((_r("x"), _w("x", 1), _r("x")), (_w("x", 1),)),
        schedule=(0, 1, 1, 0, 0, 0),
    ),
    Script(
        name="delete-beside-update",
        programs=((_r("x"), Delete("x")), (_r("x"), _w("x", 2)), (_r("x"),)),
        schedule=(0, 1, 0, 1, 0, 1, 2, 2),
    ),
    Script(
        name="update-beside-delete",
        programs=((_r("x"), _w("x", 2)), (_r("x"), Delete("x")), (_r("x"),)),
        schedule=(0, 1, 0, 1, 0, 1, 2, 2),
    ),
    Script(
        name="insert-beside-insert",
        programs=(
            (_r("x"), Delete("x")),
            (_r("x"), Insert("x", 1)),
            (_r("x"), Insert("x", 2)),
            (_r("x"),),
        ),
        schedule=(0, 0, 0, 1, 2, 1, 2, 1, 2, 3, 3),
    ),
    Script(
        name="write-skew",
        programs=((_r("x"), _r("y"), _w("x", 1)), (_r("x"), _r("y"), _w("y", 2))),
        schedule=(0, 0, 1, 1, 0, 1, 0, 1),
    ),
    Script(
        name="read-only-anomaly",
        programs=(
            (_r("x"), _r("y"), _w("x", 1)),
            (_r("y"), _w("y", 2)),
            (_r("x"), _r("y")),
        ),
        schedule=(0, 0, 1, 1, 1, 2, 2, 2, 0, 0),
    ),
    Script(
        name="long-fork",
        programs=((_w("x", 1),), (_w("y", 2),), (_r("x"), _r("y")), (_r("y"), _r("x"))),
        schedule=(2, 0, 0, 3, 1, 1, 2, 2, 3, 3),
    ),
)
