"""Implements ``isocheck encode``, which writes the problem of a history as a file for solvers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from isolang.cli import choices
from isolang.cli.parameters import (
    HistoryPath,
    Include,
    OneSpec,
    Plugins,
    SelectedOptions,
    accept_names,
    accept_only,
)
from isolang.errors import OptionError, SolverError
from isolang.files import write_atomically
from isolang.jobs.routes import load_route
from isolang.options import Options, ReadOptions
from isolang.output.records import EXIT_VALID
from isolang.output.terminal import print_data, warn

if TYPE_CHECKING:
    from isolang.encodings.formula import Formula, Theory
    from isolang.history.history import History
    from isolang.language.classify.route import Route

# The theories that each format can express; the first one supported by the encoding is used.
THEORIES: Final[dict[str, tuple[Theory, ...]]] = {
    "dimacs": ("none",),
    "smt2": ("difference", "bitvector", "none"),
    "gnf": ("acyclicity",),
}


def encode(
    *,
    history: HistoryPath,
    target: Annotated[
        str, typer.Argument(metavar="FILE", help="The file to write; - for standard output.")
    ],
    spec: OneSpec,
    to: Annotated[str, typer.Option("--to", help="The format to write.", **accept_only(*THEORIES))],
    encoding: Annotated[
        str,
        typer.Option(
            "--encoding",
            help="How the problem is encoded.",
            **accept_names(choices.encodings, "NAME"),
        ),
    ],
    options: Annotated[Options, SelectedOptions("prune")],
    reading: ReadOptions,
    plugin: Plugins = [],  # noqa: B006
    include: Include = [],  # noqa: B006
) -> int:
    """Write the problem of a history as a file for solvers (DIMACS, SMT-LIB, GNF)."""
    from isolang.history import read_history
    from isolang.solvers.registry import find_encoding

    route = load_route(spec, include)
    find_encoding(encoding, options.prune, route)  # finds mistakes before the history is read
    found = read_history(history, reading)
    if lacking := found.lacking():
        warn(f"note: {found.name}: the problem lacks a part of what happened: {lacking}")
    text = written(found, route, to=to, encoding=encoding, prune=options.prune)
    if target == "-":
        print_data(text)
    else:
        try:
            write_atomically(Path(target), text)
        except OSError as error:
            raise OptionError(
                f"{target}: cannot write the file: {error.strerror or error}"
            ) from None
    return EXIT_VALID


def written(history: History, route: Route, *, to: str, encoding: str, prune: str = "auto") -> str:
    """Return the encoded problem of a history as text in a solver format.

    Raises:
        SolverError: if no encoding has this name, or if the format cannot express the encoding.
        UnsupportedError: if the pre-pass alone refutes the history, or if the history is too large.
    """
    from isolang.encodings.export import to_dimacs, to_gnf
    from isolang.encodings.registry import ENCODINGS
    from isolang.encodings.relational.formula import relational_input
    from isolang.errors import UnsupportedError
    from isolang.language.classify.event_graph import Plan
    from isolang.pipeline.pair_run import contradiction, written_spec
    from isolang.problem import build_problem
    from isolang.problem.polygraph import build_polygraph
    from isolang.solvers.registry import applicable_encodings, find_encoding, starts_from_polygraph

    row, stage = find_encoding(encoding, prune, route)
    theory = next((t for t in THEORIES[to] if t in row.makers), None)
    if theory is None:
        rows = {name: ENCODINGS[name] for name in applicable_encodings(route) if name in ENCODINGS}
        fit = [name for name, e in rows.items() if set(e.makers) & set(THEORIES[to])]
        msg = f"{to} cannot express the encoding (got {encoding}, expected {', '.join(fit)})"
        raise SolverError(msg)
    history = history.written_out()
    problem = build_problem(history)
    if contradiction(problem, route) is not None:
        msg = (
            f"{history.name}: no problem to encode, because the pre-pass alone refutes the "
            "history; `isocheck check` explains why"
        )
        raise UnsupportedError(msg)
    if starts_from_polygraph(row.name):
        assert isinstance(route, Plan)
        subject = build_polygraph(problem, route.automata, stage)  # type: ignore[arg-type]
        formula = row.encode(subject, theory)
    else:
        formula = row.encode(relational_input(problem, written_spec(route)), theory)
    return {"dimacs": to_dimacs, "gnf": to_gnf, "smt2": _to_smt2}[to](formula)


def _to_smt2(formula: Formula) -> str:
    """Return a formula as SMT-LIB 2, written by pySMT."""
    from isolang.encodings.export import comments
    from isolang.solvers.pysmt import to_smtlib

    return comments(formula, "; ") + to_smtlib(formula)
