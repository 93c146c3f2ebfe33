"""Extracts templates from a recorded run: the sequences of statements executed by its programs.

All transactions with the same label are instances of one program. Without a label, transactions
that begin on the same line of the application are instances of one program; if no lines were
recorded, those that execute the same sequence of statements. Each sequence executed by a program is
a branch of the program. :mod:`isolang.foresee.row_keys` says what identifies a row. Within a
transaction, the same row always becomes the same parameter. Rows of different tables share a
parameter only through a foreign key, which the recording names, the database's catalogue, or the
argument ``same_keys``.

A read and a later write of its row become one update if, according to the run, one statement
executed both or the read locked the row. Otherwise they remain a read and a write. The templates
then allow more executions, so the answer "robust" remains correct. A locking read of a row that is
not written remains a read that locks its row.

SOUND BECAUSE a lock held until the commit prevents other transactions from writing the row between
the read and the write. A locking read returns the last committed version, or fails if its snapshot
is older. An update in its place has the same effect. Neither prevents other transactions from
reading.

If some transactions have labels, those without one before the first of them prepare the database,
and do not count as instances of programs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from isolang.errors import UnsupportedError
from isolang.foresee.foreign_keys import ForeignKeys, KeyColumn, domains, require_tables
from isolang.foresee.row_keys import Condition, RunRows
from isolang.foresee.run import program_of
from isolang.foresee.schedules import LEVELS, Level
from isolang.foresee.session_locks import LocksOfRun
from isolang.foresee.templates import (
    ALL_COLUMNS,
    Branch,
    Kind,
    RowLock,
    Templates,
    TemplateStatement,
    reads_before_locks,
    templates_of_branches,
)
from isolang.history.objects import numbered_operations
from isolang.history.statement_text import one_line
from isolang.history.statements import ALONE, GUARDS
from isolang.programs.syntax import RESERVED

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.history.statements import Statements
    from isolang.history.transaction import Transaction

MOST_OF_NAME: Final = 50
"""The largest number of characters of a statement that names a program."""

_KINDS: Final[Mapping[str, Kind]] = {
    "r": "read",
    "r-in": "read",
    "r-not-in": "read",
    "w": "write",
    "append": "write",
    "insert": "insert",
    "delete": "delete",
}
_WRITES: Final = ("w", "append", "insert", "delete")
_Test: TypeAlias = tuple[Condition | None, bool]  # of a predicate read; whether no row was found
_LETTERS: Final[Mapping[str, str]] = {"read": "r", "write": "w", "update": "u"}
_REQUESTED: Final[Mapping[str, Level]] = {"pl-2": "mvrc", "rc": "mvrc", "si": "si", "ser": "ssi"}
_NUMBERED: Final = re.compile("P[0-9]+")  # the name of a program whose statements are unknown
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_LINE: Final = re.compile(r"[^\s'\"();]+:[0-9]+")  # a file:line of the application


class Extracted(Struct, frozen=True, kw_only=True):
    """The templates extracted from a run.

    Attributes:
        counts: for each branch of the templates, the number of its instances in the run.
        ignored: the number of transactions without a branch, either because it is uncertain whether
            they committed, or because they access no rows.
        lacking: what the programs did, or may have done, besides; empty if nothing.
        titles: the name of each program as the application has it.
        tables: the table of each relation.
        conditions: for each predicate read, by its program and step, the conditions that it had.
        refusing: the predicate reads that found a row, after which the program inserted none.
        finding_nothing: the reads that found no row in some transaction.
        requested: the lowest level that the transactions of each program requested, if all did.
        parents: for a column that is a foreign key, the table and the column that it refers to.
        rows: the rows of the run, and what identifies them.
        preparing: the number of transactions that prepared the database.
        assumptions: what the choice of the columns that identify rows, and the use of locks, adds
            to the conditions of the answer ``robust``.
        reads_unknown: whether the run does not say for some read whether it locks.
        rolled_back: the programs that were rolled back after writes that no committed transaction
            of theirs executed; the run does not have their reads.
    """

    templates: Templates
    counts: tuple[int, ...]
    transactions: int
    ignored: int
    foreign_keys: tuple[str, ...] = ()
    lacking: str = ""
    titles: Mapping[str, str] = {}
    preparing: int = 0
    assumptions: tuple[str, ...] = ()
    rolled_back: tuple[str, ...] = ()
    tables: Mapping[str, str] = {}
    conditions: Mapping[tuple[str, int], Sequence[Condition]] = {}
    refusing: frozenset[tuple[str, int]] = frozenset()
    finding_nothing: frozenset[tuple[str, int]] = frozenset()
    requested: Mapping[str, Level] = {}
    parents: Mapping[tuple[str, str], tuple[str, str]] = {}
    reads_unknown: bool = False
    rows: RunRows

    def column(self, relation: str, position: int) -> tuple[str, str]:
        """Return the table of a relation, and the column that a key of its statements names.

        The column is empty if it is unknown.
        """
        table = self.tables.get(relation, "")
        identity = self.rows.identity(table)
        component = identity[position] if identity else position
        return table, self.rows.column(table, component)


def extract(
    *histories: History,
    same_keys: Collection[Collection[str]] = (),
    catalogue: ForeignKeys | None = None,
    unique: Mapping[str, Sequence[Sequence[str]]] = {},
) -> Extracted:
    """Extract the templates from the histories of runs, each with a database of its own.

    Args:
        unique: further unique indexes to assume, besides those that the recording names.

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
    runs = [(history, list(history.transactions())) for history in histories]
    indexes: dict[str, list[Sequence[str]]] = {table: [*some] for table, some in unique.items()}
    for history in histories:
        for table, some in history.unique_indexes().items():
            known = indexes.setdefault(table, [])
            known += (index for index in some if index not in known)
    columns = catalogue.columns if catalogue is not None else {}
    rows = RunRows(runs, indexes, columns)
    names = [_ProgramNames(transactions) for _, transactions in runs]
    recorded_keys = [key for history in histories for key in _recorded(history, rows)]
    words = _TemplateNames(rows, domains(same_keys, catalogue, recorded_keys))
    words.locks = LocksOfRun(
        (history.statements_of(number), words.identities(transaction))
        for rows.run, (history, transactions) in enumerate(runs)
        for number, transaction in enumerate(transactions)
        if transaction.status == "committed" and number >= names[rows.run].first
    )
    sequences: dict[tuple[str, tuple[TemplateStatement, ...]], int] = {}
    sources: dict[tuple[str, tuple[TemplateStatement, ...]], list[str]] = {}
    tests: dict[tuple[str, tuple[TemplateStatement, ...]], list[list[_Test]]] = {}
    requested: dict[str, set[Level | None]] = {}
    ignored = preparing = 0
    rolled_back: list[tuple[str, tuple[TemplateStatement, ...]]] = []
    for run, history, number, transaction in _numbered(runs):
        words.begin(run)
        if transaction.status == "initial":
            continue
        sent = history.statements_of(number)
        compared = _compared(history, number, transaction, sent, rows)
        places, statements = words.statements(transaction, sent, compared)
        if number < names[run].first:
            preparing += bool(statements)
            continue
        recorded = _sources(history, number, places) if statements else []
        if transaction.status != "committed" or not statements:
            ignored += 1
            if transaction.status == "aborted" and statements:
                rolled_back.append((names[run].of(transaction, statements, recorded), statements))
            continue
        of = names[run].of(transaction, statements, recorded), statements
        sequences[of] = sequences.get(of, 0) + 1
        sources.setdefault(of, recorded)
        requested.setdefault(words.word(of[0]), set()).add(_REQUESTED.get(transaction.level or ""))
        tests.setdefault(of, []).append([rows.tested(transaction.ops, place) for place in places])
    if not sequences:
        reason = "no committed transaction touches a row"
        raise UnsupportedError(f"{histories[0].name}: {reason}, so there are no templates")
    if catalogue is not None:
        require_tables(histories[0], words.tables, catalogue)
    titles = {words.word(title): title for title, _ in sequences}
    untold = _untold(rolled_back, sequences)
    branches = tuple(_branches(sequences, sources, words))
    return Extracted(
        templates=templates_of_branches(branches),
        counts=tuple(sequences.values()),
        transactions=sum(sequences.values()),
        ignored=ignored,
        foreign_keys=tuple(catalogue.sentences(words.tables) if catalogue is not None else ()),
        lacking=_lacking([history.lacking() for history in histories], untold),
        titles=titles,
        preparing=preparing,
        assumptions=(*rows.assumptions(), *words.assumptions()),
        rolled_back=untold,
        reads_unknown=words.reads_unknown,
        tables={words.word(table): table for table in rows.tables()},
        conditions=_conditions(branches, tests.values()),
        requested={
            program: min(known, key=LEVELS.index)
            for program, levels in requested.items()
            if (known := [level for level in levels if level is not None])
            and len(known) == len(levels)
        },
        refusing=frozenset(_refusing(branches, tests.values())),
        finding_nothing=frozenset(_finding_nothing(branches, tests.values())),
        parents={
            (table, column): (parent, other)
            for history in histories
            for table, keys in history.foreign_keys().items()
            for (column, *more), parent, (other, *_) in keys
            if not more
        },
        rows=rows,
    )


