"""``isocheck spec list`` and ``isocheck spec show``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from isolang.cli.report import EXIT_INPUT, EXIT_VALID
from isolang.errors import SpecError

if TYPE_CHECKING:
    from isolang.language.meaning.core import Spec


def list_levels(*, output: str) -> int:
    """Print the library, a level a line."""
    from isolang.language.library import list_library
    from isolang.language.load import load_spec

    rows = [
        {
            "name": entry.name,
            "style": entry.style,
            "class": class_of(load_spec(entry.name)),
            "title": entry.title,
            "alias_of": entry.alias_of,
        }
        for entry in list_library()
    ]
    if output == "json":
        print(json.dumps(rows, ensure_ascii=False))
        return EXIT_VALID
    columns = ("name", "style", "class")
    widths = [max(len(row[column]) for row in rows) for column in columns]
    print("  ".join([*(c.ljust(w) for c, w in zip(columns, widths, strict=True)), "what it is"]))
    for row in rows:
        shown = [row[c].ljust(w) for c, w in zip(columns, widths, strict=True)]
        what = f"= {row['alias_of']}: {row['title']}" if row["alias_of"] else row["title"]
        print("  ".join([*shown, what]))
    return EXIT_VALID


def class_of(spec: Spec) -> str:
    """The kind of its route; ``-`` if no engine decides it."""
    from isolang.language.classify.route import route

    try:
        return route(spec).kind
    except SpecError:
        return "-"


def show_level(name: str, *, expand: bool, include: Sequence[str], output: str) -> int:
    """Print a specification's text; expanded, all texts and what the checks come to."""
    from isolang.language.load import load_spec

    try:
        spec = load_spec(name, include_path=include)
    except SpecError as error:
        print(f"isocheck: {error}", file=sys.stderr)
        return EXIT_INPUT
    if output == "json":
        print(json.dumps(_as_json(spec), ensure_ascii=False))
        return EXIT_VALID
    for note in spec.notes:
        print(f"note: {note}", file=sys.stderr)
    if not expand:
        print(spec.texts[spec.source].rstrip("\n"))
        return EXIT_VALID
    print(_expanded(spec))
    return EXIT_VALID


def _expanded(spec: Spec) -> str:
    from isolang.language.meaning.show import show_check, show_exists

    parts = []
    for file, text in spec.texts.items():
        parts += [f"// ---- {file} ----", "", text.strip("\n"), ""]
    parts += ["// ---- with all definitions expanded ----", ""]
    parts += [show_exists(exists) for exists in spec.exists]
    parts += [show_check(check) for check in spec.checks]
    return "\n".join(parts)


def _as_json(spec: Spec) -> dict[str, Any]:
    from isolang.language.meaning.show import show, show_check, show_exists

    return {
        "name": spec.name,
        "title": spec.title,
        "source": spec.source,
        "sha256": spec.sha256,
        "texts": dict(spec.texts),
        "exists": [show_exists(exists) for exists in spec.exists],
        "checks": [show_check(check) for check in spec.checks],
        "shows": {name: show(e) for name, e in spec.shows},
        "notes": list(spec.notes),
        "warnings": list(spec.warnings),
    }
