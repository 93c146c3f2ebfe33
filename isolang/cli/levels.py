"""Implements ``isocheck levels``, which checks a history against all levels of the library."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec import Struct
from msgspec.structs import replace

from isolang.cli.choices import completer_of_names, parser_of_names
from isolang.cli.parameters import HistoryPaths, Include, Mistake, SelectedOptions, WorkersURL
from isolang.cli.plot import require_plottable
from isolang.cli.progress import Bar
from isolang.cli.several import expand_folders
from isolang.cli.spec_place import PlaceReport, place_line
from isolang.declared import About
from isolang.errors import HistoryError
from isolang.options import OUTPUT, Options, OutputOptions, ReadOptions
from isolang.output.records import (
    EXIT_INPUT,
    EXIT_INVALID,
    EXIT_UNKNOWN,
    EXIT_VALID,
    exit_code,
    json_text,
)
from isolang.output.terminal import escaped, print_data, print_lines, use_color, warn

if TYPE_CHECKING:
    from isolang.pipeline.levels import Levels, LevelStanding

_MARKS = {"satisfied": "✓", "violated": "✗", "unknown": "?", "no times": "–"}

# The rows of the drawn lattice, strongest level first.
_ROWS: tuple[tuple[str, ...], ...] = (
    ("sser",), ("strong-si", "ser"), ("si",), ("psi", "pc"), ("cc",), ("ra",), ("rc",),
)  # fmt: skip
_WIDTH = 34
_GUARANTEES = ("ryw", "mr", "mw", "wfr")
_PORTABLE = ("pl-3", "pl-2", "pl-1")
_OF_EACH = (
    "the history states the level at which each transaction ran, but `isocheck "
    "levels` checks every level on all transactions. `isocheck --spec mixed` or "
    "`--spec mixed-levels` checks each transaction at its own level"
)


class LevelReport(Struct, frozen=True, kw_only=True):
    """The verdict of one level of the library.

    Attributes:
        name: the name of the level.
        standing: the verdict; ``no times`` if the level needs real time and the history has no
            times.
        certified: whether a checker certified this verdict, or the verdict from which it follows.
        follows_from: the level from whose verdict this verdict follows; null if this level was
            checked.
        anomaly: the name of the violation.
        reason: the meaning of the anomaly, or why the verdict is unknown.
        seconds: how long the check took.
        implies: the levels that this level implies directly.
    """

    name: str
    standing: Literal["satisfied", "violated", "unknown", "no times"]
    certified: bool
    follows_from: str | None
    anomaly: str | None
    reason: str
    seconds: float
    implies: tuple[str, ...]


class OwnReport(Struct, frozen=True, kw_only=True):
    """The verdict of the specification in ``--spec``, and its place among the levels.

    Attributes:
        verdict: the verdict on the history.
        certified: whether a checker certified the verdict.
        reason: why the history is not valid; empty if it is.
        place: where the specification lies among the levels.
    """

    verdict: Literal["valid", "invalid", "unknown"]
    certified: bool
    reason: str
    place: PlaceReport


class LevelsReport(Struct, frozen=True, kw_only=True):
    """The verdicts of all levels of the library on a history.

    Attributes:
        schema: a number that changes when a field is removed or changes its meaning.
        history: the history, as named on the command line.
        strongest: the satisfied levels that no other satisfied level implies.
        weakest_violated: the violated levels that imply no other violated level.
        levels: the verdicts of all levels.
        own: the verdict of the specification in ``--spec``; null without this option.
        clock_errors: with ``--clock-error auto``, for each violated level that uses real time, the
            least clock error in nanoseconds with which it is satisfied; null if none suffices.
        seconds: how long all checks took.
        notes: reasons why the satisfied levels may be no evidence.
    """

    schema: Literal[1] = 1
    history: str
    strongest: tuple[str, ...]
    weakest_violated: tuple[str, ...]
    levels: tuple[LevelReport, ...]
    own: OwnReport | None = None
    clock_errors: dict[str, int | None] = {}
    seconds: float
    notes: tuple[str, ...] = ()


def _names() -> list[str]:
    from isolang.language.hierarchy import IMPLIES

    return list(IMPLIES)


def levels(
    *,
    histories: HistoryPaths,
    options: Annotated[Options, SelectedOptions("timeout", "memory", "threads", "certify", "seed")],
    reading: ReadOptions,
    output: Annotated[
        OutputOptions,
        SelectedOptions(
            "color",
            "plot",
            forms=("text", "json"),
            about={
                "html": About(
                    "Write an HTML page with the levels, and the verdict on the weakest one that "
                    "the "
                    "history violates.",
                    "FILE", OUTPUT,
                ),
            },
        ),
    ],
    spec: Annotated[
        str,
        typer.Option(
            "--spec", "-s", metavar="SPEC", show_default=False,
            help="Also check this specification, and show where it lies among the levels.",
        ),
    ] = "",
    include: Include = [],  # noqa: B006
    workers: WorkersURL = "",
    at_least: Annotated[
        str | None,
        typer.Option(
            "--at-least", metavar="LEVEL", show_default=False, parser=parser_of_names(_names),
            autocompletion=completer_of_names(_names),
            help="Exit with code 1 if a history violates this level.",
        ),
    ] = None,
) -> int:  # fmt: skip
    """Find the strongest levels that a history satisfies, and the weakest it violates.

    The timeout is for each level. The exit code is 3 if the verdict on some level is unknown; with
    --at-least, only the verdict on that level counts.
    """
    use_color(output.color)
    histories = expand_folders(histories, reading.format)
    if output.html and len(histories) > 1:
        raise Mistake("--html shows a single history: name only one")
    if output.plot:
        require_plottable(output.plot)
        if len(histories) > 1:
            raise Mistake("--plot shows a single history: name only one")
    if workers and "-" in histories:
        raise Mistake("--workers: the workers cannot read this machine's standard input (-)")
    tasks = [
        _Task(
            history=history,
            options=options,
            reading=reading,
            output=output,
            spec=spec,
            include=tuple(include),
            at_least=at_least,
            alone=len(histories) == 1,
        )
        for history in histories
    ]
    codes: set[int] = set()
    with Bar(len(histories), options.timeout) as bar:
        for answer in (
            _answers_by_workers(tasks, workers, bar) if workers else _answers_here(tasks, bar)
        ):
            bar.pause()
            warn(*answer.warnings)
            if output.form == "json":
                print_data(answer.text)
            elif answer.text:
                print_lines(answer.text)
            codes.add(answer.code)
            bar.step()
    return exit_code(codes)


class _Task(Struct, frozen=True, kw_only=True):
    """A history, and the options for it; ``alone`` if it is the only one."""

    history: str
    options: Options
    reading: ReadOptions
    output: OutputOptions
    spec: str
    include: tuple[str, ...]
    at_least: str | None
    alone: bool


class _Answer(Struct, frozen=True, kw_only=True):
    """The command's output for one history, and its exit code."""

    text: str = ""
    warnings: tuple[str, ...] = ()
    code: int