def _compared(
    history: History, txn: int, transaction: Transaction, sent: Statements, rows: RunRows
) -> set[int]:
    """Return the reads of rows that a later statement writes only if they are still the same.

    Such a statement compares a column that every write changes (``WHERE version = 7``).
    """
    compared: set[int] = set()
    ops = transaction.ops
    shown = [
        n
        for n, statement in enumerate(sent)
        if statement is not None and statement.shown and ops[n][0] == "w"
    ]
    if not shown:
        return compared
    sources = _sources(history, txn, range(len(ops)))
    for write in shown:
        reads = [n for n in range(write) if ops[n][0] == "r" and ops[n][1] == ops[write][1]]
        if reads and rows.compared(ops[write][1], sources[write]):
            compared.update(reads)
    return compared


def _conditions(
    branches: Sequence[Branch], tests: Collection[Sequence[Sequence[_Test]]]
) -> dict[tuple[str, int], tuple[Condition, ...]]:
    """Return the conditions of each predicate read, by the columns compared."""
    of_reads: dict[tuple[str, int], dict[frozenset[str], Condition]] = {}
    for branch, instances in zip(branches, tests, strict=True):
        for instance in instances:
            for statement, (condition, _) in zip(branch.statements, instance, strict=True):
                if condition is not None:
                    known = of_reads.setdefault((branch.program, statement.step), {})
                    known.setdefault(frozenset(condition.equal), condition)
    return {place: tuple(known.values()) for place, known in of_reads.items()}


