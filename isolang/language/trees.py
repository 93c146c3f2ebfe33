"""Reads the syntax trees of library texts from a table in the package.

Parsing a level would take longer than checking a small history. Therefore ``trees.json`` contains
the syntax tree of every library text. The key of a tree is the whole text, so any other text is
parsed. After changing a level, the grammar or the tree classes, run ``python -m
isolang.language.trees`` to regenerate the table. A test compares the table with the texts.
"""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from msgspec import Raw, Struct, json

from isolang.language.syntax import ast
from isolang.language.syntax.parser import parse
from isolang.language.syntax.source import SourceText, Span

TABLE: Final = Path(__file__).with_name("trees.json")


@lru_cache(maxsize=256)
def library_tree(source: SourceText) -> ast.File:
    """Return the syntax tree of a text, from the table if it is a library text.

    The result is cached by the identity of the source.

    Raises:
        SpecError: if the text does not follow the grammar.
    """
    packed = _table().get(source.text)
    return parse(source) if packed is None else _unpack(json.decode(packed), source)


@cache
def _table() -> dict[str, Raw]:
    try:
        return json.decode(TABLE.read_bytes(), type=dict[str, Raw])
    except FileNotFoundError:  # the table may not exist yet when `write` creates it
        return {}


def _pack(value: Any) -> Any:
    """Convert a tree to JSON; each node becomes a list that begins with its class name."""
    if isinstance(value, Span):
        return list(value[1:])
    if isinstance(value, Struct):
        fields = [getattr(value, name) for name in value.__struct_fields__ if name != "source"]
        return [type(value).__name__, *map(_pack, fields)]
    return {"": [_pack(one) for one in value]} if isinstance(value, tuple) else value


def _unpack(data: Any, source: SourceText) -> Any:
    match data:
        case [str() as name, *fields]:
            parts = [_unpack(field, source) for field in fields]
            return ast.File(source, *parts) if name == "File" else getattr(ast, name)(*parts)
        case [*numbers]:
            return Span(source, *numbers)
        case {"": parts}:
            return tuple(_unpack(part, source) for part in parts)
    return data


def table() -> dict[str, Any]:
    """Return the content of ``trees.json``: the tree of each library text."""
    from isolang.language.library import library_source, text_names

    sources = [library_source(name) for name in text_names()]
    return {one.text: _pack(parse(one)) for one in sources if one is not None}


def write() -> None:
    """Write ``trees.json``, with each text and its tree on one line."""
    rows = (
        f"{json.encode(text).decode()}:{json.encode(tree).decode()}"
        for text, tree in table().items()
    )
    TABLE.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write()
