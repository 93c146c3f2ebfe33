"""Implements ``isocheck observe``, which records an application's transactions and checks them."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from msgspec import Struct
from msgspec.structs import replace

from isolang.cli.choices import number
from isolang.cli.parameters import Include, Mistake, SelectedOptions, Specs
from isolang.cli.replay import Replay, command_words, prepare
from isolang.declared import About
from isolang.errors import HistoryError, IsolangError
from isolang.options import OUTPUT, Options, OutputOptions, ReadOptions
from isolang.output.records import (
    EXIT_UNKNOWN,
    EXIT_VALID,
    Report,
    code_of,
    exit_code,
    json_text,
    report_of,
)
from isolang.output.terminal import console, escaped, print_data, print_lines, warn

if TYPE_CHECKING:
    from isolang.language.classify.route import Route
    from isolang.observe.mariadb.address import MariaDBAddress
    from isolang.observe.mariadb.observer import MariaDBObserver
    from isolang.observe.observer import Observer
    from isolang.observe.unseen import Unseen
    from isolang.observe.wire.address import ServerAddress
    from isolang.verdict import Invalid, Verdict

_PORT: Final = "6543"
_OWN_SERVERS: Final = ("postgres", "postgresql")  # the targets that start a server
_PACE: Final = 0.2  # the seconds between two polls of the live check's result
_LONGEST: Final = 60  # the time limit for one live check, in seconds
_SHOWN: Final = 110  # the maximum number of characters to print of a statement
_MOST_FORMS: Final = 3  # the maximum number of statements to print for each kind


_NOT_KEPT: Final = "observed.edn"  # the name of a history that is not kept
_ALL: Final = About("Explain every kind of violation, not only the first one.", "", OUTPUT, "--all")


class UnseenForm(Struct, frozen=True, kw_only=True):
    """A statement that was not recorded, without its values.

    Attributes:
        statement: the statement, with ``?`` for each value.
        count: how often it occurred.
        tables: the tables that it reads or writes, as far as they are known.
    """

    statement: str
    count: int
    tables: tuple[str, ...] = ()


class NotSeen(Struct, frozen=True, kw_only=True):
    """A kind of operation that an application ran and that the observer did not record.

    Attributes:
        kind: the name of the kind, which ``--allow-unseen`` accepts.
        what: a description of the operations, as the text output prints it.
        count: the number of such operations.
        first: the first example.
        forms: the statements without their values, the most frequent one first.
        harmless: whether these operations cannot change a verdict, or were allowed.
    """

    kind: str
    what: str
    count: int
    first: str
    forms: tuple[UnseenForm, ...] = ()
    harmless: bool


class ObserveReport(Report, frozen=True, kw_only=True):
    """The report of a check, with the unseen operations.

    Attributes:
        unseen: the operations that were not recorded, by kind.
        command_code: the exit code of the command; ``None`` if no command was given.
        evaluated_conditions: how many conditions the server evaluated on recorded rows.
        evaluated_reads: how many predicate reads in the history have one of these conditions.
        noted: whether the violations are only noted (``--harmless note``), as all are harmless with
            this data. The verdict remains invalid.
    """

    unseen: tuple[NotSeen, ...] = ()
    command_code: int | None = None
    evaluated_conditions: int = 0
    evaluated_reads: int = 0
    noted: bool = False


def _unit_source(text: str) -> str:
    """Return what names units besides comments, as an option names it."""
    if text not in ("", "application_name"):
        raise typer.BadParameter(f"got {text!r}, expected application_name")
    return text


def _harmless(text: str) -> str:
    """Return what an option says about harmless violations."""
    if text not in ("fail", "note"):
        raise typer.BadParameter(f"got {text!r}, expected fail or note")
    return text


def observe(
    *,
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="The database's URL, or postgres or mariadb to start a new server for this "
            "recording.",
        ),
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND...", show_default=False,
            help="Run this command with the proxy as its database, such as -- npm test.",
        ),
    ] = None,
    options: Annotated[Options, SelectedOptions("timeout")],
    output: Annotated[
        OutputOptions,
        SelectedOptions("html", forms=("text", "json"), about={"all_anomalies": _ALL}),
    ],
    reading: Annotated[ReadOptions, SelectedOptions("superseded_reads", "unit", "carry")],
    specs: Specs = [],  # noqa: B006 - Typer's way to say that it may be left out
    into: Annotated[
        str,
        typer.Option(
            "--into", metavar="FILE", show_default=False,
            help="Write the history to this new file.",
        ),
    ] = "",
    listen: Annotated[
        str,
        typer.Option(
            "--listen", metavar="HOST:PORT", show_default=False,
            help="The address on which the proxy listens; by default 127.0.0.1:6543, or a free "
            "port if a command is given.",
        ),
    ] = "",
    env: Annotated[
        str,
        typer.Option(
            "--env", metavar="NAME",
            help="The environment variable that gives the command the proxy's URL.",
        ),
    ] = "DATABASE_URL",
    allow_unseen: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-unseen", metavar="KIND", show_default=False,
            help="Do not fail because of unseen operations of this kind (docs/observe.md lists "
            "the kinds); may be repeated.",
        ),
    ] = None,
    most_rows: Annotated[
        int,
        typer.Option(
            "--most-rows", metavar="N", parser=number(int, 1, 10_000_000),
            help="The most rows to read from a table at the start, and for one predicate read.",
        ),
    ] = 10_000,
    unseen_file: Annotated[
        str,
        typer.Option(
            "--unseen", metavar="FILE", show_default=False,
            help="Write every kind of statement that was not seen, with its count, to this new "
            "file.",
        ),
    ] = "",
    versions: Annotated[
        bool,
        typer.Option(
            "--versions",
            help="Take the version of each row, and the writes of other clients, from the "
            "server's log; the history is checked only at the end.",
        ),
    ] = False,
    server_on_trial: Annotated[
        bool,
        typer.Option(
            "--server-on-trial",
            help="Do not rely on when the server shows commits to decide which unseen reads cannot "
            "matter.",
        ),
    ] = False,
    unit_from: Annotated[
        str,
        typer.Option(
            "--unit-from", metavar="application_name", show_default=False,
            help="Take application_name as the name of a transaction's request, too.",
            parser=_unit_source,
        ),
    ] = "",
    replay: Annotated[
        str,
        typer.Option(
            "--replay", metavar="COMMAND", show_default=False,
            help="Say whether violations are harmful: COMMAND gets a request as one line on its "
            "standard input, and makes it again. This puts rows back, so use a test database.",
        ),
    ] = "",
    setup: Annotated[
        str,
        typer.Option(
            "--setup", "--prepare", metavar="COMMAND", show_default=False,
            help="Run this command first, without observing it; it prepares the database.",
        ),
    ] = "",
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore", metavar="TABLE[.COLUMN]", show_default=False,
            help="With --replay, do not compare this table or column; *.COLUMN is that of all "
            "tables. May be repeated.",
        ),
    ] = None,
    harmless: Annotated[
        str,
        typer.Option(
            "--harmless", metavar="fail|note",
            help="With --replay, whether violations that are harmless with this data fail, or are "
            "only noted.",
            parser=_harmless,
        ),
    ] = "fail",
    include: Include = [],  # noqa: B006
) -> int:  # fmt: skip
    """Record what an application does on PostgreSQL or MariaDB through a proxy, and check it."""
    from isolang.jobs.routes import load_routes
    from isolang.observe.mariadb.address import is_mariadb
    from isolang.observe.observer import Observer
    from isolang.observe.unseen import accepted_kinds, reason_for_unknown
    from isolang.observe.wire.address import ServerAddress

    if not (specs or into):
        raise Mistake(
            "nothing would check or keep the recording",
            "check it with --spec ser, or keep it with --into FILE",
        )
    try:
        accepted = accepted_kinds(allow_unseen or ())
    except IsolangError as error:
        raise Mistake(str(error).replace("allow_unseen", "--allow-unseen", 1)) from None
    if command and shutil.which(command[0]) is None:
        raise Mistake(f"cannot run the command (no such program: {command[0]})")
    again, preparing = command_words("--replay", replay), command_words("--setup", setup)
    if not again and (ignore or harmless == "note"):
        raise Mistake(
            f"{'--ignore' if ignore else '--harmless note'} needs --replay",
            "say how a request is made again: --replay COMMAND",
        )
    if is_mariadb(target) and (again or versions or unit_from):
        raise Mistake(
            f"{'--replay' if again else '--versions' if versions else '--unit-from'} is for "
            "PostgreSQL",
            "on MariaDB, the versions of rows are always those of the server's log"
            if versions else "",
        )  # fmt: skip
    host, port = _address(listen or f"127.0.0.1:{'0' if command else _PORT}")
    routes = load_routes(specs, include, options)
    listing = _new_file(unseen_file) if unseen_file else None
    with ExitStack() as stack:
        if into:
            path = _new_file(into)
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="isocheck-"))
            path = Path(folder, "observed.edn")
        where = stack.enter_context(_observed_server(target))
        if preparing:
            prepare(preparing, where, env)
        replays = None
        if again:
            assert isinstance(where, ServerAddress)
            kept = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="isocheck-")))
            replays = Replay(again, where, env, kept, ignored=ignore or (), unit=reading.unit)
            stack.callback(replays.close)

        def observer_at(file: Path, host: str = "127.0.0.1", port: int = 0) -> Observer:
            assert isinstance(where, ServerAddress)
            return Observer(
                where, file, listen=(host, port), most_rows=most_rows, versions=versions,
                reads_log=target in _OWN_SERVERS,
                server_on_trial=server_on_trial,
                application_is_unit=unit_from == "application_name",
            )  # fmt: skip

        observer: Observer | MariaDBObserver
        if isinstance(where, ServerAddress):
            observer = observer_at(path, host, port)
        else:
            from isolang.observe.mariadb.observer import MariaDBObserver

            observer = MariaDBObserver(where, path, listen=(host, port), most_rows=most_rows)
        observer.start()
        code = None
        try:
            with _live_check(observer, path, () if versions else specs):
                code = _wait(observer, where, command or (), host, env)
        finally:
            unseen = observer.stop(accepted)
        seen = _not_seen(unseen, accepted)
        if listing is not None:
            _write_unseen(listing, seen)
        reports: list[ObserveReport] = []
        if specs:
            from isolang.jobs.job import Job, run_job

            reading = replace(reading, allow_unseen=tuple(sorted(set(allow_unseen or ()))))
            job = Job(
                history=str(path), specs=routes, reading=reading, options=options,
                parallel=1, output=replace(output, all_anomalies=False, html=""), form="",
                cross_check="", standing=True, simplest=True,
            )  # fmt: skip
            printer = _Printer(output, routes, into or _NOT_KEPT)
            if replays is not None:
                replays.observer_at = observer_at
                printer.replays, printer.notes = replays, harmless == "note"

            def show(report: Report) -> None:
                counted = replace(
                    _report_with_unseen(report, unseen, accepted, seen, code),
                    evaluated_conditions=len(observer.history.evaluated.evaluated),
                    evaluated_reads=observer.history.evaluated.evaluated_reads,
                )
                known = _report_without_path(counted, observer, command or (), env, into)
                reports.append(printer.show(known))

            run_job(job, show, lambda _: None, printer.decided)
        if output.form != "json":
            _print_end(seen, observer, path if into else None, listing)
            if noted := sum(report.noted for report in reports):
                print_lines(f"noted      {noted} INVALID, harmless with this data")
    if code:
        warn(f"the command ended with exit code {code}")
    if not specs:
        return code or EXIT_VALID
    _, kinds = reason_for_unknown(unseen, accepted)
    of_noted = EXIT_UNKNOWN if kinds or code else EXIT_VALID
    return exit_code({of_noted if report.noted else code_of(report) for report in reports})


def _address(text: str) -> tuple[str, int]:
    """Parse ``HOST:PORT``, and return the host and the port."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise Mistake(
            f"--listen: not an address (got {text!r}, expected HOST:PORT)", "127.0.0.1:6543"
        )
    return host, int(port)