def _refusing(
    branches: Sequence[Branch], tests: Collection[Sequence[Sequence[_Test]]]
) -> Iterator[tuple[str, int]]:
    """Yield the predicate reads that found a row, after which their transaction inserted none."""
    for branch, instances in zip(branches, tests, strict=True):
        inserted = {
            statement.relation for statement in branch.statements if statement.kind == "insert"
        }
        for instance in instances:
            for statement, (condition, is_absent) in zip(branch.statements, instance, strict=True):
                finds_rows = condition is not None and not is_absent
                if finds_rows and statement.relation not in inserted:
                    yield branch.program, statement.step


def _finding_nothing(
    branches: Sequence[Branch], tests: Collection[Sequence[Sequence[_Test]]]
) -> Iterator[tuple[str, int]]:
    """Yield the reads that found no row, so that FOR UPDATE would have locked nothing."""
    for branch, instances in zip(branches, tests, strict=True):
        for instance in instances:
            for statement, (_, is_absent) in zip(branch.statements, instance, strict=True):
                if is_absent:
                    yield branch.program, statement.step


def _recorded(history: History, rows: RunRows) -> Iterator[tuple[KeyColumn, KeyColumn]]:
    """Yield the columns of foreign keys that the recording names, and what they refer to."""
    for table, keys in history.foreign_keys().items():
        for columns, parent, referenced in keys:
            for column, other in zip(columns, referenced, strict=False):
                yield (table, rows.position(table, column)), (parent, rows.position(parent, other))


