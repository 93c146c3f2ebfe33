"""Reads the file that names the calls of a case, and how to make them."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from isolang.errors import IsolangError, unknown_name_details
from isolang.foresee.played import PROFILES

MOST_CALLS: Final = 5
"""The most calls of a case."""
LEVELS: Final = (*PROFILES, "serializable")
"""PostgreSQL's levels, from the weakest."""
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "prepare": (str,), "database": (str,), "level": (str, list), "command": (str,),
    "functions": (str,), "calls": (list,), "ignore": (list,), "allow_unseen": (list,),
    "env": (str,), "seconds": (int, float), "hold": (int, float),
}  # fmt: skip
"""The keys of a file, with the types of their values."""
_CALL: Final = re.compile(r"[\w.]+\(.*\)")


class CaseCall(Struct, frozen=True):
    """A call of the application.

    Attributes:
        name: the call, as the file has it; a repeated call has a number.
        words: the program that makes it, and its arguments.
        line: what the program gets on its standard input.
    """

    name: str
    words: tuple[str, ...]
    line: str = ""


class CourtCase(Struct, frozen=True, kw_only=True):
    """A case: the calls, how to make them, and where.

    Attributes:
        name: the file.
        prepare: the command that prepares the database; empty for none.
        database: the URL of the database; ``postgres`` for a new server.
        levels: the default levels of the transactions, one trial for each; an empty text for the
            level that the application or the database chooses.
        ignored: the tables and columns that are not compared.
        allow_unseen: the accepted kinds of what is not seen.
        variable: the environment variable with the URL of the database.
        seconds: how long schedules are played, at most.
        hold: after how many seconds without a statement a call counts as waiting.
    """

    name: str
    calls: tuple[CaseCall, ...]
    prepare: tuple[str, ...] = ()
    database: str = "postgres"
    levels: tuple[str, ...] = ("",)
    ignored: tuple[str, ...] = ()
    allow_unseen: tuple[str, ...] = ()
    variable: str = "DATABASE_URL"
    seconds: float = 120.0
    hold: float = 5.0


def load_case(path: Path) -> CourtCase:
    """Read a case from a file.

    Raises:
        IsolangError: the file cannot be read, or does not describe a case.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise IsolangError(f"{path}: cannot read the file: {reason}") from None
    return parse_case(text, str(path))


def parse_case(text: str, where: str) -> CourtCase:
    r"""Return the case that a text describes.

    Raises:
        IsolangError: the text does not describe a case.

    >>> case = parse_case('command = "echo"\ncalls = ["buy ann", "buy bob"]', "court.toml")
    >>> [(call.name, call.words, call.line) for call in case.calls]
    [('buy ann', ('echo',), 'buy ann'), ('buy bob', ('echo',), 'buy bob')]
    """
    try:
        values: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise IsolangError(f"{where}: not a TOML file: {error}") from None
    for key, value in values.items():
        if key not in _KINDS:
            raise IsolangError(f"{where}: unknown key {unknown_name_details(key, [*_KINDS])}")
        is_texts = not isinstance(value, list) or all(isinstance(item, str) for item in value)
        if not isinstance(value, _KINDS[key]) or isinstance(value, bool) or not is_texts:
            raise IsolangError(
                f"{where}: wrong value of {key} (got {value!r}, expected {_expected(key)})"
            )
    levels = values.get("level", "")
    levels = tuple(levels if isinstance(levels, list) else [levels])
    for level in levels:
        if level not in LEVELS and "level" in values:
            raise IsolangError(f"{where}: unknown level {unknown_name_details(level, [*LEVELS])}")
    return CourtCase(
        name=where,
        calls=_calls(values, where),
        prepare=_preparation(values, where),
        database=values.get("database", "postgres"),
        levels=levels or ("",),
        ignored=tuple(values.get("ignore", ())),
        allow_unseen=tuple(values.get("allow_unseen", ())),
        variable=values.get("env", "DATABASE_URL"),
        seconds=float(values.get("seconds", 120)),
        hold=float(values.get("hold", 5)),
    )


def _expected(key: str) -> str:
    names = {str: "a text", list: "a list of texts", int: "a number", float: "a number"}
    return " or ".join(dict.fromkeys(names[kind] for kind in _KINDS[key]))


def _calls(values: Mapping[str, Any], where: str) -> tuple[CaseCall, ...]:
    texts: list[str] = values.get("calls", [])
    if not 2 <= len(texts) <= MOST_CALLS:
        raise IsolangError(
            f"{where}: wrong number of calls (got {len(texts)}, expected 2 to {MOST_CALLS}); hint: "
            'calls = ["node buy.mjs ann", "node buy.mjs bob"]'
        )
    command = _command(values, where)
    calls = []
    for number, text in enumerate(texts):
        if "\n" in text or not text.strip():
            raise IsolangError(f"{where}: a call is one line (got {text!r})")
        earlier = texts[:number].count(text)
        name = f"{text} ({earlier + 1})" if earlier else text
        if command:
            calls.append(CaseCall(name, command, text))
        else:
            calls.append(CaseCall(name, _words(text, f"{where}: calls")))
    return tuple(calls)


def _command(values: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Return the command that makes all calls; empty if each is a command of its own."""
    if "functions" not in values:
        return _words(values.get("command", ""), f"{where}: command")
    if "command" in values:
        raise IsolangError(f"{where}: command and functions exclude each other (got both)")
    return (sys.executable, "-m", "isolang.court.function", values["functions"])


def _preparation(values: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Return the command that prepares the database; empty for none."""
    text = values.get("prepare", "")
    if "functions" in values and _CALL.fullmatch(text):
        return (*_command(values, where), text)
    return _words(text, f"{where}: prepare")


def _words(text: str, where: str) -> tuple[str, ...]:
    """Return the program and the arguments of a command; empty for no command."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise IsolangError(f"{where}: not a command (got {text!r}: {error})") from None
    if words and shutil.which(words[0]) is None:
        raise IsolangError(f"{where}: no such program (got {words[0]!r})")
    return tuple(words)