def _answers_here(tasks: Sequence[_Task], bar: Bar) -> Iterator[_Answer]:
    return (answer_task(task, bar.phase) for task in tasks)


def _answers_by_workers(tasks: Sequence[_Task], url: str, bar: Bar) -> Iterator[_Answer]:
    from isolang.jobs.workers import Workers

    with Workers(url) as workers:
        bar.phase(workers.workers_phrase())
        folder = os.getcwd()
        for answer in workers.in_order(_answer_of_child, ((folder, task) for task in tasks)):
            yield answer
            bar.phase(workers.workers_phrase())


def _answer_of_child(folder: str, task: _Task) -> _Answer:
    """Return a child process's answer, computed with this worker's share of memory and threads."""
    from isolang.errors import WorkerError
    from isolang.jobs.workers import (
        call_in_child,
        require_folder,
        tasks_at_a_time,
        with_thread_share,
    )
    from isolang.limits import default_memory

    require_folder(folder)
    options = with_thread_share(task.options)
    if options.memory is None:
        options = replace(options, memory=default_memory(tasks_at_a_time()))
    try:
        return call_in_child(answer_task, folder, replace(task, options=options))
    except WorkerError as error:
        return _Answer(warnings=(f"isocheck: {task.history}: {error}",), code=EXIT_UNKNOWN)