def _lacking(lacking: Sequence[str], rolled_back: Sequence[str]) -> str:
    """Return what the templates lack: what was not seen, and what was seen only rolled back."""
    reasons = [*dict.fromkeys(filter(None, lacking))]
    if rolled_back:
        names = ", ".join(rolled_back)
        reasons.append(f"what {names} did in transactions that were only ever rolled back")
    return "; ".join(reasons)


def _numbered(
    runs: Sequence[tuple[History, Sequence[Transaction]]],
) -> Iterator[tuple[int, History, int, Transaction]]:
    """Yield each transaction with its run and its number there."""
    for run, (history, transactions) in enumerate(runs):
        for number, transaction in enumerate(transactions):
            yield run, history, number, transaction


def _untold(
    rolled_back: Sequence[tuple[str, tuple[TemplateStatement, ...]]],
    sequences: Mapping[tuple[str, tuple[TemplateStatement, ...]], int],
) -> tuple[str, ...]:
    """Return the programs that were rolled back after writes that committed ones do not have.

    A history has only the writes of a transaction that was rolled back.
    """
    untold: dict[str, None] = {}
    known: dict[str, list[list[tuple[str, str]]]] = {}
    for title, statements in sequences:
        known.setdefault(title, []).append(_writes(statements))
    for title, statements in rolled_back:
        writes = _writes(statements)
        if not any(some[: len(writes)] == writes for some in known.get(title, ())):
            is_named = title in known or not _NUMBERED.fullmatch(title)
            untold[title if is_named else f"a program with {statements[0].text}"] = None
    return tuple(untold)


def _writes(statements: Sequence[TemplateStatement]) -> list[tuple[str, str]]:
    """Return the writes of a transaction, whether its statements also read or not."""
    return [
        ("write" if statement.kind == "update" else statement.kind, statement.relation)
        for statement in statements
        if statement.writes and not (statement.kind == "update" and statement.lock)
    ]


def _branches(
    sequences: Mapping[tuple[str, tuple[TemplateStatement, ...]], int],
    sources: Mapping[tuple[str, tuple[TemplateStatement, ...]], list[str]],
    words: _TemplateNames,
) -> Iterator[Branch]:
    numbers: dict[str, dict[tuple[str, ...], int]] = {}
    ways: Counter[str] = Counter()
    several = Counter(title for title, _ in sequences)
    for title, statements in sequences:
        ways[title] += 1
        used = [key for statement in statements for key in statement.keys if isinstance(key, str)]
        yield Branch(
            program=words.word(title),
            way=f"sequence {ways[title]}" if several[title] > 1 else "",
            parameters=tuple(dict.fromkeys(used)),
            different=frozenset(),
            statements=tuple(
                _with_step_numbers(
                    statements, sources[title, statements], numbers.setdefault(title, {})
                )
            ),
        )