@contextmanager
def _observed_server(target: str) -> Iterator[ServerAddress | MariaDBAddress]:
    """Yield the address of the PostgreSQL or MariaDB server named by the target."""
    from isolang.observe.mariadb.address import is_mariadb

    if not is_mariadb(target):
        with server_of(target) as address:
            yield address
        return
    from isolang.observe.mariadb.server import server_named

    with server_named(target) as mariadb_address:
        yield mariadb_address


@contextmanager
def server_of(target: str) -> Iterator[ServerAddress]:
    """Yield the address of the server named by the target.

    If the target is just ``postgres``, start a server whose log records the changed rows, and stop
    it at the end.
    """
    from isolang.observe.wire.address import ServerAddress, address_of

    if target in _OWN_SERVERS:
        from isolang.run.targets import target_named
        from isolang.run.targets.postgres import Postgres

        made = target_named("postgres")
        assert isinstance(made, Postgres)
        made.reports_versions = True
        try:
            made.start()
            assert made.server is not None
            folder = made.server.folder
            yield ServerAddress(
                conninfo=f"host={folder} user=postgres dbname=postgres", host=folder, port=5432,
                user="postgres", database="postgres",
            )  # fmt: skip
        finally:
            made.close()
        return
    yield address_of(target)


@contextmanager
def _live_check(
    observer: Observer | MariaDBObserver, path: Path, specs: Sequence[str]
) -> Iterator[None]:
    """Check the growing history while the block runs, and print a violation as soon as it is found.

    Only the first specification is checked.
    """
    ended = threading.Event()

    def watch() -> None:
        from isolang.run.play.live import FIRST_CHECK, Watcher, chain_folder

        while observer.history.written < FIRST_CHECK:
            if ended.wait(_PACE):
                return
        watcher = Watcher(path, specs[0], seconds=_LONGEST)
        watcher.watch(lambda: observer.history.written)
        while not ended.wait(_PACE):
            if watcher.refuted.is_set() and watcher.last is not None:
                warn(
                    f"observe: {watcher.last.anomaly} after {watcher.last.transactions:,} "
                    "transactions; the audit at the end decides whether this counts as a violation"
                )
                break
        watcher.end()
        shutil.rmtree(chain_folder(path), ignore_errors=True)

    thread = threading.Thread(target=watch, daemon=True)
    if specs:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if specs:
            thread.join()


