"""Extracts templates from a recorded run: the sequences of statements that its programs executed.

A program is a label, or if the transactions have none, a sequence of statements. Each sequence of a
program is a branch. A row is a table and the values of its primary key (``savings/7``); equal rows
of one transaction are equal parameters. Rows of different tables never share a parameter, because
a run does not say which keys are foreign keys; ``same_keys`` says so.

A recorded read with a later write of its row remains a read and a write, even if one statement made
both, and a read that locks its row remains a read: templates then allow more executions, so that
"robust" stays right.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from isolang.errors import UnsupportedError
from isolang.foresee.templates import (
    ALL,
    Branch,
    Kind,
    Templates,
    TemplateStatement,
    templates_of_branches,
)
from isolang.programs.syntax import RESERVED

if TYPE_CHECKING:
    from isolang.history.history import History

ROWS: Final = "rows"
"""The relation of keys that name no table."""

_TABLE: Final = re.compile(r':table\s+(?:"([^"]+)"|:?([^\s,}\]"]+))')
_KINDS: Final[Mapping[str, Kind]] = {
    "r": "read",
    "r-in": "read",
    "r-not-in": "read",
    "w": "write",
    "append": "write",
    "insert": "insert",
    "delete": "delete",
}


class Extracted(Struct, frozen=True, kw_only=True):
    """The templates of a run.

    Attributes:
        templates: the templates.
        counts: how many transactions of the run are instances of each branch, in their order.
        transactions: how many transactions the templates describe.
        ignored: how many transactions did not certainly commit, or touch no row.
    """

    templates: Templates
    counts: tuple[int, ...]
    transactions: int
    ignored: int


def extract(history: History, *, same_keys: Collection[Collection[str]] = ()) -> Extracted:
    """Return the templates of a history.

    Args:
        history: the history.
        same_keys: sets of tables whose primary keys are the same, because they are foreign keys of
            each other.

    Raises:
        UnsupportedError: if no transaction is left, or if an operation has no table.

    >>> from isolang import History, Transaction
    >>> found = extract(History.from_transactions([
    ...     Transaction([("r", "acc/1", None), ("w", "acc/1", 1), ("r", "acc/2", None)], label="P"),
    ...     Transaction([("r", "acc/9", None), ("w", "acc/9", 2), ("r", "acc/3", None)], label="P"),
    ... ]))
    >>> print(*shown(found.templates))
    program P(acc1, acc2) r(acc[acc1]) w(acc[acc1], 0) r(acc[acc2])
    """
    words = _Words({table: min(tables) for tables in same_keys for table in tables})
    found: dict[tuple[str, tuple[TemplateStatement, ...]], int] = {}
    ignored = 0
    names: dict[tuple[TemplateStatement, ...], str] = {}
    for transaction in history.transactions():
        if transaction.status == "initial":
            continue
        statements = words.statements(transaction.ops, transaction.failed)
        if transaction.status != "committed" or not statements:
            ignored += 1
            continue
        label = transaction.label
        if label is None:
            name = names.setdefault(statements, f"P{len(names) + 1}")
        else:
            name = words.word(label if isinstance(label, str) else " ".join(label))
        found[name, statements] = found.get((name, statements), 0) + 1
    if not found:
        what = "no committed transaction that touches a row"
        raise UnsupportedError(f"{history.name}: {what}, so there are no templates")
    of_program: dict[str, int] = {}
    branches, counts = [], []
    several = {name for name, _ in found if sum(one == name for one, _ in found) > 1}
    for (name, statements), count in found.items():
        of_program[name] = of_program.get(name, 0) + 1
        used = [key for one in statements for key in one.keys if isinstance(key, str)]
        branches.append(
            Branch(
                program=name,
                way=f"sequence {of_program[name]}" if name in several else "",
                parameters=tuple(dict.fromkeys(used)),
                different=frozenset(),
                statements=statements,
            )
        )
        counts.append(count)
    return Extracted(
        templates=templates_of_branches(tuple(branches)),
        counts=tuple(counts),
        transactions=sum(counts),
        ignored=ignored,
    )


def shown(templates: Templates) -> Iterator[str]:
    """Yield the templates as programs of one line each, which ``parse_templates`` reads again.

    A program with several branches becomes several programs.
    """
    numbers: dict[str, int] = {}
    for branch in templates.branches:
        numbers[branch.program] = number = numbers.get(branch.program, 0) + 1
        name = branch.program if not branch.way else f"{branch.program}-s{number}"
        steps = " ".join(_step(one) for one in branch.statements)
        yield f"program {name}({', '.join(branch.parameters)}) {steps}"


def _step(one: TemplateStatement) -> str:
    keys = f"[{', '.join('*' if key is None else str(key) for key in one.keys)}]"
    row = f"{one.relation}{keys if one.keys else ''}"
    word = {"read": "r", "write": "w"}.get(one.kind, one.kind)
    return f"{word}({row}{', 0' if one.kind == 'write' else ''})"


class _Words:
    """The names of relations and parameters, which differ if the tables differ."""

    def __init__(self, group: Mapping[str, str]) -> None:
        self._group = group
        self._words: dict[str, str] = {}

    def word(self, text: str) -> str:
        """Return a name of the language that no other text has."""
        if text not in self._words:
            found = re.sub(r"[^A-Za-z0-9_]+", "_", text) or "_"
            found = f"_{found}" if found[0].isdigit() or found in RESERVED else found
            while found in self._words.values():
                found += "_"
            self._words[text] = found
        return self._words[text]

    def statements(
        self, ops: Collection[tuple[Any, ...]], failed: Collection[int]
    ) -> tuple[TemplateStatement, ...]:
        """Return the statements of a transaction, with parameters in place of its rows' keys."""
        parameters: dict[tuple[str, int, str], str] = {}
        found: list[TemplateStatement] = []
        for number, op in enumerate(ops):
            if number in failed:
                continue
            if op[0] == "scan":
                table, values = _table_of(op[1]), None
                kind: Kind = "read"
            else:
                table, values = _row_of(op[1])
                kind = _KINDS[op[0]]
            keys: tuple[str | None, ...] = (None,)
            if values is not None:
                keys = tuple(
                    parameters.setdefault(key, self._parameter(key, parameters))
                    for key in self._keys(table, values)
                )
            relation = self.word(table)
            all_columns, nothing = frozenset([ALL]), frozenset[str]()
            letter = {"read": "r", "write": "w"}.get(kind, kind)
            found.append(
                TemplateStatement(
                    kind=kind,
                    relation=relation,
                    keys=keys,
                    reads=all_columns if kind == "read" else nothing,
                    writes=nothing if kind == "read" else all_columns,
                    step=len(found),
                    text=f"{letter}({relation}[{', '.join(key or '*' for key in keys)}])",
                )
            )
        return tuple(found)

    def _keys(self, table: str, values: tuple[str, ...]) -> Iterator[tuple[str, int, str]]:
        for place, value in enumerate(values):
            yield self._group.get(table, table), place, value

    def _parameter(self, key: tuple[str, int, str], known: Mapping[Any, str]) -> str:
        count = sum(one[:2] == key[:2] for one in known)
        place = "" if key[1] == 0 else f"_{key[1] + 1}_"
        return f"{self.word(key[0])}{place}{count + 1}"


def _row_of(key: object) -> tuple[str, tuple[str, ...]]:
    """Return the table and the primary key that a key of a history names."""
    if isinstance(key, tuple | list) and len(key) > 1:
        return str(key[0]), tuple(map(str, key[1:]))
    table, slash, row = str(key).partition("/")
    if not slash:
        return ROWS, (str(key),)
    return table, tuple(row.split("/"))


def _table_of(predicate: object) -> str:
    """Return the table of a predicate read.

    Raises:
        UnsupportedError: if the predicate names none.
    """
    found = _TABLE.search(str(predicate))
    if found is not None:
        return found[1] or found[2]
    raise UnsupportedError(
        f"a predicate read names no table (got {predicate!r:.60}), so no template can have it"
    )