class _ProgramNames:
    """Names the programs of a run: by labels, lines of the application, or first statements.

    Attributes:
        first: the number of the first transaction of a program. Those before it have no label and
            prepare the database.
    """

    def __init__(self, transactions: Sequence[Transaction]) -> None:
        labels = [_labels(transaction) for transaction in transactions]
        named = [frozenset(some) for some in labels if some]
        shared = frozenset.intersection(*named) if named else frozenset()
        # A label of all transactions, such as the application's name, distinguishes nothing.
        self._ignored = shared if len(set(named)) > 1 else frozenset()
        distinguishing = [
            [label for label in some if label not in self._ignored] for some in labels
        ]
        self.first = next((number for number, some in enumerate(distinguishing) if some), 0)
        self._shapes: dict[tuple[TemplateStatement, ...], str] = {}

    def of(
        self,
        transaction: Transaction,
        statements: tuple[TemplateStatement, ...],
        sources: Sequence[str],
    ) -> str:
        """Return the name of a transaction's program."""
        labels = [label for label in _labels(transaction) if label not in self._ignored]
        if labels:
            return program_of(labels)
        first = next(filter(None, sources), "")
        if _LINE.fullmatch(first):
            return first
        if statements not in self._shapes:
            short = one_line(first, MOST_OF_NAME) if first else f"P{len(self._shapes) + 1}"
            same = sum(name.partition(" (")[0] == short for name in self._shapes.values())
            self._shapes[statements] = f"{short} ({same + 1})" if same else short
        return self._shapes[statements]


def _labels(transaction: Transaction) -> Sequence[str]:
    label = transaction.label
    return () if label is None else [label] if isinstance(label, str) else label


def _sources(history: History, txn: int, places: Sequence[int]) -> list[str]:
    """Return the ``file:line`` or the SQL of each statement; empty if unknown."""
    operations = list(numbered_operations(history, txn))

    def source(index: int) -> str:
        if index < 0:
            return ""
        is_scan, number = operations[index]
        remark = history.predicate_remark(number) if is_scan else history.remark(number)
        return _COMMENT.sub("", remark.caller).strip()

    return [source(index) for index in places]


