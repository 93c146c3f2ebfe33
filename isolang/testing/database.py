"""Plays interleavings of small transactions on a real database, to be judged one by one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from isolang.run.operation import Operation, Read, Write
from isolang.run.play.interleave import Played, interleave
from isolang.run.play.transaction import driver_for, play
from isolang.run.record.recorder import Recorder
from isolang.run.sql import SqlTarget
from isolang.run.target import TargetError
from isolang.run.targets import level_named, target_named

if TYPE_CHECKING:
    from typing import Self

    from isolang.history.history import History


class Interleaving(Struct, frozen=True):
    """A few transactions with an order of their steps.

    Attributes:
        programs: the operations of each transaction, without its last step, COMMIT.
        schedule: the index of the transaction that does each step.
    """

    programs: tuple[tuple[Operation, ...], ...]
    schedule: tuple[int, ...]

    def __str__(self) -> str:
        """Return one line for each step, with its transaction and operation."""
        remaining = [iter((*map(_shown, program), "commit")) for program in self.programs]
        lines = [f"T{number + 1}  {next(remaining[number])}" for number in self.schedule]
        return "\n".join(lines)

    __repr__ = __str__


def _shown(operation: Operation) -> str:
    match operation:
        case Read(key):
            return f"read {key}"
        case Write(key, value):
            return f"write {key} = {value}"
    return repr(operation)


class Database:
    """A database that runs interleavings. It is a context manager.

    Attributes:
        level: the level of the database, with the specification that it claims.
        played: the outcome of each transaction of the last interleaving.

    >>> from isolang.run.operation import Read, Write
    >>> with Database("memory", level="read committed") as database:
    ...     history = database.play(Interleaving(
    ...         ((Read("x"), Write("x", 1)), (Read("x"), Write("x", 2))), (0, 1, 0, 0, 1, 1)
    ...     ))
    >>> from isolang import check
    >>> check(history, "si").violation.anomaly
    'lost update'
    """

    def __init__(self, target: str, *, level: str = "", keys: Sequence[str] = ("x", "y")) -> None:
        """Choose a database without starting anything.

        Args:
            target: a name (isocheck then starts the server) or a URL, as in docs/run.md.
            level: the level of the database; by default its first level.
            keys: the keys of the rows that transactions read and write.

        Raises:
            TargetError: the database or the level does not exist.
        """
        self._target = target_named(target, prefix=f"isocheck_{os.getpid()}_")
        self.level = level_named(self._target, level)
        self.keys = tuple(keys)
        if isinstance(self._target, SqlTarget):
            self._target.options(level=self.level.name)
        self.played: tuple[Played, ...] = ()

    def start(self) -> None:
        """Start or reach the server, and create the tables.

        Raises:
            TargetError: the server cannot be reached or the tables cannot be created; the message
                says what to do.
        """
        self._target.start()
        self._target.setup(self.keys, ())

    def close(self) -> None:
        """Remove the tables, and stop a server that isocheck started."""
        self._target.close()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def play(self, interleaving: Interleaving) -> History:
        """Run an interleaving on keys whose values are 0, and then read all keys.

        Each transaction has its own connection. A transaction that waits for another one continues
        as soon as that transaction has ended.

        Returns:
            The recorded history: a transaction that writes 0 to each key, the transactions of the
            interleaving, and a transaction that reads every key.

        Raises:
            TargetError: the rows could not be set or read.
            IsolangError: the run cannot continue.
        """
        with tempfile.TemporaryDirectory(prefix="isocheck-") as folder:
            path = Path(folder, "interleaving.edn")
            with Recorder(path) as recorder:
                self._alone("before", [Write(key, 0) for key in self.keys], recorder)
                self.played = interleave(
                    interleaving.programs,
                    interleaving.schedule,
                    target=self._target,
                    level=self.level.name,
                    recorder=recorder,
                )
                self._alone("after", [Read(key) for key in self.keys], recorder)
                return recorder.history()

    def _alone(self, session: str, program: Sequence[Operation], recorder: Recorder) -> None:
        client = self._target.connect()
        try:
            outcome, error = play(
                tuple(program),
                recorder=recorder,
                session=session,
                client=client,
                driver=driver_for(self._target),
                level=self.level.name,
            )
        finally:
            client.close()
        if outcome != "committed":
            what = " ".join(str(error).split())
            raise TargetError(f"{self._target.name}: the rows cannot be set or read ({what})")
