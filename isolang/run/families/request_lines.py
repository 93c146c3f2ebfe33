"""Requests to a program and its answers: a JSON line each, the answer with the request's number.

``{"id": 7, "do": "read", "key": "x", "list": false}`` is answered by ``{"id": 7, "type": "ok",
"value": 3}``; or by ``fail`` (nothing of the transaction was or will be applied), ``info`` (nobody
knows) or ``error`` (the program cannot do this at all), with the reason as ``error``. docs/exec.md
has all requests.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from contextlib import suppress
from itertools import count
from typing import Any, Final, NoReturn

from isolang.errors import TargetError
from isolang.run.outcome import BadAnswer, RolledBack
from isolang.run.servers.keeper import family, send

ANSWER: Final = 30.0  # seconds for an answer
_LINE: Final = 1 << 24  # bytes of an answer
_GRACE: Final = 1.0  # seconds from SIGTERM to SIGKILL
_EXPECTED: Final = 'expected {"id": …, "type": "ok", "fail", "info" or "error", "value": …}'


class UnclearAnswer(Exception):  # noqa: N818 - an answer
    """The program does not know the outcome, or did not answer."""


class ClientProgram:
    """A running program: each answer has a deadline, and an end.

    Attributes:
        ended: whether nothing can be asked any more.
    """

    def __init__(self, command: str) -> None:
        # In our process group: whoever ends that ends the program, whatever it does.
        self.child = subprocess.Popen(
            command, shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self._in, self._out = self.child.stdin, self.child.stdout
        self._said = b""
        self._numbers = count(1)
        self.ended = False
        for stream in (self._in, self._out):
            os.set_blocking(stream.fileno(), False)

    def ask(self, do: str, *, within: float = ANSWER, **more: Any) -> Any:
        """Send a request, and give the value of its answer.

        Args:
            do: what is asked for.
            within: seconds for the answer.
            more: the request's other fields.

        Raises:
            RolledBack: the transaction was not applied, and will not be.
            Unclear: nobody knows; or the program has ended, or has not answered in time.
            BadAnswer: it is no answer to this request; nothing can be asked any more.
            TargetError: the program cannot do this.
        """
        number = next(self._numbers)
        line = json.dumps({"id": number, "do": do, **more})
        try:
            said = self._exchange(line, within)
            kind, value, error = _answer(said, number)
        except BadAnswer:
            self.ended = True  # what it says next may belong to this request
            raise
        match kind:
            case "ok":
                return value
            case "fail":
                raise RolledBack(error or "the program says fail")
            case "info":
                raise UnclearAnswer(error or "the program says info")
            case _:
                raise TargetError(f"the program cannot {do}: {error or 'it says error'}")

    def _exchange(self, line: str, within: float) -> bytes:
        until = time.monotonic() + within
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
                self._late(within)
            part = self._out.read(1 << 16)
            if not part:
                self.ended = True
                raise UnclearAnswer("the program ended without an answer")
            self._said += part
        answer, _, self._said = self._said.partition(b"\n")
        if self._said:
            raise BadAnswer("two answers to one request (got more after the line)")
        return answer

    def _send(self, data: bytes, until: float) -> None:
        while data:
            if not select.select([], [self._in], [], max(0.0, until - time.monotonic()))[1]:
                self._late(ANSWER)
            data = data[self._in.write(data) or 0 :]

    def _late(self, within: float) -> NoReturn:
        self.ended = True
        raise UnclearAnswer(f"the program has not answered in {within:g} s")

    def usable(self) -> bool:
        """Whether something can be asked."""
        return not self.ended and self.child.poll() is None

    def close(self) -> None:
        """End the program, with what it has started."""
        self.ended = True
        everybody = family(self.child.pid) if self.child.poll() is None else []
        for stream in (self._in, self._out):
            with suppress(OSError):
                stream.close()
        send(everybody, signal.SIGTERM)
        try:
            self.child.wait(_GRACE)
        except subprocess.TimeoutExpired:
            send(everybody, signal.SIGKILL)
            self.child.wait()


def _answer(line: bytes, number: int) -> tuple[str, Any, str]:
    """The type, value and error of an answer.

    Raises:
        BadAnswer: it is no answer to this request.
    """
    shown = ascii(line.decode(errors="replace").strip()[:80])
    try:
        answer = json.loads(line)
        kind, said = answer["type"], answer["id"]
    except (ValueError, TypeError, KeyError):
        raise BadAnswer(f"not an answer (got {shown}, {_EXPECTED})") from None
    if said != number:
        hint = "; two answers to one request?" if isinstance(said, int) and said < number else ""
        raise BadAnswer(f"the answer to another request (got {shown}, expected id {number}){hint}")
    if kind not in ("ok", "fail", "info", "error"):
        raise BadAnswer(f"not an answer (got {shown}, {_EXPECTED})")
    return kind, answer.get("value"), str(answer.get("error") or "")
