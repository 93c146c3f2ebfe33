"""Finds the smallest changes that make the programs of a service safe, as SQL.

A program is unsafe at a level if one of its transactions may overlook a write. These changes can
prevent it:

* the read and the write of a row become one statement, or the read locks its row;
* a unique index holds the columns that the program compares before it inserts, if the run shows
  that it does not insert a second row with the same values;
* transactions first lock the row that a foreign key names, or take an advisory lock;
* the program and its partners run at SERIALIZABLE.

Each change is expressed in the templates, and a change is only reported if the decision says that
the program is then safe.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import replace

from isolang.errors import IsolangError, UnsupportedError
from isolang.foresee.extract import Extracted
from isolang.foresee.robust import candidates, partners, reduced_at
from isolang.foresee.schedules import (
    KEEPS_LOCKED,
    Level,
    SearchBudget,
    SplitSchedule,
    is_innodb,
    levels_of,
)
from isolang.foresee.templates import Branch, Templates, TemplateStatement, reads_before_locks

ChangeKind: TypeAlias = Literal[
    "unique index", "one statement", "lock", "lock parent", "advisory lock", "serializable"
]

_KINDS: Final[tuple[ChangeKind, ...]] = get_args(ChangeKind)

MOST_LOCKS: Final = 4
"""The largest number of reads of one program to lock."""

MOST_SHARES: Final = 15
"""How many times the work for one program the decision about all changes together may take."""

MOST_EXCLUSIONS: Final = 2
"""The largest number of reads by conditions that unique indexes or first locks protect."""

_SET: Final = re.compile(r"\bset\s+(\"?\w+\"?)\s*=\s*(\$\d+|%s|\?|:\w+|'[^']*'|[-\d.]+)", re.I)
_SELECT: Final = re.compile(
    r"\s*select\b(?!.*\b(group by|distinct|union|for update)\b)", re.I | re.S
)
_WHERE: Final = re.compile(r"\bwhere\b", re.I)


class Change(Struct, frozen=True, kw_only=True):
    """A change to the programs or the database.

    Attributes:
        programs: the programs that change; empty for a change to the database.
        reads: the reads that change: a program and the number of a step, from 0, each.
        writes: for each of them, the step of the write that includes it.
        table: the table that gets an index, or whose rows are locked.
        columns: the columns of the index, or the column that the lock depends on.
        sql: what to write, as SQL.
    """

    kind: ChangeKind
    programs: tuple[str, ...] = ()
    reads: tuple[tuple[str, int], ...] = ()
    writes: tuple[int, ...] = ()
    table: str = ""
    columns: tuple[str, ...] = ()
    sql: str


class ServiceMend(Struct, frozen=True, kw_only=True):
    """Changes that together make a program safe at a level, as the decision confirmed.

    Attributes:
        level: the level of the program; those of a change to ``serializable`` run at SERIALIZABLE.
    """

    program: str
    level: Level
    changes: tuple[Change, ...]

    @property
    def size(self) -> tuple[int, int, int]:
        """The number of statements, programs and indexes that change, for comparison.

        Of equal numbers, those come first that make the fewest other transactions wait or fail.
        """
        touched = sum(len(change.reads) or len(change.programs) or 1 for change in self.changes)
        return touched, len(self.changes), max(_KINDS.index(change.kind) for change in self.changes)


Reextract: TypeAlias = Callable[[Mapping[str, Sequence[Sequence[str]]]], Extracted]
"""Returns the templates of the run with further unique indexes."""


class MendSearch:
    """Searches for the changes that make the programs of a run safe at a level."""

    def __init__(
        self,
        run: Extracted,
        levels: Mapping[str, Level],
        extract: Reextract,
        *,
        sessions: bool,
        work: int,
    ) -> None:
        """Prepare to search.

        Args:
            levels: the level at which each program runs.
            extract: returns the templates with a unique index.
        """
        self._run, self._of_programs, self._extract = run, levels, extract
        self._is_innodb = any(map(is_innodb, levels.values()))
        self._sessions = sessions
        # Services with many programs get fewer steps for each, so that all of them get some mends.
        self._work = max(work // 50, work // (2 * len(run.templates.programs)))
        self._budget = SearchBudget(self._work)
        self._with_index: dict[tuple[str, tuple[str, ...]], Extracted | None] = {}

    def of(self, program: str) -> list[ServiceMend]:
        """Return the changes that make a program safe, which it is not, the smallest first.

        If the search gives up, larger changes may be missing.
        """
        self._budget = SearchBudget(self._work)
        mends: list[ServiceMend] = []
        with suppress(UnsupportedError):
            for changes in self._choices(program):
                mend = ServiceMend(
                    program=program, level=self._of_programs[program], changes=tuple(changes)
                )
                if not any(set(_keys(other)) <= set(_keys(mend)) for other in mends):
                    mends.append(mend)
        return sorted(mends, key=lambda mend: mend.size)

    def all_together(self, mends: Sequence[ServiceMend]) -> tuple[str, ...]:
        """Return the programs that are not safe if all changes are made.

        Raises:
            UnsupportedError: the search gave up.
        """
        changes = [change for mend in mends for change in mend.changes]
        self._budget = SearchBudget(MOST_SHARES * self._work)
        templates = self._changed(self._run.templates, changes)
        levels = self._levels(templates, changes)
        templates = reduced_at(templates, levels)

        def is_safe(program: str) -> bool:
            if levels[program] == "ssi" and all(
                levels[other] == "ssi"
                for other in partners(templates, program, budget=self._budget)
            ):
                return True
            return self._candidate(program, templates, levels, is_reduced=True) is None

        return tuple(program for program in templates.programs if not is_safe(program))

    # --- which changes ---

    def _choices(self, program: str) -> Iterator[list[Change]]:
        yield [self._serializable(program)]
        merged = self._one_statement(program)
        for base in ([], [merged] if merged is not None else None):
            if base is not None:
                yield from self._completed(program, base, MOST_EXCLUSIONS)

    def _completed(self, program: str, base: list[Change], more: int) -> Iterator[list[Change]]:
        """Yield changes that begin with ``base`` and make a program safe.

        Reads of single rows are locked. For a read by a condition, other transactions are kept from
        inserting rows that it would overlook, for at most ``more`` such reads.
        """
        changes, read = self._with_locks(program, base)
        if read is None:
            yield changes
        elif more:
            for exclusion in self._exclusions(program, read):
                if exclusion not in base:
                    yield from self._completed(program, [*base, exclusion], more - 1)

    def _exclusions(self, program: str, read: TemplateStatement) -> Iterator[Change]:
        """Yield changes that keep other transactions from inserting what a read overlooks."""
        if read.keyed:
            return
        table = self._run.tables.get(read.relation, read.relation)
        for condition in self._run.conditions.get((program, read.step), ()):
            columns = tuple(sorted(condition.equal))
            refuses = (program, read.step) in self._run.refusing and _inserts(
                self._run.templates, program, read.relation
            )
            if refuses and columns and self._index(table, columns) is not None:
                yield Change(
                    kind="unique index",
                    table=table,
                    columns=columns,
                    sql=f"ALTER TABLE {table} ADD UNIQUE ({', '.join(columns)})"
                    if self._is_innodb
                    else f"CREATE UNIQUE INDEX ON {table} ({', '.join(columns)})",
                )
        if all(key is None for key in read.keys) and not self._is_innodb:
            yield Change(
                kind="advisory lock",
                programs=tuple(self._users(read.relation, None)),
                table=table,
                sql=f"SELECT pg_advisory_xact_lock(hashtext('{table}'))",
            )
        for position, key in enumerate(read.keys):
            if key is None:
                continue
            users = tuple(self._users(read.relation, position))
            _, column = self._run.column(read.relation, position)
            if not column:
                continue
            parent = self._run.parents.get((table, column))
            if parent is not None:
                yield Change(
                    kind="lock parent",
                    programs=users,
                    table=table,
                    columns=(column,),
                    sql=f"SELECT {'1 ' * self._is_innodb}FROM {parent[0]} "
                    f"WHERE {parent[1]} = <{column}> FOR UPDATE",
                )
            if self._is_innodb:
                continue  # its named locks do not end with the transaction
            yield Change(
                kind="advisory lock",
                programs=users,
                table=table,
                columns=(column,),
                sql=f"SELECT pg_advisory_xact_lock(hashtext('{table}'), "
                f"hashtext(<{column}>::text))",
            )

    def _users(self, relation: str, position: int | None) -> Iterator[str]:
        """Yield the programs that write rows of a relation, or read them by conditions.

        With a position, only those statements count that name a value of this column.
        """
        for program in self._run.templates.programs:
            if any(
                statement.relation == relation
                and (position is None or statement.keys[position] is not None)
                and (statement.writes or not statement.keyed)
                for branch in self._run.templates.branches
                if branch.program == program
                for statement in branch.statements
            ):
                yield program

    def _index(self, table: str, columns: tuple[str, ...]) -> Extracted | None:
        """Return the templates with another unique index; ``None`` if it cannot be created."""
        if (table, columns) not in self._with_index:
            extracted = None
            if not self._run.rows.repeats(table, columns):
                try:
                    extracted = self._extract({table: [columns]})
                except IsolangError:
                    extracted = None
            self._with_index[table, columns] = extracted
        return self._with_index[table, columns]

    def _one_statement(self, program: str) -> Change | None:
        """Return the change that merges each read of a row with the write that follows it."""
        pairs: dict[int, tuple[TemplateStatement, TemplateStatement]] = {}
        for branch in self._run.templates.branches:
            if branch.program == program:
                for at, read in enumerate(branch.statements):
                    write = next(
                        (
                            statement
                            for statement in branch.statements[at + 1 :]
                            if statement.kind in ("write", "update")
                            and (statement.relation, statement.keys) == (read.relation, read.keys)
                        ),
                        None,
                    )
                    if read.kind == "read" and read.keyed and read.reads and write is not None:
                        pairs.setdefault(read.step, (read, write))
        if not pairs:
            return None
        return Change(
            kind="one statement",
            programs=(program,),
            reads=tuple((program, step) for step in pairs),
            writes=tuple(write.step for _, write in pairs.values()),
            sql="; ".join(_merged(read, write) for read, write in pairs.values()),
        )

    def _with_locks(
        self, program: str, base: list[Change]
    ) -> tuple[list[Change], TemplateStatement | None]:
        """Return changes with the locks of single reads, and a read that they are not enough for.

        Each lock is of a read that some candidate overlooks a write with, and is left out again if
        the others suffice. The second result is ``None`` if the program is then safe.
        """
        keeps_gaps = self._of_programs[program] in KEEPS_LOCKED
        locks: dict[tuple[str, int], Change] = {}
        while (candidate := self._after(program, [*base, *locks.values()])) is not None:
            read = candidate.overlooking
            step_of_program = (program, read.step)
            unlocked = read.kind == "read" and not read.lock
            plain = unlocked and (read.is_plain if keeps_gaps else read.keyed)
            locks_nothing = not keeps_gaps and step_of_program in self._run.finding_nothing
            if not plain or locks_nothing or step_of_program in locks or len(locks) == MOST_LOCKS:
                return base, read
            locks[step_of_program] = Change(
                kind="lock", programs=(program,), reads=(step_of_program,), sql=_locking(read)
            )
        for step_of_program in list(locks):
            fewer = [change for where, change in locks.items() if where != step_of_program]
            if (base or fewer) and self._after(program, [*base, *fewer]) is None:
                del locks[step_of_program]
        return [*base, *locks.values()], None

    def _serializable(self, program: str) -> Change:
        """Return the change that runs a program and its partners at SERIALIZABLE."""
        code = "1213" if self._is_innodb else "40001"
        change = Change(
            kind="serializable",
            programs=(program,),
            sql=f"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, and retry after {code}",
        )
        if self._is_innodb:
            return change  # its locks keep other transactions away, at whatever level
        others = partners(self._run.templates.reduced(), program, budget=self._budget)
        return replace(change, programs=tuple(dict.fromkeys((program, *others))))

    # --- what they change ---

    def _after(self, program: str, changes: Sequence[Change]) -> SplitSchedule | None:
        templates = self._changed(self._run.templates, changes)
        return self._candidate(program, templates, self._levels(templates, changes))

    def _levels(self, templates: Templates, changes: Sequence[Change]) -> dict[str, Level]:
        raised = {
            program for one in changes if one.kind == "serializable" for program in one.programs
        }
        return {
            program: levels_of(level)[-1] if program in raised else level
            for program in templates.programs
            for level in [self._of_programs[program]]
        }

    def _candidate(
        self,
        program: str,
        templates: Templates,
        levels: Mapping[str, Level],
        *,
        is_reduced: bool = False,
    ) -> SplitSchedule | None:
        every = candidates(
            templates if is_reduced else reduced_at(templates, levels),
            levels,
            sessions=self._sessions,
            budget=self._budget,
            split=program,
        )
        return next(every, None)

    def _changed(self, templates: Templates, changes: Sequence[Change]) -> Templates:
        """Return the templates with some changes."""
        indexes: dict[str, list[Sequence[str]]] = {}
        for change in changes:
            if change.kind == "unique index":
                indexes.setdefault(change.table, []).append(change.columns)
        if len(indexes) == 1 and all(
            len(columns_of_indexes) == 1 for columns_of_indexes in indexes.values()
        ):
            ((table, (columns,)),) = indexes.items()
            extracted = self._index(table, tuple(columns))
            assert extracted is not None
            templates = extracted.templates
        elif indexes:
            templates = self._extract(indexes).templates
        locked = {step for change in changes if change.kind == "lock" for step in change.reads}
        merged = {
            step: write
            for change in changes
            if change.kind == "one statement"
            for step, write in zip(change.reads, change.writes, strict=True)
        }
        first = [change for change in changes if change.kind in ("lock parent", "advisory lock")]
        branches = (
            _with_first_locks(
                _with_merged(_with_row_locks(branch, locked), merged), first, self._run
            )
            for branch in templates.branches
        )
        return replace(templates, branches=tuple(branches))


def _inserts(templates: Templates, program: str, relation: str) -> bool:
    return any(
        statement.kind == "insert" and statement.relation == relation
        for branch in templates.branches
        if branch.program == program
        for statement in branch.statements
    )


def _keys(mend: ServiceMend) -> Iterator[tuple[str, str]]:
    return ((change.kind, change.sql) for change in mend.changes)


def _with_row_locks(branch: Branch, locked: set[tuple[str, int]]) -> Branch:
    statements = tuple(
        replace(statement, lock="update" if statement.keyed else "", newest=True)
        if (branch.program, statement.step) in locked
        else statement
        for statement in branch.statements
    )
    if statements == branch.statements:
        return branch
    order = reads_before_locks(statements, [statement.source for statement in statements])
    return replace(branch, statements=tuple(statements[at] for at in order))


def _with_merged(branch: Branch, merged: Mapping[tuple[str, int], int]) -> Branch:
    """Return a branch in which some reads are part of the writes of their rows.

    A branch without the write keeps the read: its condition did not hold, so it writes nothing.
    """
    reads: set[int] = set()
    writes: set[int] = set()
    for at, read in enumerate(branch.statements):
        step = merged.get((branch.program, read.step))
        for later in range(at + 1, len(branch.statements)):
            write = branch.statements[later]
            same_row = (write.relation, write.keys) == (read.relation, read.keys)
            if write.step == step and same_row and read.kind == "read":
                reads.add(at)
                writes.add(later)
                break
    statements = tuple(
        replace(statement, kind="update", reads=statement.reads | statement.writes)
        if at in writes
        else statement
        for at, statement in enumerate(branch.statements)
        if at not in reads
    )
    return replace(branch, statements=statements)


def _with_first_locks(branch: Branch, changes: Sequence[Change], run: Extracted) -> Branch:
    """Return a branch that first takes locks which depend on the value of a column."""
    locks: dict[tuple[str, str], TemplateStatement] = {}
    for change in changes:
        if branch.program not in change.programs:
            continue
        if not change.columns:
            locks[change.table, ""] = _first_lock(f"{change.kind} of {change.table}", ())
            continue
        for statement in branch.statements:
            for position, key in enumerate(statement.keys):
                table, column = run.column(statement.relation, position)
                if isinstance(key, str) and (table, (column,)) == (change.table, change.columns):
                    relation = f"{change.kind} {change.table}"
                    locks[relation, key] = _first_lock(relation, (key,))
    return replace(branch, statements=(*locks.values(), *branch.statements))


def _first_lock(relation: str, keys: tuple[str, ...]) -> TemplateStatement:
    return TemplateStatement(
        kind="read",
        relation=relation,
        keys=keys,
        reads=frozenset(),
        writes=frozenset(),
        step=-1,
        text=f"lock({relation})",
        lock="update",
    )


def _locking(read: TemplateStatement) -> str:
    """Return the SQL of a read that locks its row."""
    if _SELECT.match(read.source):
        return f"{read.source.strip().rstrip(';')} FOR UPDATE"
    where = f" ({read.source})" if read.source else ""
    return f"{read.text}{where} with FOR UPDATE"


def _merged(read: TemplateStatement, write: TemplateStatement) -> str:
    """Return the SQL of an update that includes a read, as far as the recording shows it."""
    if not (_SELECT.match(read.source) and _WHERE.search(write.source)):
        of = " and ".join(dict.fromkeys(filter(None, (read.source, write.source))))
        return f"one UPDATE instead of {read.text} and {write.text}{f' ({of})' if of else ''}"
    updated = _SET.sub(r"SET \1 = <computed from \1>", write.source.strip().rstrip(";"))
    return f"{updated} AND <condition>, without: {read.source.strip().rstrip(';')}"
