"""Plays interleavings of small transactions on a real database, and records their histories."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from isolang.run.operation import Operation, Read, Write
from isolang.run.play.interleave import InterleavedResult, interleave
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
        programs: the operations of each transaction, without COMMIT, although COMMIT is the last
            step of each transaction.
        schedule: for each step, the index of the transaction running it.
    """

    programs: tuple[tuple[Operation, ...], ...]
    schedule: tuple[int, ...]

    def __str__(self) -> str:
        """Return the steps as text, one per line, with transaction and operation."""
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
    """A database for playing interleavings in a test, as a context manager.

    Attributes:
        level: the isolation level of the database, with the specification that it claims to
            satisfy.
        played: the outcome of each transaction in the last interleaving; empty before the first.

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
            target: a name or a URL, as in docs/run.md. If it is a name, isocheck starts the server.
            level: the isolation level of the database; if empty, the first level of the target.
            keys: the keys of the rows read and written by the transactions.

        Raises:
            TargetError: the database or the level does not exist.
        """
        self._target = target_named(target, prefix=f"isocheck_{os.getpid()}_")
        self.level = level_named(self._target, level)
        self.keys = tuple(keys)
        if isinstance(self._target, SqlTarget):
            self._target.options(level=self.level.name)
        self.played: tuple[InterleavedResult, ...] = ()

    def start(self) -> None:
        """Start the server or connect to it, and create the tables.

        Raises:
            TargetError: the server cannot be reached, or the tables cannot be created; the message
                explains how to solve the problem.
        """
        self._target.start()
        self._target.setup(self.keys, ())

    def close(self) -> None:
        """Remove the tables, and stop the server if isocheck has started it."""
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
        """Set all keys to 0, run an interleaving, and then read all keys.

        Each transaction has its own connection. If a transaction is blocked by another, it
        continues as soon as the other has ended.

        Returns:
            The recorded history: a transaction that writes 0 to each key, then the transactions of
            the interleaving, and finally a transaction that reads every key.

        Raises:
            TargetError: the keys could not be set to 0, or could not be read.
            IsolangError: the interleaving cannot be run to the end.
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
            raise TargetError(f"{self._target.name}: cannot write or read the rows ({what})")
