"""Interleavings of small transactions on a real database, judged one by one."""

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
    """A few transactions, and the order of their steps.

    Attributes:
        programs: the operations of each transaction; COMMIT is one step more.
        schedule: which transaction does its next step.
    """

    programs: tuple[tuple[Operation, ...], ...]
    schedule: tuple[int, ...]

    def __str__(self) -> str:
        """One line for each step: who does what."""
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
    """A database that runs interleavings; a context manager.

    Attributes:
        level: of the database, with what it claims.
        played: what became of each transaction of the last interleaving.

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
        """Choose a database; nothing is started.

        Args:
            target: a name (isocheck starts the server) or a URL, as in docs/run.md.
            level: of the database; by default its first one.
            keys: of the rows that transactions read and write.

        Raises:
            TargetError: there is no such database, or it has no such level.
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
            TargetError: that is not possible; the message says what to do.
        """
        self._target.start()
        self._target.setup(self.keys, ())

    def close(self) -> None:
        """Remove the tables, and stop a server that was started."""
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
        """Run an interleaving: all keys are 0 before, and what they are after is read.

        Each transaction has a connection of its own. One whose step waits for another transaction
        goes on as soon as that one has ended.

        Returns:
            What was observed: first a transaction that writes 0 to each key, then those of the
            interleaving, at last one that reads every key.

        Raises:
            TargetError: the rows could not be set or read.
            IsolangError: the run cannot go on.
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
