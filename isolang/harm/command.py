"""Makes the requests of an application again by starting a command for each.

The command gets the request as one line on its standard input. What it prints and its exit code are
the answer of the request.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from isolang.errors import IsolangError
from isolang.harm.calls import RecordedRun, made_concurrently, writers_of
from isolang.harm.outcome import CallAnswer, Effects, Operation, Plain, plain_value
from isolang.observe.wire.unobserved import HERE

if TYPE_CHECKING:
    from isolang.explain.violation import Violation
    from isolang.harm.state import PreparedState
    from isolang.history.history import History
    from isolang.language.classify.route import Route
    from isolang.observe.observer import Observer
    from isolang.observe.wire.address import ServerAddress
    from isolang.options import Unit

_LONGEST: Final = 60.0  # the seconds that a request may take
_MOST_TEXT: Final = 1 << 20  # the most bytes of an answer to compare


class RequestCommand(Struct, frozen=True, kw_only=True):
    """The command that makes a request.

    Attributes:
        words: the program and its arguments.
        server: the server of the database.
        variable: the environment variable with the URL of the database.
        alone: the environment in which a request finds the database when it runs alone.
    """

    words: tuple[str, ...]
    server: ServerAddress
    variable: str
    alone: Mapping[str, str]

    def start(self, environment: Mapping[str, str]) -> StartedRequest:
        """Start the command, which then waits for its request.

        Raises:
            IsolangError: the program cannot be started.
        """
        try:
            process = subprocess.Popen(
                self.words, env={**environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )  # fmt: skip
        except OSError as error:
            raise IsolangError(
                f"--replay: cannot run the command ({error.strerror}: {self.words[0]})"
            ) from None
        return StartedRequest(process)

    def environment(self, port: int) -> dict[str, str]:
        """Return the environment in which a request finds a proxy before the database."""
        return self.server.environment(HERE, port, self.variable)


class StartedRequest:
    """A started command.

    Attributes:
        complaint: the last line on its standard error, if it ended with an error.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process, self.complaint = process, ""

    def answer(self, line: str) -> CallAnswer:
        """Send a request, and return its answer when the command has ended.

        Raises:
            IsolangError: the command does not end.
        """
        begin = perf_counter()
        try:
            out, errors = self.process.communicate(f"{line}\n".encode(), _LONGEST)
        except subprocess.TimeoutExpired:
            self.stop()
            raise IsolangError(f"the request {line} did not end within {_LONGEST:g} s") from None
        end, code = perf_counter(), self.process.returncode
        if code:
            last = errors.decode(errors="backslashreplace").strip().splitlines()[-1:]
            self.complaint = f"exit code {code}{': ' if last else ''}{''.join(last)}"
        return CallAnswer(
            value=_printed_value(out[:_MOST_TEXT]), error=f"exit code {code}" if code else "",
            begin=begin, end=end,
        )  # fmt: skip

    def stop(self) -> None:
        """End the command."""
        with suppress(OSError):
            self.process.kill()
        self.process.communicate()


def _printed_value(out: bytes) -> Plain:
    """Return what a command has printed: JSON as a value, all else as a text."""
    text = out.decode(errors="backslashreplace").strip()
    if text[:1] in ("{", "["):
        with suppress(ValueError):
            return plain_value(json.loads(text))[0]
    return text or None


