"""Implements ``isocheck spec try``, which checks a specification each time it is saved."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from isolang.cli.choices import number
from isolang.cli.parameters import Include
from isolang.errors import IsolangError, SpecError
from isolang.output.records import EXIT_INVALID, EXIT_VALID
from isolang.output.terminal import escaped, print_lines

_POLL = 0.3


def try_spec(
    *,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A specification.")],
    histories: Annotated[
        list[str],
        typer.Option(
            "--history", metavar="PATH",
            help="Check this history, or each history in this folder, after each save; may be "
            "repeated.",
        ),
    ] = [],  # noqa: B006
    once: Annotated[bool, typer.Option("--once", help="Exit after the first report; do not wait "
    "for the next save.")] = False,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds", metavar="S", help="Time limit in seconds for finding its place in the "
            "library.",
            parser=number(float, 0, 1e6),
        ),
    ] = None,
    include: Include = [],  # noqa: B006
) -> int:  # fmt: skip
    """Check a specification each time it is saved.

    Reports whether it is well-formed, how it is decided, where it lies among the levels of the
    library, and its verdicts on a folder of histories. Ctrl-C ends it.
    """
    path = Path(file)
    while True:
        seen = _modification_times(path, histories)
        good = True
        for line in _report_lines(path, histories, include, seconds):
            print_lines(line)
            good &= not line.startswith("error")
        if once:
            return EXIT_VALID if good else EXIT_INVALID
        print_lines("", f"waiting for the next save of {escaped(file)} …")
        sys.stdout.flush()
        while _modification_times(path, histories) == seen:
            time.sleep(_POLL)


def _modification_times(path: Path, histories: Sequence[str]) -> list[int]:
    """Return the times of the last changes to the specification and to each history."""
    files = [path, *_files(histories)]
    return [one.stat().st_mtime_ns if one.exists() else 0 for one in files]


def _files(histories: Sequence[str]) -> list[Path]:
    """Return the histories, with each folder replaced by its histories."""
    from isolang.history.load import histories_in

    found: list[Path] = []
    for one in map(Path, histories):
        found += histories_in(one)[0] if one.is_dir() else [one]
    return found


def _report_lines(
    path: Path, histories: Sequence[str], include: Sequence[str], seconds: float | None
) -> Iterator[str]:
    from isolang.cli.spec_examples import broken_examples
    from isolang.cli.spec_place import find_place, place_line, place_report
    from isolang.language.classify.route import route
    from isolang.language.load import find_errors, load_spec

    # The path must be a Path, because a string would be looked up in the library.
    errors = find_errors(path, include_path=include)
    for error in errors:
        yield f"error: {escaped(str(error), lines=True)}"
    if errors:
        return
    spec = load_spec(path, include_path=include)
    yield f"{escaped(spec.name)}: well-formed"
    try:
        way = route(spec)
    except SpecError as error:
        yield f"error: {escaped(str(error), lines=True)}"
        return
    yield f"  decided by   {way.kind}"
    yield from (f"  {escaped(one, lines=True)}" for one in way.warnings)
    broken = [*broken_examples(spec)]
    yield from (f"error: {escaped(one, lines=True)}" for one in broken)
    if spec.examples:
        yield f"  examples     {len(spec.examples) - len(broken)} of {len(spec.examples)} as stated"
    try:
        yield f"  place        {place_line(place_report(find_place(spec, seconds=seconds)))}"
    except SpecError as error:
        yield f"  place        unknown: {escaped(str(error))}"
    for one in _files(histories):
        yield f"  {_verdict(one, way):<12} {escaped(one.name)}"


def _verdict(path: Path, way: object) -> str:
    from isolang.api import check, load_history
    from isolang.language.classify.plan import Route

    assert isinstance(way, Route)
    try:
        return check(load_history(path), way, timeout=10.0).outcome
    except IsolangError as error:
        return f"no verdict ({error})"