def answer_task(task: _Task, phase: Callable[[str], object] = lambda name: None) -> _Answer:
    """Check a history against all levels, and return the command's output for it.

    Raises:
        HistoryError: if the history cannot be read and is the command's only one.
    """
    from isolang.limits import default_memory, memory_cap

    options, reading = task.options, task.reading
    search = reading.clock_error == "auto"
    if search:
        reading = replace(reading, clock_error="")
    warnings: list[str] = []
    memory = default_memory() if options.memory is None else options.memory
    try:
        with memory_cap(memory, of_process=True):
            found, own = _judge(task, reading, warnings, phase)
            errors = _least_errors(found, options, phase) if search else {}
    except HistoryError as error:
        if task.alone:
            raise
        return _Answer(warnings=(*warnings, f"isocheck: {error}"), code=EXIT_INPUT)
    if task.output.html:
        _write_page(found, task.history, options, task.output.html)
    if task.output.plot:
        _draw(found, task.output.plot)
    if task.output.form == "json":
        text = json_text(_report(task.history, found, own, errors))
    else:
        lines = (*_text(task.history, found), *_clock_error_lines(errors), *_own_text(own))
        text = "\n".join(lines if task.alone else (*lines, ""))
    code = _code(found, own, task.at_least, warnings)
    return _Answer(text=text, warnings=tuple(warnings), code=code)


def _judge(
    task: _Task, reading: ReadOptions, warnings: list[str], phase: Callable[[str], object]
) -> tuple[Levels, OwnReport | None]:
    from isolang.api import levels
    from isolang.history import read_history

    phase("read")
    loaded = read_history(task.history, reading)
    if len(loaded.columns.txn_levels):
        warnings.append(f"note: {loaded.name}: {_OF_EACH}")
    options = task.options
    found = levels(
        loaded,
        timeout=options.timeout,
        memory=options.memory,
        certify=options.certify,
        seed=options.seed,
        threads=options.threads,
        progress=phase,
    )
    return found, _own_report(found, task.spec, task.include, options, phase) if task.spec else None


def _least_errors(
    found: Levels, options: Options, phase: Callable[[str], object]
) -> dict[str, int | None]:
    """Return, for each violated strict level, the least clock error under which it holds.

    Clock errors are in nanoseconds; ``None`` if none suffices.
    """
    from isolang.pipeline.levels import least_clock_error

    if found.history.harmful_unseen():
        return {}
    violated = [n for n in ("sser", "strong-si") if found.levels[n].standing == "violated"]
    errors: dict[str, int | None] = {}
    for name in violated:
        phase(f"least clock error of {name}")
        errors[name] = least_clock_error(found.history, name, options)
    return errors


def _clock_error_lines(errors: Mapping[str, int | None]) -> Iterator[str]:
    from isolang.history.clock_error import format_duration

    for name, error in errors.items():
        if error is None:
            yield f"  clocks               {name}: no clock error explains the violation"
        else:
            bound = format_duration(error)
            yield f"  clocks               {name} holds if the clocks agree within {bound}"


def _code(found: Levels, own: OwnReport | None, at_least: str | None, warnings: list[str]) -> int:
    """Return the exit code for one history, which depends on ``--at-least`` if given."""
    if at_least is None:
        unknown = any(level.standing == "unknown" for level in found.levels.values())
        unknown |= own is not None and own.verdict == "unknown"
        return EXIT_UNKNOWN if unknown else EXIT_VALID
    standing = found.levels[at_least].standing
    if standing == "no times":
        warnings.append(
            f"{found.history.name}: {at_least} needs real time, but the history has none"
        )
        return EXIT_INPUT
    return {"satisfied": EXIT_VALID, "violated": EXIT_INVALID}.get(standing, EXIT_UNKNOWN)


def _own_text(own: OwnReport | None) -> Iterator[str]:
    from isolang.comparison.separate import describe_lacking

    if own is not None:
        reason = f": {own.reason}" if own.reason else ""
        yield ""
        yield f"  {escaped(own.place.name)}: {own.verdict}{reason}"
        yield f"  {place_line(own.place)}"
        if own.place.lacking:
            yield f"    {describe_lacking(own.place.lacking)}"


def _write_page(found: Levels, history: str, options: Options, page: str) -> None:
    """Write a page about the weakest violated level.

    If no level is violated, the page is about the strongest satisfied level.
    """
    from msgspec.structs import asdict

    from isolang.api import check
    from isolang.report import page as make
    from isolang.report import save_page

    level = (*found.weakest_violated(), *found.strongest(), "pl-1")[0]
    verdict = check(found.history, level, **asdict(options))
    save_page(make(verdict, name=history, levels=found), Path(page))


def _draw(found: Levels, plot: str) -> None:
    from isolang.report.figure import lattice
    from isolang.report.picture import save_picture

    save_picture(lattice(found), plot)