def _wait(
    observer: Observer | MariaDBObserver,
    where: ServerAddress | MariaDBAddress,
    command: Sequence[str],
    host: str,
    env: str,
) -> int | None:
    """Run the command, or wait for Ctrl-C if none is given.

    Return the command's exit code; ``None`` without a command.
    """
    stopped = threading.Event()
    before: dict[int, object] = {}

    def stop(*_: object) -> None:
        stopped.set()

    if not command:
        print_lines(
            f"observe: connect to {escaped(host)}:{observer.port}; Ctrl-C ends the observation"
        )
        sys.stdout.flush()
        for kind in (signal.SIGINT, signal.SIGTERM):
            before[kind] = signal.signal(kind, stop)
        stopped.wait()
        for number, handler in before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        return None
    try:
        child = subprocess.Popen(command, env=where.environment(host, observer.port, env))
    except OSError as error:
        raise Mistake(f"cannot run the command ({error.strerror}: {command[0]})") from None
    ended = signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    try:
        return child.wait()
    except KeyboardInterrupt:
        return child.wait()
    finally:
        signal.signal(signal.SIGTERM, ended)


def _not_seen(unseen: Unseen, accepted: Collection[str]) -> tuple[NotSeen, ...]:
    """Return the unseen operations by kind, and whether each kind is harmless or allowed."""
    from isolang.observe.sql.named_tables import tables_of
    from isolang.observe.unseen import kind_of, output_wording

    return tuple(
        NotSeen(
            kind=kind_of(what), what=output_wording(what), count=count,
            first=unseen.examples.get(what, ""), harmless=kind_of(what) in accepted,
            forms=tuple(
                UnseenForm(statement=statement, count=number, tables=tables_of(unseen, statement))
                for statement, number in unseen.most_frequent(what)
            ),
        )
        for what, count in sorted(unseen.items())
    )  # fmt: skip


