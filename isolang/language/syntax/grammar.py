"""Loads the parser for ``grammar.lark`` from tables stored in the package.

Building an LALR parser takes longer than most checks. Therefore ``grammar.json`` contains Lark's
tables, the version of Lark that produced them, and a digest of the grammar. If the version or the
digest differs, the same parser is built from the grammar, which is slower. After changing the
grammar, run ``python -m isolang.language.syntax.grammar`` to regenerate the tables. A test compares
them with the grammar.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any, Final

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

GRAMMAR: Final = Path(__file__).with_name("grammar.lark")
TABLES: Final = Path(__file__).with_name("grammar.json")


@cache
def parser() -> Lark:
    """Return the parser, using the tables if they match this grammar and Lark version."""
    text = GRAMMAR.read_text(encoding="utf-8")
    made = json.loads(TABLES.read_bytes(), object_pairs_hook=_dictionary)
    if made["grammar"] != digest(text):
        command = "python -m isolang.language.syntax.grammar"
        what = f"{TABLES} was not made from {GRAMMAR.name}; run `{command}`"
        warnings.warn(what, RuntimeWarning, stacklevel=2)
    elif made["lark"] != lark.__version__:
        what = f"{TABLES} was made by Lark {made['lark']} (got {lark.__version__}); not used"
        # an ImportWarning, which is hidden by default, because users can do nothing about it
        warnings.warn(what, ImportWarning, stacklevel=2)
    else:
        return Lark.load(made["tables"])  # Lark accepts the tables themselves in place of a file
    return from_grammar(text)


def from_grammar(text: str) -> Lark:
    """Build the parser for a grammar from scratch, without tables."""
    # The basic lexer reserves keywords everywhere, so `let order = …` is an error with a clear
    # hint. Otherwise `order` would be a name that works only in some places.
    return Lark(text, parser="lalr", lexer="basic", propagate_positions=True)


def tables() -> dict[str, Any]:
    """Return the content of ``grammar.json``."""
    text = GRAMMAR.read_text(encoding="utf-8")
    data, memo = from_grammar(text).memo_serialize([TerminalDef, Rule])
    made = {"data": data, "memo": memo}
    return {"lark": lark.__version__, "grammar": digest(text), "tables": made}


def digest(text: str) -> str:
    """Return the SHA-256 digest of a grammar's text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _dictionary(pairs: list[tuple[str, Any]]) -> dict[int | str, Any]:
    """Return a dictionary whose integer keys, which JSON stores as strings, are integers again."""
    return {int(key) if key.isdigit() else key: value for key, value in pairs}


def write() -> None:
    """Write the tables to ``grammar.json``."""
    TABLES.write_text(json.dumps(tables(), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    write()