class Requests:
    """The requests of a recorded run, which name themselves.

    A request's line is the unit of its transactions, which a comment such as ``/*unit='buy 7'*/``
    names.

    Attributes:
        lines: the line of each request.
        of_transaction: the request of each transaction that has one.
    """

    def __init__(self, history: History) -> None:
        self.lines: list[str] = []
        self.of_transaction: dict[int, int] = {}
        self._programs: dict[int, str] = {}
        numbers: dict[str, int] = {}
        for transaction in range(len(history.columns.txn_position)):
            unit = history.unit_of(transaction)
            if not unit or "\n" in unit:
                continue
            if unit not in numbers:
                numbers[unit] = len(self.lines)
                self.lines.append(unit)
            self.of_transaction[transaction] = numbers[unit]
            for label in history.labels_of(transaction):
                self._programs[numbers[unit]] = label

    def located(self, number: int) -> str:
        """Return a request with its program, such as ``7 (/buy)``."""
        program = self._programs.get(number, "")
        line = self.lines[number]
        return f"{line} ({program})" if program and program != line else line

    def run(self) -> RecordedRun:
        """Return the recorded run, in which the answers of the requests are not known."""
        return RecordedRun(
            calls=range(len(self.lines)), of_transaction=self.of_transaction, outcome=None,
            has_others=True, committed=frozenset(), tables={},
        )  # fmt: skip


class CommandApplication:
    """An application whose requests a command makes again.

    Attributes:
        state: the state of the database before the recorded run.
        effects: the effects outside the database; the command reports none.
        complaint: how a request of the last concurrent run failed; empty if none did.
    """

    def __init__(
        self,
        command: RequestCommand,
        state: PreparedState,
        requests: Requests,
        route: Route,
        folder: Path,
        *,
        observer_at: Callable[[Path], Observer],
        unit: Unit,
    ) -> None:
        """Store the parts.

        Args:
            route: the level that the violation violates.
            folder: where the histories of the requests are recorded.
            observer_at: returns an observer that writes a history into a new file.
            unit: how the histories are read, as for ``--unit``.
        """
        self.state, self.effects = state, Effects()
        self._command, self._requests = command, requests
        self._route, self._folder, self._unit = route, folder, unit
        self._observer_at = observer_at
        self.complaint = ""

    def operation(self, number: int) -> Operation:
        """Return a request that can be made again."""
        line = self._requests.lines[number]

        def make() -> CallAnswer:
            return self._command.start(self._command.alone).answer(line)

        return Operation(name=line, call=make, located=self._requests.located(number))

    def play(
        self, numbers: Sequence[int], pause: Callable[[], float]
    ) -> tuple[dict[int, CallAnswer], Violation | None, set[int]]:
        """Make requests concurrently through a proxy, and check what they did."""
        from isolang.api import check, load_history
        from isolang.verdict import Invalid

        path = Path(tempfile.mkdtemp(dir=self._folder), "played.edn")
        observer = self._observer_at(path)
        observer.start()
        try:
            answers = self._made_through(observer, numbers, pause)
        finally:
            observer.stop()
        for call, is_refused in observer.history.refusals.items():
            answer = answers[numbers[call - 1]]
            answer.refused = is_refused and bool(answer.error)
        calls = observer.history.clients
        history = load_history(path, unit=self._unit)
        of_transaction = {
            transaction: numbers[calls[line] - 1]
            for transaction, line in enumerate(history.columns.txn_position.tolist())
            if line in calls
        }
        verdict = check(history, self._route)
        violation = verdict.violation if isinstance(verdict, Invalid) else None
        return answers, violation, set(writers_of(history, of_transaction))

    def _made_through(
        self, observer: Observer, numbers: Sequence[int], pause: Callable[[], float]
    ) -> dict[int, CallAnswer]:
        """Make requests, each through a port of its own, and return their answers."""
        observer.listener.pause = pause
        ports = observer.listener.open_ports(HERE, range(1, len(numbers) + 1))
        started: list[StartedRequest] = []
        try:
            for port in ports:
                started.append(self._command.start(self._command.environment(port)))

            def make(place: int) -> CallAnswer:
                try:
                    return started[place].answer(self._requests.lines[numbers[place]])
                finally:
                    observer.listener.await_no_longer(place + 1)

            calls = {n: lambda place=place: make(place) for place, n in enumerate(numbers)}
            answers = made_concurrently(calls, {})
            complaints = [request.complaint for request in started if request.complaint]
            self.complaint = complaints[0] if complaints else ""
            return answers
        finally:
            for request in started:
                if request.process.poll() is None:
                    request.stop()