def _report_with_unseen(
    report: Report,
    unseen: Unseen,
    accepted: Collection[str],
    seen: Sequence[NotSeen],
    code: int | None,
) -> ObserveReport:
    """Return the report with the unseen operations and the command's exit code.

    A valid verdict becomes unknown if the unseen operations may matter, or if the command failed
    and thus did not finish its work.
    """
    from isolang.history.not_seen import allowing_hint
    from isolang.observe.unseen import reason_for_unknown

    fields: Mapping[str, object] = {
        name: getattr(report, name) for name in Report.__struct_fields__
    }
    found = ObserveReport(**fields, unseen=tuple(seen), command_code=code)  # type: ignore[arg-type]
    reason, kinds = reason_for_unknown(unseen, accepted)
    lacks_only_unseen = bool(reason) and found.reason.startswith(reason)
    if not (found.verdict == "valid" and (kinds or code)) and not (lacks_only_unseen and code):
        return found
    reasons = [f"{reason}; {allowing_hint(kinds)}"] if kinds else []
    if code:
        reasons.append(
            f"the observed history is valid, but the command ended with exit code {code}"
        )
    return replace(
        found, verdict="unknown", reason="\n".join(reasons), certified=False, certified_reason=""
    )


def _report_without_path(
    report: ObserveReport,
    observer: Observer | MariaDBObserver,
    command: Sequence[str],
    env: str,
    into: str | None,
) -> ObserveReport:
    """Return the report without the path of a temporary history.

    If no transaction was observed, the reason is replaced by advice on how to connect.
    """
    if not observer.history.outcomes.total():
        from isolang.observe.observer import Observer

        names = "PG" if isinstance(observer, Observer) else "MYSQL_"
        port = "PGPORT" if isinstance(observer, Observer) else "MYSQL_TCP_PORT"
        where = f"${names}HOST and ${port}, or ${env}," if command else f"port {observer.port}"
        reason = (
            f"no transaction was observed; hint: the application must connect to {where} and "
            "read or write a table there"
        )
        report = replace(report, reason=reason)
    if into:
        return report
    standing = report.standing
    known = standing if standing is not None and standing.looked_for else None
    return replace(report, history=_NOT_KEPT, standing=known)


