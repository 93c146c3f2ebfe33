"""Implements ``isocheck schema``, which prints the JSON Schema for ``--output json``."""

from __future__ import annotations

import inspect
import json
import re
from typing import Annotated, Any, Final

import typer

from isolang.cli import choices
from isolang.output.records import EXIT_VALID
from isolang.output.terminal import print_data

# For each command, the module and name of its record, and whether its output is an array of such
# records.
RECORDS: Final[dict[str, tuple[str, bool]]] = {
    "check": ("isolang.output.records:Report", False),
    "levels": ("isolang.cli.levels:LevelsReport", False),
    "linearize": ("isolang.cli.linearize:LinearizeReport", False),
    "watch": ("isolang.cli.watch_course:WatchLine", False),
    "run": ("isolang.cli.run:RunReport", False),
    "observe": ("isolang.cli.observe:ObserveReport", False),
    "run-effectiveness": ("isolang.run.survey.effectiveness:Effectiveness", False),
    "run-selftest": ("isolang.run.play.selftest:SelfTest", False),
    "run-survey": ("isolang.run.survey.survey:Survey", False),
    "run-swarm": ("isolang.run.survey.swarm:SwarmReport", False),
    "litmus": ("isolang.cli.litmus:LitmusReports", False),
    "predict": ("isolang.cli.predict:PredictReport", False),
    "outcomes": ("isolang.cli.outcomes:OutcomesReport", False),
    "robust": ("isolang.cli.robust:RobustReport", False),
    "summary": ("isolang.report.summary:Summary", False),
    "stats": ("isolang.history.stats:Stats", False),
    "solvers": ("isolang.output.contest:ContestRow", False),
    "spec-list": ("isolang.cli.spec_library:LevelRow", True),
    "spec-show": ("isolang.cli.spec_library:Shown", False),
    "spec-explain": ("isolang.output.explained:Explained", False),
    "spec-compare": ("isolang.cli.spec_compare:ComparisonReport", False),
    "spec-place": ("isolang.cli.spec_place:PlaceReport", False),
    "spec-lattice": ("isolang.cli.spec_place:LatticeReport", False),
    "spec-lint": ("isolang.cli.spec_lint:Linted", True),
}


def schema(
    *,
    command: Annotated[
        str,
        typer.Argument(
            metavar="COMMAND",
            help="The command. check, watch and solvers print one object per line.",
            parser=choices.parser_of_names(lambda: list(RECORDS)),
            autocompletion=choices.completer_of_names(lambda: list(RECORDS)),
        ),
    ] = "check",
) -> int:
    """Print the JSON Schema of a command's --output json."""
    print_data(json.dumps(schema_of(command), indent=2, ensure_ascii=False) + "\n")
    return EXIT_VALID


def schema_of(command: str) -> dict[str, Any]:
    """Return the JSON Schema for the output of a command in ``RECORDS``."""
    from importlib import import_module

    import msgspec

    where, several = RECORDS[command]
    module, name = where.split(":")
    record: Any = getattr(import_module(module), name)
    found = msgspec.json.schema(list.__class_getitem__(record) if several else record)
    for part in found.get("$defs", {}).values():
        _describe(part)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def _describe(part: dict[str, Any]) -> None:
    """Move the attribute descriptions from a record's docstring to the properties."""
    text, _, attributes = inspect.cleandoc(part.get("description", "")).partition("Attributes:")
    part["description"] = " ".join(text.split())
    for name, about in re.findall(
        r"^    (\w+): (.*(?:\n {8}.*)*)", attributes.strip("\n"), re.MULTILINE
    ):
        if name in part["properties"]:
            part["properties"][name]["description"] = " ".join(about.split())
