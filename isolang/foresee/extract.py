"""Extracts templates from a recorded run: the sequences of statements executed by its programs.

All transactions with the same label are instances of one program. Transactions without a label are
instances of the same program if they execute the same sequence of statements. Each sequence
executed by a program is a branch of the program. A row is identified by its table and its primary
key values (``savings/7``). Within a transaction, the same row always becomes the same parameter.
Rows of different tables share a parameter only through a foreign key. A run does not show foreign
keys, so they must come from the database's catalogue or the argument ``same_keys``.

A read and a later write of its row become one update if, according to the run, one statement
executed both or the read locked the row. Otherwise they remain a read and a write, and a locking
read of a row that is not written remains a read. The templates then allow more executions, so the
answer "robust" remains correct.

SOUND BECAUSE a lock held until the commit prevents other transactions from writing the row between
the read and the write. A locking read returns the last committed version, or fails if its snapshot
is older. An update in its place has the same effect. Neither prevents other transactions from
reading.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from isolang.errors import UnsupportedError
from isolang.foresee.foreign_keys import ForeignKeys, KeyColumn, domains, require_tables
from isolang.foresee.run import program_of
from isolang.foresee.templates import (
    ALL_COLUMNS,
    Branch,
    Kind,
    Templates,
    TemplateStatement,
    templates_of_branches,
)
from isolang.history.objects import operation_indices
from isolang.programs.syntax import RESERVED

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.history.statements import Statements

ROWS: Final = "rows"
"""The relation for keys without a table."""

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


_LETTERS: Final[Mapping[str, str]] = {"read": "r", "write": "w", "update": "u"}


class Extracted(Struct, frozen=True, kw_only=True):
    """The templates extracted from a run.

    Attributes:
        counts: for each branch of the templates, the number of its instances in the run.
        ignored: the number of transactions without a branch, either because it is uncertain whether
            they committed, or because they access no rows.
        lacking: what the programs did, or may have done, besides; empty if nothing.
    """

    templates: Templates
    counts: tuple[int, ...]
    transactions: int
    ignored: int
    foreign_keys: tuple[str, ...] = ()
    lacking: str = ""


def extract(
    history: History,
    *,
    same_keys: Collection[Collection[str]] = (),
    catalogue: ForeignKeys | None = None,
) -> Extracted:
    """Extract the templates from a history.

    Raises:
        UnsupportedError: no committed transaction accesses a row, a predicate read names no table,
            or the catalogue has none of the run's tables.

    >>> from isolang import History, Transaction
    >>> found = extract(History.from_transactions([
    ...     Transaction([("r", "acc/1", None), ("w", "acc/1", 1), ("r", "acc/2", None)], label="P"),
    ...     Transaction([("r", "acc/9", None), ("w", "acc/9", 2), ("r", "acc/3", None)], label="P"),
    ... ]))
    >>> print(*shown(found.templates))
    program P(acc1, acc2) r(acc[acc1]) w(acc[acc1], 0) r(acc[acc2])
    """
    columns = catalogue.columns if catalogue is not None else {}
    words = _TemplateNames(domains(same_keys, catalogue), columns)
    found: dict[tuple[str, tuple[TemplateStatement, ...]], int] = {}
    callers: dict[tuple[str, tuple[TemplateStatement, ...]], list[str]] = {}
    ignored = 0
    names: dict[tuple[TemplateStatement, ...], str] = {}
    for number, transaction in enumerate(history.transactions()):
        if transaction.status == "initial":
            continue
        sent = history.statements_of(number)
        places, statements = words.statements(transaction.ops, transaction.failed, sent)
        if transaction.status != "committed" or not statements:
            ignored += 1
            continue
        label = transaction.label
        if label is None:
            name = names.setdefault(statements, f"P{len(names) + 1}")
        else:
            name = words.word(program_of([label] if isinstance(label, str) else label))
        found[name, statements] = found.get((name, statements), 0) + 1
        if (name, statements) not in callers:
            callers[name, statements] = _callers(history, number, places)
    if not found:
        what = "no committed transaction touches a row"
        raise UnsupportedError(f"{history.name}: {what}, so there are no templates")
    if catalogue is not None:
        require_tables(history, words.tables, catalogue)
    numbers: dict[str, dict[tuple[str, ...], int]] = {}
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
                statements=tuple(
                    _with_step_numbers(
                        statements, callers[name, statements], numbers.setdefault(name, {})
                    )
                ),
            )
        )
        counts.append(count)
    return Extracted(
        templates=templates_of_branches(tuple(branches)),
        counts=tuple(counts),
        transactions=sum(counts),
        ignored=ignored,
        foreign_keys=tuple(catalogue.sentences(words.tables) if catalogue is not None else ()),
        lacking=history.lacking(),
    )


def _callers(history: History, txn: int, places: Sequence[int]) -> list[str]:
    """Return the ``file:line`` that executed each operation; empty if unknown."""
    first: dict[int, int] = {}
    start = int(history.columns.op_start[txn])
    for op, place in enumerate(operation_indices(history, txn), start):
        first.setdefault(place, op)
    return [history.remark(first[n]).caller if n in first else "" for n in places]


def _with_step_numbers(
    statements: Sequence[TemplateStatement],
    callers: Sequence[str],
    numbers: dict[tuple[str, ...], int],
) -> Iterator[TemplateStatement]:
    """Yield a sequence's statements, giving the same number to the same statement of the program.

    Statements of a program are the same if the same line executed them on the same relation. If no
    lines were recorded, they are the same if they have the same text and are preceded by equally
    many statements with this text in their sequences.
    """
    seen: Counter[str] = Counter()
    for one, caller in zip(statements, callers, strict=True):
        same = (caller, one.kind, one.relation) if caller else (one.text, str(seen[one.text]))
        yield replace(one, step=numbers.setdefault(same, len(numbers)))
        seen[one.text] += 1


def shown(templates: Templates) -> Iterator[str]:
    """Yield each branch as a one-line program, in the syntax of ``parse_templates``.

    If a program has several branches, they get different names.
    """
    numbers: dict[str, int] = {}
    for branch in templates.branches:
        numbers[branch.program] = number = numbers.get(branch.program, 0) + 1
        name = branch.program if not branch.way else f"{branch.program}-s{number}"
        steps = " ".join(_step_text(one) for one in branch.statements)
        yield f"program {name}({', '.join(branch.parameters)}) {steps}"


def _step_text(one: TemplateStatement) -> str:
    keys = f"[{', '.join('*' if key is None else str(key) for key in one.keys)}]"
    row = f"{one.relation}{keys if one.keys else ''}"
    value = ", 0" if one.kind in ("write", "update") else ""
    return f"{_LETTERS.get(one.kind, one.kind)}({row}{value})"


class _TemplateNames:
    """Chooses the names of relations and parameters in extracted templates."""

    def __init__(
        self, domains: Mapping[KeyColumn, KeyColumn], columns: Mapping[str, tuple[str, ...]]
    ) -> None:
        self._domains, self._columns = domains, columns
        self._words: dict[str, str] = {}
        self.tables: set[str] = set()

    def word(self, text: str) -> str:
        """Return a valid identifier for a text. Different texts get different identifiers."""
        if text not in self._words:
            found = re.sub(r"[^A-Za-z0-9_]+", "_", text) or "_"
            found = f"_{found}" if found[0].isdigit() or found in RESERVED else found
            while found in self._words.values():
                found += "_"
            self._words[text] = found
        return self._words[text]

    def statements(
        self, ops: Sequence[tuple[Any, ...]], failed: Collection[int], sent: Statements
    ) -> tuple[list[int], tuple[TemplateStatement, ...]]:
        """Return the statements of a transaction, with parameters instead of row keys.

        The first result contains, for each statement, its operation's number in the transaction.
        """
        updates = _updates(ops, failed, sent)
        merged = set(updates.values())
        parameters: dict[tuple[str, int, str], str] = {}
        found: list[TemplateStatement] = []
        places: list[int] = []
        for number, op in enumerate(ops):
            if number in failed or number in merged:
                continue
            if op[0] == "scan":
                table, values = _table_of(op[1]), None
                kind: Kind = "read"
            else:
                table, values = _row_of(op[1], self._columns)
                kind = "update" if number in updates else _KINDS[op[0]]
            keys: tuple[str | None, ...] = (None,)
            if values is not None:
                keys = tuple(
                    parameters.setdefault(key, self._parameter(key, parameters))
                    for key in self._keys(table, values)
                )
            relation = self.word(table)
            all_columns, nothing = frozenset([ALL_COLUMNS]), frozenset[str]()
            letter = _LETTERS.get(kind, kind)
            places.append(number)
            found.append(
                TemplateStatement(
                    kind=kind,
                    relation=relation,
                    keys=keys,
                    reads=all_columns if kind in ("read", "update") else nothing,
                    writes=nothing if kind == "read" else all_columns,
                    step=len(found),
                    text=f"{letter}({relation}[{', '.join(key or '*' for key in keys)}])",
                )
            )
        return places, tuple(found)

    def _keys(self, table: str, values: tuple[str, ...]) -> Iterator[tuple[str, int, str]]:
        self.tables.add(table)
        for place, value in enumerate(values):
            yield *self._domains.get((table, place), (table, place)), value

    def _parameter(self, key: tuple[str, int, str], known: Mapping[Any, str]) -> str:
        count = sum(one[:2] == key[:2] for one in known)
        place = "" if key[1] == 0 else f"_{key[1] + 1}_"
        return f"{self.word(key[0])}{place}{count + 1}"


def _updates(
    ops: Sequence[tuple[Any, ...]], failed: Collection[int], sent: Statements
) -> dict[int, int | None]:
    """Return the reads that become updates in the templates, each with the write it includes.

    A read includes the write of its row by the same statement. A locking read includes no write
    (``None``), because a later statement writes the row.
    """
    found: dict[int, int | None] = {}
    for number, statement in enumerate(sent):
        if statement is None or number in failed or ops[number][0] != "r":
            continue
        later = [
            n
            for n in range(number + 1, len(ops))
            if n not in failed and ops[n][0] in ("w", "delete") and ops[n][1] == ops[number][1]
        ]
        if not later:
            continue
        write = sent[later[0]]
        updates = write is not None and write.number == statement.number
        if updates and ops[later[0]][0] == "w" and later[0] not in found.values():
            found[number] = later[0]
        elif statement.guards:
            found[number] = None
    return found


def _row_of(key: object, columns: Mapping[str, tuple[str, ...]]) -> tuple[str, tuple[str, ...]]:
    """Split a key of a history into the table and the primary key values.

    In an observed history, these values are one text, with commas in between.

    Args:
        columns: the columns of the primary key of each table, as far as they are known.
    """
    if isinstance(key, tuple | list) and len(key) > 1:
        values = tuple(map(str, key[1:]))
        number = len(columns.get(str(key[0]), ()))
        listed = tuple(values[0].split(","))
        return str(key[0]), listed if len(values) == 1 and len(listed) == number else values
    table, slash, row = str(key).partition("/")
    if not slash:
        return ROWS, (str(key),)
    return table, tuple(row.split("/"))


def _table_of(predicate: object) -> str:
    """Return the table named by a predicate."""
    found = _TABLE.search(str(predicate))
    if found is not None:
        return found[1] or found[2]
    raise UnsupportedError(
        f"a predicate read names no table (got {predicate!r:.60}), so no template can state it"
    )