def _with_step_numbers(
    statements: Sequence[TemplateStatement],
    sources: Sequence[str],
    numbers: dict[tuple[str, ...], int],
) -> Iterator[TemplateStatement]:
    """Yield a sequence's statements, giving the same number to the same statement of the program.

    Statements of a program are the same if the same line, or the same text, executed them on the
    same relation. If neither was recorded, they are the same if they have the same text and are
    preceded by equally many statements with this text in their sequences.
    """
    seen: Counter[str] = Counter()
    for statement, source in zip(statements, sources, strict=True):
        same = (
            (source, statement.kind, statement.relation)
            if source
            else (statement.text, str(seen[statement.text]))
        )
        yield replace(statement, step=numbers.setdefault(same, len(numbers)), source=source)
        seen[statement.text] += 1


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
    """Chooses the names of relations and parameters in extracted templates.

    Attributes:
        tables: the tables of the rows that statements name.
        locks: the advisory locks and locks of tables that transactions held.
        reads_unknown: whether it is unknown which statement some read is part of.
    """

    locks: LocksOfRun

    def __init__(self, rows: RunRows, of_columns: Mapping[KeyColumn, KeyColumn]) -> None:
        self._rows, self._domains = rows, of_columns
        self._words: dict[str, str] = {}
        self._present: set[object] = set()
        self._run = -1
        self.tables: set[str] = set()
        self.reads_unknown = False
        self._locks_rows = False

    def begin(self, run: int) -> None:
        """Go on with the transactions of a run."""
        if run != self._run:
            self._run = self._rows.run = run
            self._present = set(self._rows.initial[run])

    def word(self, text: str) -> str:
        """Return a valid identifier for a text. Different texts get different identifiers."""
        if text not in self._words:
            word = re.sub(r"[^A-Za-z0-9_]+", "_", text) or "_"
            word = f"_{word}" if word[0].isdigit() or word in RESERVED else word
            while word in self._words.values():
                word += "_"
            self._words[text] = word
        return self._words[text]

    def assumptions(self) -> Iterator[str]:
        """Yield the conditions that the use of locks adds to the answer ``robust``."""
        if self._locks_rows:
            yield "a row that a read locks exists"
        yield from self.locks.assumptions()

    def identities(self, transaction: Transaction) -> Iterator[tuple[tuple[str, object], str]]:
        """Yield the domains of the values that identify a transaction's rows, and the values."""
        for op in transaction.ops:
            table, values = self._identity_of(op)
            for domain, value in zip(self._domains_of(table, len(values)), values, strict=True):
                if value is not None:
                    yield domain, value

    def statements(
        self, transaction: Transaction, sent: Statements, compared: Collection[int]
    ) -> tuple[list[int], tuple[TemplateStatement, ...]]:
        """Return the statements of a transaction, with parameters instead of row keys.

        ``compared`` has the reads whose rows are written only if they are still the same.

        The first result contains, for each statement, its operation's number in the transaction.
        """
        ops, failed = transaction.ops, transaction.failed
        updates = _updates(ops, failed, sent)
        merged = set(updates.values())
        parameters: dict[tuple[tuple[str, object], str], str] = {}
        statements: list[TemplateStatement] = []
        places: list[int] = []
        taken: set[str] = set()
        lasting_locks = _locks_until_end(sent)
        writing = {
            one.number
            for op, one in zip(ops, sent, strict=False)
            if one is not None and op[0] in _WRITES
        }
        # A row inserted by a transaction that was rolled back does not exist afterwards.
        present = set(self._present) if transaction.status == "aborted" else self._present
        for number, op in enumerate(ops):
            if number in failed or number in merged:
                continue
            for name in lasting_locks.get(number, ()):
                if name not in taken and (
                    lock := self._session_lock(name, parameters, transaction)
                ):
                    statements.append(replace(lock, step=len(statements)))
                    places.append(-1)
                taken.add(name)
            kind = self._kind(op, number, updates, present)
            lock_of_read = _row_lock(op, number, sent) if kind == "read" else ""
            self._locks_rows |= bool(lock_of_read)
            if kind == "read" and not lock_of_read and number in compared:
                lock_of_read = "version"
            places.append(number)
            template = self._statement(op, kind, lock_of_read, len(statements), parameters)
            if kind == "read":
                of = sent[number] if number < len(sent) else None
                self.reads_unknown |= of is None
                locks = of is not None and (bool(of.lock) or of.number in writing)
                template = replace(template, newest=locks)
            statements.append(template)
        numbers = [
            statement.number if 0 <= place < len(sent) and (statement := sent[place]) else None
            for place in places
        ]
        order = reads_before_locks(statements, numbers)
        return [places[at] for at in order], tuple(
            replace(statements[at], step=step) for step, at in enumerate(order)
        )

    def _statement(
        self,
        op: tuple[Any, ...],
        kind: Kind,
        lock: RowLock,
        step: int,
        parameters: dict[tuple[tuple[str, object], str], str],
    ) -> TemplateStatement:
        table, values = self._identity_of(op)
        if op[0] != "scan":
            self.tables.add(table)
        keys = tuple(
            None if value is None else self._parameter((domain, value), parameters)
            for domain, value in zip(self._domains_of(table, len(values)), values, strict=True)
        )
        relation = self.word(table)
        all_columns, nothing = frozenset([ALL_COLUMNS]), frozenset[str]()
        return TemplateStatement(
            kind=kind,
            relation=relation,
            keys=keys,
            reads=all_columns if kind in ("read", "update") else nothing,
            writes=nothing if kind == "read" else all_columns,
            step=step,
            text=f"{_LETTERS.get(kind, kind)}({relation}[{', '.join(key or '*' for key in keys)}])",
            lock="" if None in keys else lock,
        )

    def _kind(
        self,
        op: tuple[Any, ...],
        number: int,
        updates: Mapping[int, int | None],
        present: set[object],
    ) -> Kind:
        """Return the kind of an operation's statement, and update the rows that exist."""
        if op[0] == "scan":
            return "read"
        key = op[1]
        known = key in present
        if op[0] == "delete":
            present.discard(key)
            return "delete"
        if op[0] in ("r", "w", "insert") and len(op) > 2 and self._rows.is_row(key, op[2]):
            present.add(key)
            if op[0] == "r":
                return "update" if number in updates else "read"
            return "write" if known else "insert"
        return "update" if number in updates else _KINDS[op[0]]

    def _identity_of(self, op: tuple[Any, ...]) -> tuple[str, tuple[str | None, ...]]:
        if op[0] == "scan":
            condition = self._rows.condition(op[1])
            return condition.table, self._rows.selected(condition)
        return self._rows.row(op[1])

    def _domains_of(self, table: str, count: int) -> Iterator[tuple[str, object]]:
        for component in self._rows.identity(table) or range(count):
            yield self._domains.get((table, component), (table, component))

    def _parameter(
        self,
        value: tuple[tuple[str, object], str],
        parameters: dict[tuple[tuple[str, object], str], str],
    ) -> str:
        if value not in parameters:
            (table, component), _ = value
            count = sum(known[0] == value[0] for known in parameters)
            if isinstance(component, str):
                name = f"{self.word(component)}{count + 1}"
            else:
                position = "" if component == 0 else f"_{component + 1}_"  # type: ignore[operator]
                name = f"{self.word(table)}{position}{count + 1}"
            while name in parameters.values():  # a column may have the name of a table
                name += "_"
            parameters[value] = name
        return parameters[value]

    def _session_lock(
        self,
        name: str,
        parameters: dict[tuple[tuple[str, object], str], str],
        transaction: Transaction,
    ) -> TemplateStatement | None:
        """Return the statement that takes another lock than that of a row."""
        relation, domain, shared = self.locks.key(name)
        keys: tuple[str | None, ...] = ()
        if domain is not None:
            values = {value for of, value in self.identities(transaction) if of == domain}
            if len(values) != 1:
                return None
            keys = (self._parameter((domain, values.pop()), parameters),)
        word = self.word(relation)
        return TemplateStatement(
            kind="read",
            relation=word,
            keys=keys,
            reads=frozenset(),
            writes=frozenset(),
            step=0,
            text=f"lock({word}{f'[{keys[0]}]' if keys else ''})",
            lock="share" if shared else "update",
        )