def _own_report(
    found: Levels,
    name: str,
    include: Sequence[str],
    options: Options,
    progress: Callable[[str], object],
) -> OwnReport:
    from msgspec.structs import asdict

    from isolang.api import check
    from isolang.cli.spec_place import find_place, place_report
    from isolang.language.load import load_spec
    from isolang.output.records import report_of

    spec = load_spec(name, include_path=include)
    report = report_of("", name, check(found.history, spec, **asdict(options)))
    assert report.verdict != "error"
    return OwnReport(
        verdict=report.verdict,
        certified=report.certified,
        reason=report.reason,
        place=place_report(find_place(spec, progress=progress)),
    )


def _report(
    history: str, found: Levels, own: OwnReport | None, errors: Mapping[str, int | None]
) -> LevelsReport:
    from isolang.language.hierarchy import IMPLIES

    return LevelsReport(
        history=history,
        strongest=found.strongest(),
        weakest_violated=found.weakest_violated(),
        levels=tuple(
            LevelReport(
                name=level.name,
                standing=level.standing,
                certified=level.certified,
                follows_from=level.follows_from or None,
                anomaly=level.anomaly or None,
                reason=level.reason,
                seconds=round(level.seconds, 6),
                implies=IMPLIES[level.name],
            )
            for level in found.levels.values()
        ),
        own=own,
        clock_errors=dict(errors),
        seconds=round(found.seconds, 6),
        notes=tuple(map(str, found.notes)),
    )


def _text(history: str, found: Levels) -> Iterator[str]:
    from isolang.language.library import list_library

    titles = {entry.name: entry.title for entry in list_library()}
    yield escaped(history)
    yield ""
    if len(found.worth_listing()) < len(found.levels):
        yield "  with session order, and without"
        yield from (f"  {line}".rstrip() for line in _lattice_lines(found, ""))
    else:
        yield "  with session order".ljust(_WIDTH + 2) + "without"
        for with_order, without in zip(
            _lattice_lines(found, ""), _lattice_lines(found, "-nosession"), strict=True
        ):
            yield f"  {with_order.ljust(_WIDTH)}{without}".rstrip()
    yield ""
    yield "  session guarantees   " + _names_with_marks(found, _GUARANTEES)
    yield "  Adya, no sessions    " + _names_with_marks(found, _PORTABLE)
    yield ""
    for name in found.strongest():
        yield f"  strongest satisfied  {name}: {titles[name]}"
    if not found.strongest():
        yield "  strongest satisfied  none"
    weakest = found.weakest_violated()
    if not weakest:
        yield "  weakest violated     none"
    for name in weakest:
        level = found.levels[name]
        certified = "certified" if level.certified else "not certified"
        yield f"  weakest violated     {name}: {titles[name]}"
        yield f"                       {level.anomaly} ({certified}): {level.reason}"
    for level in found.levels.values():
        if level.standing == "unknown":
            yield f"  unknown              {level.name}: {level.reason}"
    if any(level.standing == "no times" for level in found.levels.values()):
        yield "  –                    needs real time, but the history has none"
    for note in found.notes:
        yield from textwrap.wrap(
            note, 79, initial_indent="  note                 ", subsequent_indent=" " * 23
        )
    checked = sum(not level.follows_from for level in _judged_levels(found))
    yield (
        f"  checked              {checked} levels; the others follow from them; "
        f"{found.seconds:.2f} s"
    )


def _judged_levels(found: Levels) -> Iterator[LevelStanding]:
    return (level for level in found.levels.values() if level.standing != "no times")


def _names_with_marks(found: Levels, names: tuple[str, ...]) -> str:
    return "   ".join(f"{_MARKS[found.levels[name].standing]} {name}" for name in names)


def _lattice_lines(found: Levels, family: str) -> Iterator[str]:
    """Yield the lines of the drawn lattice of levels."""
    for number, row in enumerate(_ROWS):
        cells = [f"{_MARKS[found.levels[name + family].standing]} {name}" for name in row]
        if number:
            before, now = len(_ROWS[number - 1]), len(row)
            yield {(1, 2): "       /       \\", (2, 1): "       \\       /"}.get(
                (before, now), "           |"
            )
        if len(cells) == 1:
            yield " " * 9 + cells[0]
        else:
            yield " " + cells[0].ljust(14) + cells[1]
