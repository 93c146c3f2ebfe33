"""Splits texts in MariaDB's SQL into tokens and statements.

Tokens have the form of :mod:`isolang.observe.sql.lexer`, so that its parser of conditions reads
them: a string's token has the string's value between PostgreSQL's quotes, a name in backticks has
the name between double quotes, and ``?`` becomes ``$1``. Their positions are those in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from isolang.observe.sql.lexer import Token, UnclearTextError

_TOKEN: Final = re.compile(
    r"(?P<space>\s+|--(?=[\s\x00-\x1f]|\Z)[^\n]*|\#[^\n]*|/\*(?!M?!).*?\*/)"
    r"|(?P<executed>/\*M?!\d*)"
    r"|(?P<closing>\*/)"
    r"|(?P<literal>[bBxXnN]'[^']*')"
    r"|(?P<text>'(?:[^'\\]|\\.|'')*+'|\"(?:[^\"\\]|\\.|\"\")*+\")"
    r"|(?P<quoted>`(?:[^`]|``)++`)"
    r"|(?P<variable>@@?(?:[\w.$]+|`[^`]*`|'[^']*'|\"[^\"]*\")?)"
    r"|(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w$\x80-\U0010ffff]))"
    r"|(?P<word>[\w$\x80-\U0010ffff]+)"
    r"|(?P<parameter>\?)"
    r"|(?P<operator><=>|<>|<=|>=|!=|:=|<<|>>|&&|\|\||->>|->|[-+*/<>=~!%^&|])"
    r"|(?P<mark>.)",
    re.DOTALL,
)
_WITHOUT_ESCAPES: Final = re.compile(r"'(?:[^']|'')*+'|\"(?:[^\"]|\"\")*+\"")
_ESCAPE: Final = {q: re.compile(rf"\\.|{q}{q}", re.DOTALL) for q in ("'", '"')}
_DOUBLED: Final = {q: re.compile(q * 2) for q in ("'", '"')}
_ESCAPED: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a",
                   "%": "\\%", "_": "\\_"}  # fmt: skip
# Modes under which a text means something else than this module reads in it.
_OTHER_MODES: Final = frozenset({"ORACLE", "MSSQL", "DB2", "MAXDB", "HIGH_NOT_PRECEDENCE"})
_UNENDED: Final = frozenset({"'", '"', "`"})
_COMPOUND: Final = frozenset({"if", "case", "while", "loop", "repeat", "for", "declare"})
_PROGRAMS: Final = frozenset({"procedure", "function", "trigger", "event", "package"})
_LONGEST_HEAD: Final = 20  # the most tokens before the word that says what is created
_FIRST_NUMBER: Final = 50_700  # of the versions whose comments are only for MySQL


def tokens(text: str, mode: str = "", *, version: int = 101_100) -> Iterator[Token]:
    """Yield the tokens of a text, without whitespace and comments.

    Args:
        mode: the session's ``sql_mode``.
        version: the server's version, such as 101119, which decides what ``/*!50100 …*/`` means.

    Raises:
        UnclearTextError: the text is not certain to be split as the server splits it.
    """
    modes = frozenset(mode.split(","))
    if unknown_modes := modes & _OTHER_MODES:
        raise UnclearTextError(f"sql_mode {min(unknown_modes)}")
    escapes, ansi = "NO_BACKSLASH_ESCAPES" not in modes, "ANSI_QUOTES" in modes
    at = parameters = 0
    is_executed = False
    while at < len(text):
        pattern = _TOKEN if escapes or text[at] not in "'\"" else _WITHOUT_ESCAPES
        match = pattern.match(text, at)
        if match is None:
            raise UnclearTextError(text[at : at + 20])
        kind, shown, begin, at = match.lastgroup or "text", match.group(), at, match.end()
        if kind == "space":
            continue
        if kind == "word":
            yield Token("word", shown.lower(), begin, at)
            continue
        if kind == "executed":
            if is_executed:
                raise UnclearTextError(shown)
            if _is_executed(shown, version):
                is_executed = True
            elif (end := text.find("*/", at)) >= 0:
                at = end + 2
            else:
                raise UnclearTextError(shown)
            continue
        if kind == "closing":
            if not is_executed:
                raise UnclearTextError(shown)
            is_executed = False
            continue
        if shown in _UNENDED or (shown == "/" and text.startswith("/*", begin)):
            raise UnclearTextError(text[begin : begin + 20])
        if kind == "parameter":
            parameters += 1
            shown = f"${parameters}"
        elif kind == "text" and (shown[0] == "'" or not ansi):
            shown = _quoted_value(shown, escapes=escapes)
        elif kind in ("text", "quoted"):
            kind = "quoted"
            name = shown[1:-1].replace(shown[0] * 2, shown[0])
            shown = '"' + name.lower().replace('"', '""') + '"'
        elif kind in ("variable", "literal"):
            kind = "mark"
        yield Token(kind, shown, begin, at)  # type: ignore[arg-type]
    if is_executed:
        raise UnclearTextError("/*!")


def _is_executed(comment: str, version: int) -> bool:
    """Return whether the server executes a comment that begins so.

    >>> _is_executed("/*!40101", 101119), _is_executed("/*!80000", 101119)
    (True, False)
    >>> _is_executed("/*M!100100", 101119), _is_executed("/*!", 101119)
    (True, True)
    """
    number = comment.partition("!")[2]
    if len(number) not in (0, 5, 6):
        raise UnclearTextError(comment)
    needed = int(number or 0)
    is_for_mysql = not comment.startswith("/*M") and _FIRST_NUMBER <= needed < 100_000
    return needed <= version and not is_for_mysql


def _quoted_value(shown: str, *, escapes: bool) -> str:
    r"""Return the value of a string in PostgreSQL's quotes.

    >>> print(_quoted_value(r"'it\'s \\ 5\%'", escapes=True), _quoted_value('"a""b"', escapes=True))
    'it''s \ 5\%' 'a"b'
    """
    quote = shown[0]
    value = (_ESCAPE if escapes else _DOUBLED)[quote].sub(_unescaped, shown[1:-1])
    return "'" + value.replace("'", "''") + "'"


def _unescaped(match: re.Match[str]) -> str:
    escape = match[0]
    return _ESCAPED.get(escape[1], escape[1])  # of a doubled quote, this is the quote


def statements(cut: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the tokens of each statement of a text.

    The statements in the body of a procedure, or of a statement such as BEGIN NOT ATOMIC, belong to
    the statement around them, which is the last one of its text.
    """
    part: list[Token] = []
    has_body = False
    for token in cut:
        has_body = has_body or (len(part) < _LONGEST_HEAD and _begins_body(part, token))
        if token.kind == "mark" and token.text == ";" and not has_body:
            if part:
                yield part
            part = []
        else:
            part.append(token)
    if part:
        yield part


def _begins_body(part: Sequence[Token], token: Token) -> bool:
    """Return whether a statement that begins so, and goes on with a token, has statements in it."""
    if not part:
        return token.kind == "word" and token.text in _COMPOUND
    first, word = part[0].text, token.text if token.kind in ("word", "mark") else ""
    if first in ("create", "alter"):
        return word in _PROGRAMS
    return len(part) == 1 and ((first, word) == ("begin", "not") or word == ":")
