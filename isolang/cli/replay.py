"""Implements ``isocheck observe --replay``, which says the harm of violations."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from isolang.cli.parameters import Mistake
from isolang.errors import IsolangError
from isolang.explain.harm import Harm
from isolang.output.records import with_harm

if TYPE_CHECKING:
    from isolang.cli.observe import ObserveReport
    from isolang.harm.state import PreparedState
    from isolang.language.classify.route import Route
    from isolang.observe.mariadb.address import MariaDBAddress
    from isolang.observe.observer import Observer
    from isolang.observe.wire.address import ServerAddress
    from isolang.options import Unit
    from isolang.verdict import Invalid


def command_words(option: str, text: str) -> tuple[str, ...]:
    """Return the program and the arguments of a command in one text; empty for no command."""
    if not text:
        return ()
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise Mistake(f"{option}: not a command (got {text!r}: {error})") from None
    if not words or shutil.which(words[0]) is None:
        raise Mistake(f"{option}: cannot run the command (no such program: {text})")
    return tuple(words)


def prepare(
    words: Sequence[str],
    server: ServerAddress | MariaDBAddress,
    variable: str,
    *,
    option: str = "--setup",
) -> None:
    """Run the command that prepares the database.

    Args:
        option: what names the command, for messages.

    Raises:
        IsolangError: the command fails.
    """
    from isolang.observe.observer import unobserved
    from isolang.observe.wire.address import ServerAddress

    if isinstance(server, ServerAddress):
        proxy = unobserved(server)
        try:
            code = subprocess.call(words, env=proxy.environment(variable))
        finally:
            proxy.stop()
    else:
        code = subprocess.call(words, env=server.environment(server.host, server.port, variable))
    if code:
        raise IsolangError(f"{option}: the command ended with exit code {code} (got {words[0]})")


class Replay:
    """Makes the requests of a recorded run again, to find the harm of its violations."""

    def __init__(
        self,
        words: tuple[str, ...],
        server: ServerAddress,
        variable: str,
        folder: Path,
        *,
        ignored: Sequence[str],
        unit: Unit,
    ) -> None:
        """Read the state of the database, from which all runs begin.

        Args:
            words: the command that makes a request.
            variable: the environment variable with the URL of the database.
            folder: where the histories of the requests are recorded.
            ignored: the tables and columns that are not compared.
            unit: how histories are read, as for ``--unit``.

        Raises:
            IsolangError: the database cannot be read.
        """
        from isolang.harm.calls import DEFAULT_IGNORED
        from isolang.harm.command import RequestCommand
        from isolang.harm.state import PreparedState
        from isolang.observe.observer import unobserved

        self._folder, self._unit = folder, unit
        self._proxy = unobserved(server)
        self._command = RequestCommand(
            words=words, server=server, variable=variable, alone=self._proxy.environment(variable)
        )
        self._state: PreparedState = PreparedState(server, ignored=(*DEFAULT_IGNORED, *ignored))
        self.observer_at: Callable[[Path], Observer]

    def with_harm(self, report: ObserveReport, verdict: Invalid, route: Route) -> ObserveReport:
        """Return a report with the harm of its violations, the worst first.

        The database is left with the rows that the recorded run left.
        """
        from isolang.harm.calls import HarmOfViolations, ranked_groups
        from isolang.harm.command import CommandApplication, Requests

        harm: Harm
        groups = report.groups
        before = self._state.read()
        try:
            requests = Requests(verdict.history)
            application = CommandApplication(
                self._command, self._state, requests, route, self._folder,
                observer_at=self.observer_at, unit=self._unit,
            )  # fmt: skip
            violations = HarmOfViolations(application, requests.run())
            if groups is not None:
                groups = ranked_groups(groups, violations)
            first = groups.groups[0].harm if groups is not None else None
            harm = first or violations.harm(verdict.violation)
            if harm.kind == "unknown" and application.complaint:
                why = f"{harm.why}; a request failed ({application.complaint})"
                harm = replace(harm, why=why)
        except IsolangError as error:
            harm = Harm(kind="unknown", why=str(error).removeprefix("harm: "))
        finally:
            with suppress(IsolangError):  # the report counts more
                self._state.leave(before)
        return with_harm(replace(report, groups=groups), harm)

    def close(self) -> None:
        """End the connections to the database."""
        self._proxy.stop()
        self._state.close()