class _Printer:
    """Prints the reports, each invalid verdict as soon as it is known.

    Attributes:
        replays: makes the requests of violations again; ``None`` if no command can.
        notes: whether violations that are harmless with this data are only noted.
    """

    def __init__(
        self, output: OutputOptions, routes: Sequence[tuple[str, object]], history: str
    ) -> None:
        """Store the options, the specifications by name, and the name of the history."""
        self._output, self._history = output, history
        self._names = {id(route): name for name, route in routes}
        self._verdict: Verdict | None = None
        self._invalid: tuple[Invalid, Route] | None = None
        self._grouped: Invalid
        self.replays: Replay | None = None
        self.notes = False

    def decided(self, verdict: Verdict, route: Route) -> None:
        """Take a verdict, and print the title of an invalid one before it is explained.

        SOUND BECAUSE: what was not seen changes only valid verdicts.
        """
        from isolang.output.text import render_title
        from isolang.verdict import Invalid

        self._verdict = verdict
        if not isinstance(verdict, Invalid):
            return
        self._invalid = verdict, route
        if self._output.form == "text" and self.replays is None:
            report = report_of(self._history, self._names[id(route)], verdict)
            render_title(report, console(sys.stdout))
            sys.stdout.flush()

    def show(self, report: ObserveReport) -> ObserveReport:
        """Print a report, with its violations in groups, and return it."""
        from isolang.harm.calls import are_all_harmless
        from isolang.output.text import render

        titled = self._invalid is not None and self.replays is None
        if self._invalid is not None:
            report, self._grouped = _report_with_groups(report, *self._invalid)
            if self.replays is not None:
                report = self.replays.with_harm(report, *self._invalid)
                noted = self.notes and are_all_harmless(report.harm, report.groups)
                report = replace(report, noted=noted)
            self._invalid = None
        if self._output.html:
            report = self._with_page(report)
        if self._output.form == "json":
            print_data(json_text(report))
        else:
            every = self._output.all_anomalies
            render(report, console(sys.stdout), titled=titled, every=every)
        return report

    def _with_page(self, report: ObserveReport) -> ObserveReport:
        """Write the page about the verdict, and return the report with the name of its file."""
        from isolang.jobs.job import page_path
        from isolang.report import page, save_page
        from isolang.verdict import Invalid

        verdict, violation = self._verdict, report.violation
        if verdict is None or verdict.outcome != report.verdict:  # something unseen may matter
            return report
        if isinstance(verdict, Invalid) and violation is not None:
            verdict = replace(self._grouped, violation=violation)
        text = page(verdict, name=self._history, harm=report.harm, groups=report.groups)
        try:
            saved = save_page(text, page_path(self._output.html, self._history, report))
        except IsolangError as error:
            return replace(report, unsaved=(*report.unsaved, str(error)))
        return replace(report, page=saved)


