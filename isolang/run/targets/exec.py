"""Any program: one JSON line a transaction to its standard input, one back.

``{"level": "si", "value": [["r", "x", null], ["append", "y", 3]]}`` asks for a transaction. The
program answers ``{"type": "ok", "value": [["r", "x", 7], ["append", "y", 3]]}``; or ``"fail"``, if
the transaction was certainly not applied; or ``"info"``, if it does not know. Each session is a
process of its own. What ends without an answer is of unknown outcome.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar

from isolang.run.adapter import BaseClient, BaseTarget
from isolang.run.outcome import Failure, Phase, RolledBack
from isolang.run.target import Level, TargetError


class Unclear(Exception):  # noqa: N818 - an answer
    """The program does not know the outcome, or did not answer."""


class Exec(BaseTarget):
    """A program; keys begin as nothing and as empty lists: it sees to it."""

    name: ClassVar = "exec"
    levels: ClassVar = (Level(name="default", claims="ser", says="what the program does"),)
    lacks: ClassVar = frozenset({"range reads", "rows", "conversations", "savepoints"})

    def start(self) -> None:
        if not self.address.database.strip():
            raise TargetError("exec: no program (expected one); isocheck run exec:'./my-client'")

    def version(self) -> str:
        return str(self.address)

    def setup(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        """Set nothing up."""

    def connect(self) -> ExecClient:
        return ExecClient(self.address.database)

    def classify(self, error: BaseException, phase: Phase) -> Failure:
        return "aborted" if isinstance(error, RolledBack) else "maybe"

    def statement(self, operation: str, key: str, value: object) -> str:
        return json.dumps([operation, key, None if operation == "r" else value], default=str)


class ExecClient(BaseClient):
    """A running program; it is given whole transactions."""

    def __init__(self, command: str) -> None:
        self.child = subprocess.Popen(
            command, shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip

    def transact(self, level: str, operations: Sequence[tuple[str, str, Any]]) -> list[Any]:
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        asked = [[name, key, None if name == "r" else value] for name, key, value in operations]
        with suppress(BrokenPipeError):  # it has ended; it may have said something before
            self.child.stdin.write(json.dumps({"level": level, "value": asked}) + "\n")
            self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            raise Unclear("the program ended without an answer")
        try:
            answer = json.loads(line)
            kind, value = answer["type"], answer.get("value")
            same = kind != "ok" or [one[:2] for one in value] == [one[:2] for one in asked]
        except (ValueError, TypeError, KeyError, AttributeError):
            kind, same = "", False
        if kind == "fail":
            raise RolledBack("the program says fail")
        if kind == "info":
            raise Unclear("the program says info")
        if kind != "ok" or not same:
            msg = 'expected {"type": "ok", "value": [the operations that were asked for]}'
            raise TargetError(f"exec: not an answer (got {line.strip()[:80]!r}, {msg})")
        return [one[2] for one in value]

    def usable(self) -> bool:
        return self.child.poll() is None

    def close(self) -> None:
        for stream in (self.child.stdin, self.child.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        self.child.terminate()
        self.child.wait()
