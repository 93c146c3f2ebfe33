"""Writes the table of relations in docs/language.md from the vocabulary.

The command ``python tests/support/relations_table.py`` updates the page. The test in
tests/test_docs.py fails if the page contains another table.
"""

from __future__ import annotations

import re
from pathlib import Path

from isolang.language.vocabulary import VOCABULARY, Word

PAGE = Path(__file__).resolve().parents[2] / "docs" / "language.md"
BEGIN, END = "<!-- relations: from isolang/language/vocabulary.py -->", "<!-- end of relations -->"
TABLE = re.compile(f"(?<={re.escape(BEGIN)}\n).*?(?={re.escape(END)})", re.DOTALL)
_LETTERS = {"transaction": ("T", "S"), "event": ("e", "f"), "any": ("a", "b")}


def table() -> str:
    """Return the table, with a row for each word in the order of the vocabulary."""
    rows = ["", "| name | what it relates | from |", "|---|---|---|", *map(_row, VOCABULARY), ""]
    return "".join(f"{row}\n" for row in rows)


def _row(word: Word) -> str:
    a, b = _LETTERS[word.sort.left][0], _LETTERS[word.sort.right][1]
    if word.sort.left != word.sort.right:
        b = _LETTERS[word.sort.right][0]
    names = f"`{word.name}`, `{word.name}[x]`" if word.keyed else f"`{word.name}`"
    whom = f"the set of all {a}:" if word.sort.kind == "set" else f"{a} → {b} if"
    said = word.between(a, b).replace("|", "\\|")
    return f"| {names} | {whom} {said} | {f'`{word.fragment}`' if word.fragment else 'given'} |"


def page_with_table(text: str) -> str:
    """Return the text of the page in which the table is replaced by the current table."""
    if not TABLE.search(text):
        raise ValueError(f"{PAGE}: no place for the table (expected {BEGIN} and {END})")
    return TABLE.sub(lambda _: table(), text)


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text()))
