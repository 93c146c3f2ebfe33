"""Shortens the texts of SQL statements for people, and finds statements that differ in literals.

Both also work for a text that is not SQL, such as a row's key: they only look at words, strings,
numbers and parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

_MOST: Final = 4000  # the largest number of characters of a text to look at
# A list of columns is omitted if it has more characters than this.
_LONGEST_LIST: Final = 16
_PIECE: Final = re.compile(
    r"(?P<string>[eE]?'[^']*(?:''[^']*)*'?|\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z))"
    r"|(?P<quoted>\"[^\"]*\"?)|(?P<parameter>\$\d+|%s|%\(\w+\)s)"
    r"|(?P<number>(?<![\w.])[-+]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?!\w))|(?P<word>\w+)"
    r"|(?P<blank>\s+)|(?P<mark>.)",
    re.DOTALL,
)
_LONG_NUMBER: Final = re.compile(r"\d{6,}")  # in a name
_LITERAL_LIST: Final = re.compile(r"\?(?:\s*,\s*\?)+")
_ROWS: Final = re.compile(r"(\([^()]*\))(?:\s*,\s*\1)+")
_CALLER: Final = re.compile(r"\S+:\d+(?: \(flush\))?")
# For each word that begins a list of columns, the words that end it.
_LISTS: Final = {"select": ("from",), "set": ("where", "from", "returning"), "returning": ()}


def one_line(text: str, longest: int) -> str:
    """Return a statement on one line, with lists of columns omitted if it is too long.

    The tables and the condition matter more than the columns, so what is read or assigned is
    omitted first: between SELECT and FROM, between SET and WHERE, and in ``INSERT INTO t (…)``.

    >>> one_line("SELECT a.id, a.name, a.place FROM account a WHERE a.id = 7", 40)
    'SELECT … FROM account a WHERE a.id = 7'
    >>> one_line("UPDATE t SET a = 1, b = (2), c = 3 WHERE id = 1 RETURNING a, b, c", 30)
    'UPDATE t SET … WHERE id = 1 R…'
    """
    text = " ".join(text[:_MOST].split())
    if len(text) <= longest:
        return text
    shown = _without_lists(text)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def _without_lists(text: str) -> str:
    """Return a statement with each long list of columns replaced by ``…``."""
    pieces = [piece for piece in _PIECE.finditer(text) if not piece["blank"]]
    depths = list(_depths(pieces))
    shown, at = [], 0  # `at` is the position after the text that `shown` stands for
    for n, piece in enumerate(pieces):
        if piece.start() < at:
            continue
        end = _end_of_list(pieces, depths, n, text)
        begin = piece.end()
        if end - begin > _LONGEST_LIST:
            shown += [text[at:begin], " … " if piece[0] != "(" else "…"]
            at = end
    return "".join([*shown, text[at:]]).rstrip()


def _depths(pieces: Sequence[re.Match[str]]) -> Iterator[int]:
    """Yield the number of open parentheses around each piece."""
    depth = 0
    for piece in pieces:
        depth -= piece[0] == ")"
        yield depth
        depth += piece[0] == "("


def _end_of_list(pieces: Sequence[re.Match[str]], depths: Sequence[int], n: int, text: str) -> int:
    """Return the position after the list of columns that begins after a piece.

    If none begins there, return the position after the piece.
    """
    piece = pieces[n]
    word = piece[0].lower()
    if word in _LISTS and piece["word"]:
        for m in range(n + 1, len(pieces)):
            ends = pieces[m]["word"] and pieces[m][0].lower() in _LISTS[word]
            if depths[m] < depths[n] or (depths[m] == depths[n] and ends):
                return pieces[m].start()
        return len(text) if word == "returning" else piece.end()
    if word == "(" and n > 1 and pieces[_start_of_name(pieces, n - 1) - 1][0].lower() == "into":
        for m in range(n + 1, len(pieces)):
            if depths[m] == depths[n] and pieces[m][0] == ")":
                return pieces[m].start()
    return piece.end()


def _start_of_name(pieces: Sequence[re.Match[str]], n: int) -> int:
    """Return the first piece of the table's name that ends with a piece."""
    while n > 1 and pieces[n - 1][0] == ".":
        n -= 2
    return n


def shape_of_text(text: str) -> str:
    """Return a statement with its literals and parameters replaced, on one line.

    Statements that differ only in values have the same text. So have those that differ in long
    numbers within names, such as ``"_django_curs_140565977134784"``. An application's ``file:line``
    is returned unchanged.

    >>> shape_of_text("SELECT * FROM t WHERE a IN (1, 2, 3) AND b = 'it''s' AND t1.c = $2")
    'SELECT * FROM t WHERE a IN (?, …) AND b = ? AND t1.c = ?'
    >>> shape_of_text("INSERT INTO t VALUES (1, 'a'), (2, 'b')"), shape_of_text("app.py:12")
    ('INSERT INTO t VALUES (?, …), …', 'app.py:12')
    """
    if _CALLER.fullmatch(text):
        return text
    pieces = (
        "?" if piece["string"] or piece["number"] or piece["parameter"]
        else _LONG_NUMBER.sub("?", piece[0])
        for piece in _PIECE.finditer(text[:_MOST])
    )  # fmt: skip
    shown = _LITERAL_LIST.sub("?, …", " ".join("".join(pieces).split()))
    return _ROWS.sub(r"\1, …", shown)
