"""Implements ``isocheck court``, which decides whether a few calls can harm each other."""

from __future__ import annotations

import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING, Annotated

import typer

from isolang.cli.observe import server_of
from isolang.cli.progress import Bar
from isolang.cli.replay import prepare
from isolang.options import OUTPUT
from isolang.output.terminal import escaped, print_lines

if TYPE_CHECKING:
    from isolang.court.case import CourtCase
    from isolang.court.ruling import Ruling
    from isolang.court.trial import Trial


def court(
    *,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="The case: a TOML file (docs/court.md)."),
    ],
    html: Annotated[
        str,
        typer.Option(
            "--html", metavar="FILE", rich_help_panel=OUTPUT, show_default=False,
            help="Write a page about the violation.",
        ),
    ] = "",
    save: Annotated[
        str,
        typer.Option(
            "--save", metavar="DIR", rich_help_panel=OUTPUT, show_default=False,
            help="Save the recorded calls, and a violation with its certificate, in this folder.",
        ),
    ] = "",
) -> int:  # fmt: skip
    """Decide whether a few calls of an application can harm each other on PostgreSQL.

    The exit code is 0 if they are acquitted, 1 if harm is proved, and 3 otherwise.
    """
    from isolang.court.case import load_case
    from isolang.court.ruling import exit_code_of, rule
    from isolang.court.stage import CourtStage
    from isolang.court.trial import Trial, default_level
    from isolang.court.words import ruling_lines

    case = load_case(Path(file))
    rulings: list[Ruling] = []
    with tempfile.TemporaryDirectory(prefix="isocheck-") as folder, server_of(case.database) as at:
        if case.prepare:
            with redirect_stdout(sys.stderr):
                prepare(case.prepare, at, case.variable, option=f"{file}: prepare")
        for number, level in enumerate(case.levels, 1):
            kept = Path(folder, str(number))
            kept.mkdir()
            with default_level(at, level), Bar(1, None) as bar:
                stage = CourtStage(case, at, kept)

                def progress(phase: str, done: int, total: int, bar: Bar = bar) -> None:
                    bar.phase(phase)
                    bar.reached(done, total)

                trial = Trial(case, stage, progress)
                try:
                    evidence = trial.hold()
                finally:
                    stage.close()
            ruling = rule(evidence)
            rulings.append(ruling)
            files = _written(case, number, ruling, trial, html=html, save=save)
            print_lines(*map(escaped, ruling_lines(case, level, ruling, evidence, files)))
    return exit_code_of(rulings)


def _written(
    case: CourtCase, number: int, ruling: Ruling, trial: Trial, *, html: str, save: str
) -> list[str]:
    """Write the recorded calls, and the page and certificate of a violation; return their names."""
    from isolang.court.robustness import joined_lines
    from isolang.report import page, save_page

    conviction = ruling.conviction
    files = []
    suffix = f"-{number}" if len(case.levels) > 1 else ""
    if save:
        folder = Path(save)
        folder.mkdir(parents=True, exist_ok=True)
        calls = folder / f"calls{suffix}.edn"
        calls.write_text("".join(joined_lines(trial.recordings())), "utf-8")
        files.append(f"{calls}; `isocheck robust {calls}` offers mends")
    if conviction is None:
        return files
    if html:
        text = page(conviction.verdict, name=case.name, harm=conviction.harm)
        path = Path(html)
        files.append(save_page(text, path.with_name(f"{path.stem}{suffix}{path.suffix}")))
    if save:
        history = folder / f"court{suffix}.edn"
        copyfile(conviction.played.path, history)
        files += [str(history), str(conviction.verdict.certificate().save(folder))]
    return files
