"""Any program: one JSON line a transaction to its standard input, one back.

``{"level": "si", "value": [["r", "x", null], ["append", "y", 3]]}`` asks for a transaction. The
program answers ``{"type": "ok", "value": [["r", "x", 7], ["append", "y", 3]]}``; or ``"fail"``, if
the transaction was certainly not applied; or ``"info"``, if it does not know. Each session is a
process of its own. What ends without an answer, or has none in 30 seconds, is of unknown outcome;
so is what is answered twice, or with other fields.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final, NoReturn

from isolang.run.adapter import BaseClient, BaseTarget
from isolang.run.outcome import BadAnswer, Failure, Phase, RolledBack
from isolang.run.servers.keeper import family, send
from isolang.run.target import Level, TargetError

ANSWER: Final = 30.0  # seconds for an answer
_LINE: Final = 1 << 24  # bytes of an answer
_GRACE: Final = 1.0  # seconds from SIGTERM to SIGKILL


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
        # In our process group: whoever ends that ends the program, whatever it does.
        self.child = subprocess.Popen(
            command, shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self.talk = Talk(self.child)

    def transact(self, level: str, operations: Sequence[tuple[str, str, Any]]) -> list[Any]:
        asked = [[name, key, None if name == "r" else value] for name, key, value in operations]
        try:
            line = self.talk.ask(json.dumps({"level": level, "value": asked}))
            return _results(line, asked)
        except BadAnswer:
            self.talk.ended = True  # what it says next may belong to this question
            raise

    def usable(self) -> bool:
        return not self.talk.ended and self.child.poll() is None

    def close(self) -> None:
        everybody = family(self.child.pid) if self.child.poll() is None else []
        self.talk.close()
        send(everybody, signal.SIGTERM)
        try:
            self.child.wait(_GRACE)
        except subprocess.TimeoutExpired:
            send(everybody, signal.SIGKILL)
            self.child.wait()


def _results(line: bytes, asked: list[list[Any]]) -> list[Any]:
    """The result of each operation, of the line that a program has answered.

    Raises:
        RolledBack: it says that nothing was applied.
        Unclear: it says that it does not know.
        BadAnswer: it is no answer to what was asked.
    """
    shown = ascii(line.decode(errors="replace").strip()[:80])
    try:
        answer = json.loads(line)
        kind, value = answer["type"], answer.get("value")
    except (ValueError, TypeError, KeyError, AttributeError):
        kind, value = "", None
    if kind == "fail":
        raise RolledBack("the program says fail")
    if kind == "info":
        raise Unclear("the program says info")
    if kind != "ok" or not isinstance(value, list):
        raise BadAnswer(f"not an answer (got {shown}, {_EXPECTED})")
    if len(value) != len(asked):
        what = f"{len(value)} operations answered, {len(asked)} asked for{_SHIFTED}"
        raise BadAnswer(f"not an answer: {what} (got {shown}, {_EXPECTED})")
    for number, (one, question) in enumerate(zip(value, asked, strict=True), 1):
        fields = len(one) if isinstance(one, list) else 0
        if fields != len(question):
            what = f"operation {number} has {fields} fields, not {len(question)}"
            raise BadAnswer(f"not an answer: {what} (got {shown}, {_EXPECTED})")
        if one[:2] != question[:2]:
            what = f"operation {number} is another one than was asked for{_SHIFTED}"
            raise BadAnswer(f"not an answer: {what} (got {shown}, {_EXPECTED})")
    return [one[2] for one in value]


_EXPECTED: Final = 'expected {"type": "ok", "value": [the operations that were asked for]}'
# The second of two answers, if it comes late, is taken for that to the next question.
_SHIFTED: Final = ", or two answers to one question"


class Talk:
    """Lines to a program and back: each answer has a deadline, and an end.

    Attributes:
        ended: whether nothing can be asked any more.
    """

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        self._in, self._out = child.stdin, child.stdout
        self._said = b""
        self.ended = False
        for stream in (self._in, self._out):
            os.set_blocking(stream.fileno(), False)

    def ask(self, line: str) -> bytes:
        """Send a line, and give the one that comes back.

        Raises:
            Unclear: the program has ended, or has not answered in time.
            BadAnswer: it has answered more than it was asked, or without an end.
        """
        until = time.monotonic() + ANSWER
        if self._said or select.select([self._out], [], [], 0)[0]:
            self._said += self._out.read(_LINE) or b""
            if self._said:
                shown = ascii(self._said.decode(errors="replace").strip()[:80])
                raise BadAnswer(f"not an answer, as nothing was asked: two to one? (got {shown})")
        with suppress(BrokenPipeError):  # it has ended; it may have said something before
            self._send((line + "\n").encode(), until)
        while b"\n" not in self._said:
            if len(self._said) > _LINE:
                raise BadAnswer(f"more than {_LINE >> 20} MB without the end of a line")
            if not select.select([self._out], [], [], max(0.0, until - time.monotonic()))[0]:
                self._late()
            part = self._out.read(1 << 16)
            if not part:
                self.ended = True
                raise Unclear("the program ended without an answer")
            self._said += part
        answer, _, self._said = self._said.partition(b"\n")
        if self._said:
            raise BadAnswer("two answers to one question (got more after the line)")
        return answer

    def _send(self, data: bytes, until: float) -> None:
        while data:
            if not select.select([], [self._in], [], max(0.0, until - time.monotonic()))[1]:
                self._late()
            data = data[self._in.write(data) or 0 :]

    def _late(self) -> NoReturn:
        self.ended = True
        raise Unclear(f"the program has not answered in {ANSWER:g} s")

    def close(self) -> None:
        """Close both ends."""
        for stream in (self._in, self._out):
            with suppress(OSError):
                stream.close()
