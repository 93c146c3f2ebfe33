"""Adapts client programs that respond to requests sent as lines of JSON.

The target is ``exec:COMMAND``. Each session is a separate process; another process creates and
removes the keys. In its response to ``hello``, the program declares whether it runs a transaction
as a whole or one step at a time. Without a valid response within 30 seconds, the outcome
of the transaction is unknown. docs/exec.md describes the protocol;
``isolang.run.families.request_lines`` sends and receives the lines.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, ClassVar, Final

from msgspec import Struct

from isolang.run.adapter import BaseClient, BaseTarget
from isolang.run.families.request_lines import ClientProgram, UnclearAnswer
from isolang.run.operation import DELETED, bounds_in
from isolang.run.outcome import BadAnswer, RolledBack
from isolang.run.target import Level, TargetError

_HELLO_TIMEOUT_S: Final = 20.0  # seconds that a program may take to respond to hello
_SETUP_TIMEOUT_S: Final = 60.0  # seconds that a program may take to create or remove the keys
_KNOWN_FEATURES: Final = ("range reads", "rows", "savepoints", "processes")
_STEP_FEATURES: Final = frozenset({"range reads", "rows", "conversations", "savepoints"})
"""The features that a program lacks if it only runs whole transactions."""
_MISSING_ROW: Final = "deleted"  # the value that represents a missing row


class Hello(Struct, frozen=True, kw_only=True):
    """A program's response to ``hello``.

    Attributes:
        levels: the levels of the database with their claims; the first level is the default.
        mixes: the specification that judges a run at several levels; ``None`` if transactions
            cannot choose their levels.
        steps: whether the program runs transactions one step at a time.
        problem: why the program did not respond properly; empty if it did.
    """

    name: str = ""
    levels: tuple[Level, ...] = (Level(name="default", claims="ser", says="what the program does"),)
    mixes: str | None = None
    steps: bool = False
    lacks: frozenset[str] = _STEP_FEATURES
    problem: str = ""


@cache
def hello_of(command: str) -> Hello:
    """Start a program, and return its response to ``hello``; the response is cached."""
    program = ClientProgram(command)
    try:
        return _hello(program.ask("hello", within=_HELLO_TIMEOUT_S))
    except (UnclearAnswer, BadAnswer, RolledBack, TargetError, OSError) as error:
        return Hello(problem=" ".join(str(error).split()))
    finally:
        program.close()


def _hello(response: object) -> Hello:
    if not isinstance(response, dict) or not isinstance(response.get("name"), str):
        raise TargetError(f'hello: expected {{"name": "…", …}} (got {ascii(response)[:80]})')
    levels, lacks = response.get("levels", [["default", "ser"]]), response.get("lacks", [])
    if not isinstance(levels, list) or not levels or not all(map(_is_pair, levels)):
        expected = 'expected [["NAME", "CLAIMS"], …]'
        raise TargetError(f"hello: levels: {expected} (got {ascii(levels)[:80]})")
    if not isinstance(lacks, list) or not set(lacks) <= set(_KNOWN_FEATURES):
        expected = ", ".join(_KNOWN_FEATURES)
        raise TargetError(f"hello: lacks: expected some of {expected} (got {ascii(lacks)[:80]})")
    mixes = response.get("mixes")
    if mixes is not None and not isinstance(mixes, str):
        raise TargetError(f"hello: mixes: expected a specification (got {ascii(mixes)[:80]})")
    steps = response.get("steps") is True
    return Hello(
        name=response["name"],
        levels=tuple(
            Level(name=name.lower(), claims=claims, says=f"whatever the program does at {name}")
            for name, claims in levels
        ),
        mixes=mixes,
        steps=steps,
        lacks=frozenset(lacks) | (frozenset() if steps else _STEP_FEATURES),
    )


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_text, value))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


class Exec(BaseTarget):
    """A database accessed through a client program."""

    name: ClassVar = "exec"
    _admin: ClientProgram | None = None

    @property
    def _hello(self) -> Hello:
        return hello_of(self.address.database)

    @property
    def levels(self) -> tuple[Level, ...]:
        """Return the levels declared by the program; if it declares none, the default level."""
        return self._hello.levels

    @property
    def lacks(self) -> frozenset[str]:  # type: ignore[override]
        """Return the features that the program lacks, according to its response to ``hello``."""
        return self._hello.lacks

    @property
    def mixes(self) -> str | None:  # type: ignore[override]
        """Return the specification for mixed levels declared by the program, if any."""
        return self._hello.mixes

    def start(self) -> None:
        if not self.address.database.strip():
            raise TargetError("exec: no program is named; isocheck run exec:'./my-client'")
        if self._hello.problem:
            raise TargetError(f"{self.address}: no answer to hello: {self._hello.problem}")
        self._admin = ClientProgram(self.address.database)

    def version(self) -> str:
        return self._hello.name or str(self.address)

    def setup(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        self.lists = frozenset(lists)
        self._make("setup", registers=list(registers), lists=list(lists))

    def remove(self) -> None:
        if self._admin is not None and self._admin.usable():
            self._make("remove")

    def _make(self, do: str, **keys: list[str]) -> None:
        assert self._admin is not None
        try:
            self._admin.ask(do, within=_SETUP_TIMEOUT_S, **keys)
        except (UnclearAnswer, RolledBack, BadAnswer) as error:
            raise TargetError(f"{self.address}: {do}: {error}") from None

    def connect(self) -> WholeClient | StepClient:
        program = ClientProgram(self.address.database)
        kind = StepClient if self._hello.steps else WholeClient
        return kind(program, self.lists)

    def statement(self, operation: str, key: str, value: object) -> str:
        return json.dumps(_request((operation, key, value), self.lists), default=str)

    def close(self) -> None:
        if self._admin is not None:
            with suppress(Exception):  # the program has ended
                self.remove()
            self._admin.close()


def _request(operation: tuple[str, str, Any], lists: Container[str]) -> dict[str, Any]:
    """Return the request that makes a program perform a recorded operation."""
    match operation:
        case ("r", key, _):
            return {"do": "read", "key": key, "list": key in lists}
        case ("scan", predicate, _):
            low, high = bounds_in(predicate)
            return {"do": "select", "low": low, "high": high}
        case ("append", key, value):
            return {"do": "append", "key": key, "value": value}
        case ("delete", key, _):
            return {"do": "delete", "key": key}
        case (_, key, value) if value == DELETED:
            return {"do": "delete", "key": key}
        case (_, key, value):
            return {"do": "write", "key": key, "value": value}


class _ExecClient(BaseClient):
    """A session that sends its requests to a running program."""

    def __init__(self, program: ClientProgram, lists: Container[str]) -> None:
        self.program, self.lists = program, lists

    def usable(self) -> bool:
        return self.program.usable()

    def close(self) -> None:
        self.program.close()

    def bad(self, what: str) -> BadAnswer:
        """Return the error for a bad response, and send no more requests to the program."""
        self.program.ended = True
        return BadAnswer(what)


class WholeClient(_ExecClient):
    """A session whose program runs whole transactions."""

    def transact(self, level: str, operations: Sequence[tuple[str, str, Any]]) -> list[Any]:
        requests = [_request(one, self.lists) for one in operations]
        results = self.program.ask("transact", level=level, operations=requests)
        if not isinstance(results, list) or len(results) != len(requests):
            expected = f"{len(requests)} results"
            raise self.bad(f"transact: expected {expected} (got {ascii(results)[:80]})")
        return [_value(one) for one in results]


def _value(response: Any) -> Any:
    return DELETED if response == _MISSING_ROW else response


class StepClient(_ExecClient):
    """A session whose program runs transactions one step at a time."""

    def begin(self, level: str) -> None:
        self.program.ask("begin", level=level)

    def read(self, key: str) -> Any:
        return _value(self.program.ask("read", key=key, list=key in self.lists))

    def write(self, key: str, value: int) -> bool:
        return self._yes("write", key=key, value=value)

    def append(self, key: str, value: int) -> bool:
        return self._yes("append", key=key, value=value)

    def insert(self, key: str, value: int) -> None:
        self.program.ask("insert", key=key, value=value)

    def delete(self, key: str) -> bool:
        return self._yes("delete", key=key)

    def scan(self, low: str, high: str) -> dict[str, Any]:
        return self._rows("scan", low, high)

    def select(self, low: int, high: int) -> dict[str, Any]:
        return self._rows("select", low, high)

    def change(self, low: int, high: int, value: int) -> list[str]:
        keys = self.program.ask("change", low=low, high=high, value=value)
        if not isinstance(keys, list) or not all(map(_is_text, keys)):
            raise self.bad(f"change: expected a list of keys (got {ascii(keys)[:80]})")
        return keys

    def savepoint(self) -> None:
        self.program.ask("savepoint")

    def rollback_to_savepoint(self) -> None:
        self.program.ask("undo")

    def commit(self) -> None:
        self.program.ask("commit")

    def rollback(self) -> None:
        if not self.program.usable():
            raise ConnectionError("the program does not support the request to roll back")
        self.program.ask("rollback")

    def _yes(self, do: str, **more: Any) -> bool:
        """Send a request, and return whether the row existed according to the program."""
        response = self.program.ask(do, **more)
        if not isinstance(response, bool):
            raise self.bad(f"{do}: expected true, or false where there is no row "
                           f"(got {ascii(response)[:80]})")  # fmt: skip
        return response

    def _rows(self, do: str, low: str | int, high: str | int) -> dict[str, Any]:
        response: Mapping[str, Any] = self.program.ask(do, low=low, high=high)
        if not isinstance(response, dict):
            raise self.bad(
                f"{do}: expected an object of keys and values (got {ascii(response)[:80]})"
            )
        return response
