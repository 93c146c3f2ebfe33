"""Sends requests to a client program as lines of JSON, and reads the program's responses.

The response to ``{"id": 7, "do": "read", "key": "x", "list": false}`` is ``{"id": 7, "type": "ok",
"value": 3}``. The type may also be ``fail`` (the transaction was not applied, and never will be),
``info`` (the outcome is unknown) or ``error`` (the program does not support the request). These
responses give the reason in ``error``. docs/exec.md lists all requests.
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
from isolang.run.servers.keeper import process_tree, send_signal

RESPONSE_TIMEOUT_S: Final = 30.0  # seconds that a program may take to respond
_LINE: Final = 1 << 24  # the maximum length of a response in bytes
_GRACE: Final = 1.0  # seconds from SIGTERM to SIGKILL
_EXPECTED: Final = 'expected {"id": …, "type": "ok", "fail", "info" or "error", "value": …}'


class UnclearAnswer(Exception):  # noqa: N818 - an answer
    """Raised when the client program reports an unknown outcome, or does not respond."""


class ClientProgram:
    """A running client program; its responses are limited in time and length."""

    def __init__(self, command: str) -> None:
        # The program belongs to our process group, so it always dies with the group.
        self.child = subprocess.Popen(
            command, shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self._in, self._out = self.child.stdin, self.child.stdout
        self._numbers = count(1)
        self.ended = False
        for stream in (self._in, self._out):
            os.set_blocking(stream.fileno(), False)

    def ask(self, do: str, *, within: float = RESPONSE_TIMEOUT_S, **more: Any) -> Any:
        """Send a request, and return the value in the response to it.

        Args:
            within: the time limit for the response in seconds.

        Raises:
            RolledBack: the transaction was not applied, and never will be.
            UnclearAnswer: the outcome is unknown: the program says so, has ended, or did not
                respond in time.
            BadAnswer: the response does not fit the request. The program receives no more requests.
            TargetError: the program does not support the request.
        """
        number = next(self._numbers)
        line = json.dumps({"id": number, "do": do, **more})
        try:
            response = self._exchange(line, within)
            kind, value, error = _answer(response, number)
        except BadAnswer:
            self.ended = True  # a response that arrives later may belong to this request
            raise
        match kind:
            case "ok":
                return value
            case "fail":
                raise RolledBack(error or "the program answered fail")
            case "info":
                raise UnclearAnswer(error or "the program answered info")
            case _:
                raise TargetError(f"the program cannot {do}: {error or 'it answered error'}")

    def _exchange(self, line: str, within: float) -> bytes:
        until = time.monotonic() + within
        if select.select([self._out], [], [], 0)[0] and (unasked := self._out.read(_LINE)):
            shown = ascii(unasked.decode(errors="replace").strip()[:80])
            raise BadAnswer(
                f"the program wrote an answer that no request asked for (got {shown}); perhaps it "
                "answered one request twice"
            )
        with suppress(BrokenPipeError):  # the program has ended, perhaps after responding
            self._send((line + "\n").encode(), until)
        response, part = bytearray(), b""
        while b"\n" not in part:
            if len(response) > _LINE:
                raise BadAnswer(
                    f"the answer is too long (got more than {_LINE >> 20} MB without the end of a "
                    "line)"
                )
            if not select.select([self._out], [], [], max(0.0, until - time.monotonic()))[0]:
                self._late(within)
            part = self._out.read(1 << 16)
            if not part:
                self.ended = True
                raise UnclearAnswer("the program ended without an answer")
            response += part
        answer, _, more = bytes(response).partition(b"\n")
        if more:
            raise BadAnswer(
                "the program answered one request twice (got more text after the first line)"
            )
        return answer

    def _send(self, data: bytes, until: float) -> None:
        while data:
            if not select.select([], [self._in], [], max(0.0, until - time.monotonic()))[1]:
                self._late(RESPONSE_TIMEOUT_S)
            data = data[self._in.write(data) or 0 :]

    def _late(self, within: float) -> NoReturn:
        self.ended = True
        raise UnclearAnswer(f"the program has not answered in {within:g} s")

    def usable(self) -> bool:
        """Return whether the program can still receive requests."""
        return not self.ended and self.child.poll() is None

    def close(self) -> None:
        """Stop the program and all processes started by it."""
        self.ended = True
        everybody = process_tree(self.child.pid) if self.child.poll() is None else []
        for stream in (self._in, self._out):
            with suppress(OSError):
                stream.close()
        send_signal(everybody, signal.SIGTERM)
        try:
            self.child.wait(_GRACE)
        except subprocess.TimeoutExpired:
            send_signal(everybody, signal.SIGKILL)
            self.child.wait()


def _answer(line: bytes, number: int) -> tuple[str, Any, str]:
    """Parse a response, and return its type, its value and its error."""
    shown = ascii(line.decode(errors="replace").strip()[:80])
    try:
        answer = json.loads(line)
        kind, response = answer["type"], answer["id"]
    except (ValueError, TypeError, KeyError):
        raise BadAnswer(f"not an answer (got {shown}, {_EXPECTED})") from None
    if response != number:
        hint = (
            "; perhaps the program answered one request twice"
            if isinstance(response, int) and response < number
            else ""
        )
        raise BadAnswer(
            f"the program answered another request (got {shown}, expected id {number}){hint}"
        )
    if kind not in ("ok", "fail", "info", "error"):
        raise BadAnswer(f"not an answer (got {shown}, {_EXPECTED})")
    return kind, answer.get("value"), str(answer.get("error") or "")