def _locks_until_end(sent: Statements) -> dict[int, Sequence[str]]:
    """Return the locks, other than those of rows, that each later statement holds, too.

    The result has them for each operation whose statement is known. A session may release a lock
    before its transaction ends; others then see what the transaction did only after its commit.
    """
    locks: dict[int, Sequence[str]] = {}
    later: Sequence[str] | None = None
    for number in reversed(range(len(sent))):
        if (statement := sent[number]) is not None:
            later = [name for name in statement.holds if later is None or name in later]
            locks[number] = later
    return locks


def _row_lock(op: tuple[Any, ...], number: int, sent: Statements) -> RowLock:
    """Return the lock that a read took on a row that it found."""
    statement = sent[number] if number < len(sent) else None
    if statement is None or op[0] != "r" or len(op) < 3 or op[2] is None:
        return ""
    if statement.lock not in GUARDS:
        return ""
    return "update" if statement.lock in ALONE else "share"


def _updates(
    ops: Sequence[tuple[Any, ...]], failed: Collection[int], sent: Statements
) -> dict[int, int | None]:
    """Return the reads that become updates in the templates, each with the write it includes.

    A read includes the write of its row by the same statement. A locking read includes no write
    (``None``), because a later statement writes the row.
    """
    updates: dict[int, int | None] = {}
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
        merges = write is not None and write.number == statement.number
        if merges and ops[later[0]][0] == "w" and later[0] not in updates.values():
            updates[number] = later[0]
        elif statement.guards:
            updates[number] = None
    return updates
