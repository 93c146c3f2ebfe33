"""Implements ``isocheck spec list`` and ``isocheck spec show``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct, field

from isolang.cli.parameters import Include, Output, SpecName
from isolang.errors import SpecError
from isolang.output.layout import align_rows
from isolang.output.records import EXIT_VALID, json_text
from isolang.output.terminal import print_data, print_lines, warn

if TYPE_CHECKING:
    from isolang.language.meaning.core import Spec


class LevelRow(Struct, frozen=True, kw_only=True):
    """One level of the library.

    Attributes:
        name: the name for ``--spec``.
        style: the style of the level's axioms.
        kind: the route that decides the level; ``-`` if no engine decides it.
        title: the title in the level's header.
        alias_of: the level of which this name is an alias; empty for none.
    """

    name: str
    style: str
    kind: str = field(name="class")
    title: str
    alias_of: str


class Shown(Struct, frozen=True, kw_only=True):
    """A specification, parsed and expanded.

    Attributes:
        name: the name in the header, or else the name of the file.
        title: the title in the header.
        source: the file of the specification.
        sha256: the hash of all texts.
        texts: the texts by file, with the main text first.
        exists: the existential relations.
        checks: the checks, with all definitions expanded.
        shows: the relations that ``show`` statements name, with all definitions expanded.
        notes: how the input was understood.
        warnings: probable mistakes.
    """

    name: str
    title: str
    source: str
    sha256: str
    texts: dict[str, str]
    exists: tuple[str, ...]
    checks: tuple[str, ...]
    shows: dict[str, str]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def list_levels(*, output: Output = "text") -> int:
    """List the levels of the library."""
    from isolang.language.library import list_library
    from isolang.language.load import load_spec

    rows = [
        LevelRow(
            name=entry.name,
            style=entry.style,
            kind=class_of(load_spec(entry.name)),
            title=entry.title,
            alias_of=entry.alias_of,
        )
        for entry in list_library()
    ]
    if output == "json":
        print_data(json_text(rows))
        return EXIT_VALID
    cells = [("name", "style", "class", "what it is")]
    for row in rows:
        what = f"= {row.alias_of}: {row.title}" if row.alias_of else row.title
        cells.append((row.name, row.style, row.kind, what))
    print_lines(*align_rows(cells))
    return EXIT_VALID


def class_of(spec: Spec) -> str:
    """Return the kind of route that decides a specification; ``-`` if no engine decides it."""
    from isolang.language.classify.route import route

    try:
        return route(spec).kind
    except SpecError:
        return "-"


def show_level(
    *,
    name: SpecName,
    expand: Annotated[
        bool,
        typer.Option("--expand", help="Also print included files, and expand all definitions."),
    ] = False,
    include: Include = [],  # noqa: B006
    output: Output = "text",
) -> int:
    """Print the text of a level or a file."""
    from isolang.language.load import load_spec

    spec = load_spec(name, include_path=include)
    if output == "json":
        print_data(json_text(_shown(spec)))
        return EXIT_VALID
    warn(*(f"note: {note}" for note in spec.notes))
    print_lines(_expanded_text(spec) if expand else spec.texts[spec.source].rstrip("\n"))
    return EXIT_VALID


def _expanded_text(spec: Spec) -> str:
    from isolang.language.meaning.show import show_check, show_exists

    parts = []
    for file, text in spec.texts.items():
        parts += [f"// ---- {file} ----", "", text.strip("\n"), ""]
    parts += ["// ---- with all definitions expanded ----", ""]
    parts += [show_exists(exists) for exists in spec.exists]
    parts += [show_check(check) for check in spec.checks]
    return "\n".join(parts)


def _shown(spec: Spec) -> Shown:
    from isolang.language.meaning.show import show, show_check, show_exists

    return Shown(
        name=spec.name,
        title=spec.title,
        source=spec.source,
        sha256=spec.sha256,
        texts=dict(spec.texts),
        exists=tuple(show_exists(exists) for exists in spec.exists),
        checks=tuple(show_check(check) for check in spec.checks),
        shows={name: show(e) for name, e in spec.shows},
        notes=tuple(spec.notes),
        warnings=tuple(spec.warnings),
    )
