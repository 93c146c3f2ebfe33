"""Any program that answers requests, a JSON line each: ``exec:COMMAND``.

Each session is a process of its own; another one makes and removes the keys. The program says by
``hello`` what it can do: whole transactions, or one step at a time. What ends without an answer, or
has none in 30 seconds, is of unknown outcome; so is what answers something else. docs/exec.md has
the protocol, ``isolang.run.families.request_lines`` its lines.
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
from isolang.run.operation import DELETED, bounds_of
from isolang.run.outcome import BadAnswer, RolledBack
from isolang.run.target import Level, TargetError

_HELLO: Final = 20.0  # seconds to say what it can do
_MAKING: Final = 60.0  # seconds to make the keys, or to remove them
_KNOWN: Final = ("range reads", "rows", "savepoints", "processes")
_WHOLE: Final = frozenset({"range reads", "rows", "conversations", "savepoints"})
"""What whole transactions lack."""
_ABSENT: Final = "deleted"  # the value of a row that is not there


class Hello(Struct, frozen=True, kw_only=True):
    """What a program says of itself.

    Attributes:
        name: of its database, with the version.
        levels: each with what it claims, the default first.
        mixes: what judges transactions of several levels; ``None`` if they cannot choose.
        steps: whether it takes a transaction one step at a time.
        lacks: what it cannot do.
        problem: why it has said nothing; empty if it has.
    """

    name: str = ""
    levels: tuple[Level, ...] = (Level(name="default", claims="ser", says="what the program does"),)
    mixes: str | None = None
    steps: bool = False
    lacks: frozenset[str] = _WHOLE
    problem: str = ""


@cache
def hello_of(command: str) -> Hello:
    """Start a program, and ask it what it can do; what it says is remembered."""
    talk = ClientProgram(command)
    try:
        return _hello(talk.ask("hello", within=_HELLO))
    except (UnclearAnswer, BadAnswer, RolledBack, TargetError, OSError) as error:
        return Hello(problem=" ".join(str(error).split()))
    finally:
        talk.close()


def _hello(said: object) -> Hello:
    if not isinstance(said, dict) or not isinstance(said.get("name"), str):
        raise TargetError(f'hello: expected {{"name": "…", …}} (got {ascii(said)[:80]})')
    levels, lacks = said.get("levels", [["default", "ser"]]), said.get("lacks", [])
    if not isinstance(levels, list) or not levels or not all(map(_is_pair, levels)):
        expected = 'expected [["NAME", "CLAIMS"], …]'
        raise TargetError(f"hello: levels: {expected} (got {ascii(levels)[:80]})")
    if not isinstance(lacks, list) or not set(lacks) <= set(_KNOWN):
        expected = ", ".join(_KNOWN)
        raise TargetError(f"hello: lacks: expected some of {expected} (got {ascii(lacks)[:80]})")
    mixes = said.get("mixes")
    if mixes is not None and not isinstance(mixes, str):
        raise TargetError(f"hello: mixes: expected a specification (got {ascii(mixes)[:80]})")
    steps = said.get("steps") is True
    return Hello(
        name=said["name"],
        levels=tuple(
            Level(name=name.lower(), claims=claims, says=f"what the program does at {name}")
            for name, claims in levels
        ),
        mixes=mixes,
        steps=steps,
        lacks=frozenset(lacks) | (frozenset() if steps else _WHOLE),
    )


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_text, value))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


class Exec(BaseTarget):
    """A program."""

    name: ClassVar = "exec"
    _admin: ClientProgram | None = None

    @property
    def _hello(self) -> Hello:
        return hello_of(self.address.database)

    @property
    def levels(self) -> tuple[Level, ...]:
        """What the program says, or one level if it says nothing."""
        return self._hello.levels

    @property
    def lacks(self) -> frozenset[str]:  # type: ignore[override]
        """What the program says."""
        return self._hello.lacks

    @property
    def mixes(self) -> str | None:  # type: ignore[override]
        """What the program says."""
        return self._hello.mixes

    def start(self) -> None:
        if not self.address.database.strip():
            raise TargetError("exec: no program (expected one); isocheck run exec:'./my-client'")
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
            self._admin.ask(do, within=_MAKING, **keys)
        except (UnclearAnswer, RolledBack, BadAnswer) as error:
            raise TargetError(f"{self.address}: {do}: {error}") from None

    def connect(self) -> WholeClient | StepClient:
        talk = ClientProgram(self.address.database)
        kind = StepClient if self._hello.steps else WholeClient
        return kind(talk, self.lists)

    def statement(self, operation: str, key: str, value: object) -> str:
        return json.dumps(_request((operation, key, value), self.lists), default=str)

    def close(self) -> None:
        if self._admin is not None:
            with suppress(Exception):  # it has ended
                self.remove()
            self._admin.close()


def _request(operation: tuple[str, str, Any], lists: Container[str]) -> dict[str, Any]:
    """A recorded operation, as a program is asked for it."""
    match operation:
        case ("r", key, _):
            return {"do": "read", "key": key, "list": key in lists}
        case ("scan", predicate, _):
            low, high = bounds_of(predicate)
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
    """A running program."""

    def __init__(self, talk: ClientProgram, lists: Container[str]) -> None:
        self.talk, self.lists = talk, lists

    def usable(self) -> bool:
        return self.talk.usable()

    def close(self) -> None:
        self.talk.close()

    def bad(self, what: str) -> BadAnswer:
        """What is no answer; what comes next may belong to this request."""
        self.talk.ended = True
        return BadAnswer(what)


class WholeClient(_ExecClient):
    """A program that is given whole transactions."""

    def transact(self, level: str, operations: Sequence[tuple[str, str, Any]]) -> list[Any]:
        asked = [_request(one, self.lists) for one in operations]
        results = self.talk.ask("transact", level=level, operations=asked)
        if not isinstance(results, list) or len(results) != len(asked):
            expected = f"{len(asked)} results"
            raise self.bad(f"transact: expected {expected} (got {ascii(results)[:80]})")
        return [_value(one) for one in results]


def _value(said: Any) -> Any:
    return DELETED if said == _ABSENT else said


class StepClient(_ExecClient):
    """A program that takes one step at a time."""

    def begin(self, level: str) -> None:
        self.talk.ask("begin", level=level)

    def read(self, key: str) -> Any:
        return _value(self.talk.ask("read", key=key, list=key in self.lists))

    def write(self, key: str, value: int) -> bool:
        return self._yes("write", key=key, value=value)

    def append(self, key: str, value: int) -> bool:
        return self._yes("append", key=key, value=value)

    def insert(self, key: str, value: int) -> None:
        self.talk.ask("insert", key=key, value=value)

    def delete(self, key: str) -> bool:
        return self._yes("delete", key=key)

    def scan(self, low: str, high: str) -> dict[str, Any]:
        return self._rows("scan", low, high)

    def select(self, low: int, high: int) -> dict[str, Any]:
        return self._rows("select", low, high)

    def change(self, low: int, high: int, value: int) -> list[str]:
        keys = self.talk.ask("change", low=low, high=high, value=value)
        if not isinstance(keys, list) or not all(map(_is_text, keys)):
            raise self.bad(f"change: expected a list of keys (got {ascii(keys)[:80]})")
        return keys

    def savepoint(self) -> None:
        self.talk.ask("savepoint")

    def rollback_to_savepoint(self) -> None:
        self.talk.ask("undo")

    def commit(self) -> None:
        self.talk.ask("commit")

    def rollback(self) -> None:
        if not self.talk.usable():
            raise ConnectionError("the program cannot be asked to roll back")
        self.talk.ask("rollback")

    def _yes(self, do: str, **more: Any) -> bool:
        """Whether there was a row."""
        said = self.talk.ask(do, **more)
        if not isinstance(said, bool):
            raise self.bad(f"{do}: expected true, or false where there is no row "
                           f"(got {ascii(said)[:80]})")  # fmt: skip
        return said

    def _rows(self, do: str, low: str | int, high: str | int) -> dict[str, Any]:
        said: Mapping[str, Any] = self.talk.ask(do, low=low, high=high)
        if not isinstance(said, dict):
            raise self.bad(f"{do}: expected an object of keys and values (got {ascii(said)[:80]})")
        return said