def _report_with_groups(
    report: ObserveReport, verdict: Invalid, route: Route
) -> tuple[ObserveReport, Invalid]:
    """Return the report with all groups of violations, and the first of them as its violation.

    The second result is the verdict with this violation.

    Ctrl-C ends the search, and the report then explains the violation of the verdict.
    """
    from isolang.pipeline.groups import with_groups

    try:
        first, groups = with_groups(verdict, route)
    except (KeyboardInterrupt, MemoryError):
        return report, verdict
    violation = first.violation
    grouped = replace(
        report, groups=groups, violation=violation, anomaly=violation.anomaly,
        reason=violation.headline(),
    )  # fmt: skip
    return grouped, first


def _new_file(name: str) -> Path:
    """Return the path of a file to write."""
    path = Path(name)
    if path.exists():
        raise HistoryError(f"{name}: the file already exists; name a new file")
    return path


def _write_unseen(path: Path, seen: Sequence[NotSeen]) -> None:
    """Write each statement that was not seen on a line, with its count, kind and tables."""
    lines = ["count\tkind\twhat\ttables\tstatement\n"]
    for kind in seen:
        for form in kind.forms or (UnseenForm(statement="", count=kind.count),):
            columns = (kind.kind, kind.what, ", ".join(form.tables), form.statement)
            lines.append("\t".join((str(form.count), *columns)) + "\n")
    path.write_text("".join(lines), encoding="utf-8")


def _print_end(
    seen: Sequence[NotSeen],
    observer: Observer | MariaDBObserver,
    kept: Path | None,
    listing: Path | None,
) -> None:
    """Print what was observed, what was not seen, and where the history is."""
    outcomes = observer.history.outcomes
    print_lines(
        f"observed   {outcomes.total():,} transactions: {outcomes['ok']:,} committed, "
        f"{outcomes['fail']:,} aborted, {outcomes['info']:,} of unknown outcome"
    )
    evaluated = observer.history.evaluated
    if number := len(evaluated.evaluated):
        print_lines(
            f"evaluated  {number:,} condition{'' if number == 1 else 's'} by the server, of "
            f"{evaluated.evaluated_reads:,} predicate reads"
        )
    for kind in seen:
        allowed = ", harmless" if kind.harmless else ""
        print_lines(f"not seen   {kind.count:,} {escaped(kind.what)} ({kind.kind}{allowed})")
        if len(kind.forms) > 1:
            shown = kind.forms[:_MOST_FORMS]
            print_lines(*(_unseen_line(form.count, form.statement) for form in shown))
            if more := len(kind.forms) - len(shown):
                hint = "" if listing is not None else "; --unseen FILE writes all"
                print_lines(f"           and {more:,} more{hint}")
        elif kind.first:
            print_lines(f"           first: {escaped(kind.first[:_SHOWN])}")
    if not seen:
        print_lines("not seen   nothing")
    if listing is not None:
        print_lines(f"           all of it: {escaped(str(listing))}")
    print_lines(
        f"history    {'not kept; --into FILE keeps it' if kept is None else escaped(str(kept))}"
    )


def _unseen_line(count: int, statement: str) -> str:
    from isolang.history.statement_text import one_line

    return f"           {count:,} × {escaped(one_line(statement, _SHOWN))}"
