"""Defines templates, the form of programs used to decide robustness.

A template statement names the row it accesses, and the columns of the row it reads and writes. A
program with ``if`` has one branch per path through it. Values and conditions are ignored: each
statement is assumed to run with any values. This is sound, because it only allows more executions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from isolang.programs.syntax import (
    AbortStep,
    AnyRow,
    Column,
    Computed,
    DeleteStep,
    If,
    InsertStep,
    Number,
    Program,
    ProgramError,
    ReadStep,
    RowKey,
    Step,
    UpdateStep,
    Value,
    Variable,
    WriteStep,
)

MOST_BRANCHES: Final = 64
"""The largest number of paths through one program."""

ALL_COLUMNS: Final = "*"
"""The name that represents all columns, for a statement that accesses the whole row."""

Kind: TypeAlias = Literal["read", "write", "update", "insert", "delete"]

RowLock: TypeAlias = Literal["", "share", "update", "version"]
"""How a read keeps others from its row until its transaction ends: writers; writers and locks; or
only writers, as its transaction later writes the row if its version is still the same."""

Key: TypeAlias = str | int | None
"""A component of a row's key: a parameter, a constant, or ``None`` if it may have any value."""


class TemplateStatement(Struct, frozen=True, kw_only=True):
    """One statement of a branch.

    Attributes:
        step: the number of the statement among its program's steps, from 0. It is the same in all
            branches.
        lock: the lock that a read takes on its row. Writes always lock their rows.
        newest: whether a read is part of a statement that locks or writes, so that InnoDB reads the
            newest rows, even if ``lock`` is empty because no row was found or a condition selects.
        source: the statement as it was recorded: SQL, or ``file:line``; empty if unknown.
    """

    kind: Kind
    relation: str
    keys: tuple[Key, ...]
    reads: frozenset[str]
    writes: frozenset[str]
    step: int
    text: str
    lock: RowLock = ""
    newest: bool = False
    source: str = ""

    @property
    def is_plain(self) -> bool:
        """``True`` for a read that takes no lock."""
        return self.kind == "read" and self.lock in ("", "version") and not self.newest

    @property
    def keyed(self) -> bool:
        """``True`` if the statement names its row; ``False`` if it selects rows by a condition."""
        return None not in self.keys

    def waits_for_lock_of(self, other: TemplateStatement) -> bool:
        """Return whether the lock of a read makes this statement wait, if both name one row.

        One of the two statements takes a lock without writing. It makes the other one wait until
        its transaction ends, or waits for it.
        """
        if not (self.lock or other.lock):
            return False
        if "version" in (self.lock, other.lock):
            return bool(self.writes or other.writes)
        strength = "update" if self.writes else self.lock
        of_other = "update" if other.writes else other.lock
        return bool(strength and of_other and "update" in (strength, of_other))


def reads_before_locks(
    statements: Sequence[TemplateStatement], sent: Sequence[object]
) -> list[int]:
    """Return the order in which what one SQL statement reads precedes what it locks.

    SOUND BECAUSE: at READ COMMITTED, an SQL statement reads the snapshot that it took at its
    beginning, even if it waited for a lock since. Only the row that it waited for is read again.

    Args:
        sent: for each statement, what only those of the same SQL statement have in common, or a
            false value if that is unknown.
    """
    begins: list[int] = []
    for at, same in enumerate(sent):
        begins.append(begins[-1] if at and same and same == sent[at - 1] else at)

    def rank(at: int) -> tuple[int, bool]:
        is_plain = statements[at].kind == "read" and statements[at].lock in ("", "version")
        return begins[at], not is_plain

    return sorted(range(len(statements)), key=rank)


class Branch(Struct, frozen=True, kw_only=True):
    """One path through a program, as a sequence of statements.

    Attributes:
        way: the conditions for taking this path, as text; empty if the program has only one path.
        different: pairs of parameters that never have the same value.
    """

    program: str
    way: str
    parameters: tuple[str, ...]
    different: frozenset[tuple[str, str]]
    statements: tuple[TemplateStatement, ...]

    @property
    def name(self) -> str:
        """The name of the program, with the conditions of the branch if there are any."""
        return f"{self.program} if {self.way}" if self.way else self.program


class Templates(Struct, frozen=True, kw_only=True):
    """The branches of some programs, and the parameters and constants that may have equal values.

    Attributes:
        types: the type number of each parameter, by program and name. Parameters that may identify
            rows of the same relation have the same type.
        deleted: the relations that some statement deletes rows from.
        dropped: the number of paths omitted because they abort or access no row.
    """

    branches: tuple[Branch, ...]
    types: dict[tuple[str, str], int]
    constants: dict[int, tuple[int, ...]]
    deleted: frozenset[str]
    dropped: int = 0

    @property
    def programs(self) -> tuple[str, ...]:
        """The names of the programs, in the order of their branches."""
        return tuple(dict.fromkeys(branch.program for branch in self.branches))

    def of(self, programs: Iterable[str]) -> Templates:
        """Return the templates of the given programs only."""
        chosen = set(programs)
        branches = tuple(one for one in self.branches if one.program in chosen)
        return templates_of_branches(branches, dropped=self.dropped)

    def with_whole_rows(self) -> Templates:
        """Return templates whose statements read or write all columns of their rows."""

        def whole(one: TemplateStatement) -> TemplateStatement:
            return replace(
                one,
                reads=frozenset([ALL_COLUMNS] if one.reads else []),
                writes=frozenset([ALL_COLUMNS] if one.writes else []),
            )

        return self.with_statements(whole)

    def promoted(self, reads: Iterable[tuple[str, int]]) -> Templates:
        """Return templates with some reads replaced by updates that change no value."""
        chosen = set(reads)

        def promote(program: str, one: TemplateStatement) -> TemplateStatement:
            if (program, one.step) not in chosen:
                return one
            return replace(one, kind="update", writes=one.writes | one.reads)

        branches = tuple(
            replace(
                branch,
                statements=tuple(promote(branch.program, one) for one in branch.statements),
            )
            for branch in self.branches
        )
        return replace(self, branches=branches)

    def reduced(self, *, by_plain_reads: bool = False) -> Templates:
        """Return templates with fewer statements that are robust if and only if these are.

        With ``by_plain_reads``, the first plain read may take the snapshot, as in InnoDB.

        SOUND BECAUSE: in a split schedule, each transaction conflicts with other transactions in at
        most two of its statements. The rows not named by these statements can be rows that no other
        transaction accesses, so the transaction neither waits nor conflicts on them. Therefore, a
        branch can be replaced by its parts that have the parameters of two statements and those of
        the statement that takes the snapshot. Whatever such a part does in a split
        schedule, the whole branch can also do, with separate rows for its other statements.
        """
        busy = self._without_idle_reads(by_plain_reads=by_plain_reads)
        found: dict[object, Branch] = {}
        spare = sum(len(one.statements) for one in busy.branches)
        for branch in busy.branches:
            for part in _reduced_parts(branch, by_plain_reads=by_plain_reads):
                shape = self._shape(part)
                if shape not in found:
                    found[shape] = part
                    spare -= len(part.statements)
                if spare <= 0:
                    return busy  # a few long branches are searched faster than many short ones
        return replace(busy, branches=tuple(found.values()))

    def reading_after_writes(self, programs: Collection[str]) -> Templates:
        """Return templates in which writes also read what plain reads of their rows show later.

        SOUND BECAUSE: a plain read of a row that its transaction has written shows the columns that
        it has not written as the write found them, which InnoDB's snapshot may not have. The read
        stays, as it may be of another row.

        Args:
            programs: only their branches change.
        """
        return replace(
            self,
            branches=tuple(
                _reading_after_writes(branch) if branch.program in programs else branch
                for branch in self.branches
            ),
        )

    def _without_idle_reads(self, *, by_plain_reads: bool) -> Templates:
        """Return templates without the reads of relations that no statement writes.

        SOUND BECAUSE: such a read conflicts with nothing. The statement that takes the snapshot
        stays, and so do reads that lock rows.
        """
        written = {
            statement.relation
            for branch in self.branches
            for statement in branch.statements
            if statement.writes
        }
        return replace(
            self,
            branches=tuple(
                _with_statements_of(
                    branch,
                    (
                        statement
                        for at, statement in enumerate(branch.statements)
                        if at in snapshots or statement.lock or statement.relation in written
                    ),
                )
                for branch in self.branches
                for snapshots in [_snapshot_places(branch, by_plain_reads=by_plain_reads)]
            ),
        )

    def _shape(self, branch: Branch) -> object:
        """Return a value that is equal for branches that differ only in parameter names."""
        numbers = {name: number for number, name in enumerate(branch.parameters)}
        kinds = tuple(self.types[branch.program, name] for name in branch.parameters)
        statements = tuple(
            (
                one.kind,
                one.relation,
                tuple((numbers[key],) if isinstance(key, str) else key for key in one.keys),
                one.reads,
                one.writes,
                one.lock,
                one.newest,
            )
            for one in branch.statements
        )
        different = frozenset((numbers[a], numbers[b]) for a, b in branch.different)
        return branch.program, kinds, statements, different

    def with_statements(
        self, change: Callable[[TemplateStatement], TemplateStatement]
    ) -> Templates:
        """Return templates with each statement replaced by the result of a function."""
        branches = tuple(
            replace(branch, statements=tuple(map(change, branch.statements)))
            for branch in self.branches
        )
        return replace(self, branches=branches)


def _reading_after_writes(branch: Branch) -> Branch:
    """Return a branch as :meth:`Templates.reading_after_writes` says."""

    def with_reads(at: int, write: TemplateStatement) -> TemplateStatement:
        if not write.writes or ALL_COLUMNS in write.writes:
            return write
        later = (
            read.reads - write.writes
            for read in branch.statements[at + 1 :]
            if read.is_plain and read.relation == write.relation
        )
        return replace(write, reads=write.reads.union(*later))

    return replace(
        branch,
        statements=tuple(with_reads(at, one) for at, one in enumerate(branch.statements)),
    )


def _snapshot_places(branch: Branch, *, by_plain_reads: bool) -> set[int]:
    """Return the indices of the statements that may take the snapshot."""
    plain = (at for at, one in enumerate(branch.statements) if by_plain_reads and one.is_plain)
    return {0, next(plain, 0)}


def _reduced_parts(branch: Branch, *, by_plain_reads: bool) -> Iterator[Branch]:
    """Yield the parts of a branch that replace it in :meth:`Templates.reduced`."""
    together = {name: frozenset([name]) for name in branch.parameters}
    for statement in branch.statements:
        names = [key for key in statement.keys if isinstance(key, str)]
        union = frozenset[str]().union(*(together[name] for name in names))
        together |= dict.fromkeys(union, union)
    every = list(dict.fromkeys(together.values()))
    always = frozenset[str]().union(
        *(
            together[key]
            for at in _snapshot_places(branch, by_plain_reads=by_plain_reads)
            for key in branch.statements[at].keys
            if isinstance(key, str)
        )
    )
    others = [one for one in every if not one <= always]
    if len(others) <= 2:
        yield branch
        return
    for one, other in combinations(others, 2):
        yield _statements_with_only(branch, one | other | always)


def _statements_with_only(branch: Branch, names: frozenset[str]) -> Branch:
    """Return a branch without the statements that use parameters other than ``names``."""
    return _with_statements_of(
        branch,
        (
            one
            for one in branch.statements
            if all(key in names for key in one.keys if isinstance(key, str))
        ),
    )


def _with_statements_of(branch: Branch, kept: Iterable[TemplateStatement]) -> Branch:
    """Return a branch with some of its statements, and the parameters that they use."""
    statements = tuple(kept)
    used = dict.fromkeys(key for one in statements for key in one.keys if isinstance(key, str))
    return replace(
        branch,
        statements=statements,
        parameters=tuple(used),
        different=frozenset((a, b) for a, b in branch.different if a in used and b in used),
    )


def have_common_column(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether two sets of columns share a column.

    >>> have_common_column(frozenset("ab"), frozenset("b"))
    True
    >>> every = frozenset([ALL_COLUMNS])
    >>> have_common_column(every, frozenset("b")), have_common_column(every, frozenset())
    (True, False)
    """
    if not one or not other:
        return False
    return ALL_COLUMNS in one or ALL_COLUMNS in other or not one.isdisjoint(other)


def templates(programs: Sequence[Program]) -> Templates:
    """Compile programs into templates.

    Args:
        programs: the programs, as returned by :func:`isolang.programs.syntax.parse_templates`.

    Raises:
        ProgramError: a program has too many branches, statements identify rows of a relation by
            different numbers of components, or all paths abort or access no row.

    >>> from isolang.programs.syntax import parse_templates
    >>> text = "program P(c) a = r(x[c].n) if a = 0 { u(x[c].n, .n + 1) } else { abort }"
    >>> [(one.name, len(one.statements)) for one in templates(parse_templates(text)).branches]
    [('P if a = 0', 2)]
    """
    branches: list[Branch] = []
    dropped = 0
    for program in programs:
        every = [steps for _, steps in program.transactions()]
        for number, steps in enumerate(every, 1):
            name = program.name if len(every) == 1 else f"{program.name}.{number}"
            numbers = {id(step): n for n, step in enumerate(_all_steps(steps))}
            ways = list(_paths_through(steps, name))
            found: dict[tuple[TemplateStatement, ...], str] = {}
            for way, taken in ways:
                statements = tuple(
                    statement
                    for step in taken or ()
                    for statement in _statements(step, numbers[id(step)], program.parameters)
                )
                if taken is None or not statements:
                    dropped += 1
                    continue
                found.setdefault(statements, " and ".join(way))
            for statements, condition in found.items():
                used = {key for one in statements for key in one.keys}
                branches.append(
                    Branch(
                        program=name,
                        way=condition if len(found) > 1 or len(ways) > 1 else "",
                        parameters=tuple(one for one in program.parameters if one in used),
                        different=frozenset(
                            (a, b) for a, b in program.different if a in used and b in used
                        ),
                        statements=statements,
                    )
                )
    if not branches:
        raise ProgramError(
            "no statement is left: each execution path of each program aborts or touches no row"
        )
    return templates_of_branches(tuple(branches), dropped=dropped)


def templates_of_branches(branches: tuple[Branch, ...], *, dropped: int = 0) -> Templates:
    """Return the templates that consist of some branches, with computed parameter types.

    Raises:
        ProgramError: statements identify rows of a relation by different numbers of components.
    """
    lengths: dict[str, int] = {}
    group: dict[tuple[str, object], tuple[str, object]] = {}

    def root(one: tuple[str, object]) -> tuple[str, object]:
        while group.setdefault(one, one) != one:
            one = group[one]
        return one

    constants: dict[tuple[str, object], set[int]] = {}
    for branch in branches:
        for one in branch.statements:
            length = lengths.setdefault(one.relation, len(one.keys))
            if length != len(one.keys):
                raise ProgramError(
                    f"{branch.program}: `{one.text}` (got {len(one.keys)} keys of "
                    f"{one.relation}, expected {length} as elsewhere)"
                )
            for place, key in enumerate(one.keys):
                if isinstance(key, str):
                    group[root((one.relation, place))] = root((f"\0{branch.program}", key))
                elif key is not None:
                    constants.setdefault((one.relation, place), set()).add(key)
    roots: dict[tuple[str, object], int] = {}
    types = {
        (branch.program, parameter): roots.setdefault(
            root((f"\0{branch.program}", parameter)), len(roots)
        )
        for branch in branches
        for parameter in branch.parameters
    }
    of_type: dict[int, set[int]] = {}
    for place_of, values in constants.items():
        number = roots.setdefault(root(place_of), len(roots))
        of_type.setdefault(number, set()).update(values)
    return Templates(
        branches=branches,
        types=types,
        constants={number: tuple(sorted(values)) for number, values in of_type.items()},
        deleted=frozenset(
            one.relation for branch in branches for one in branch.statements if one.kind == "delete"
        ),
        dropped=dropped,
    )


def _all_steps(steps: Sequence[Step]) -> Iterator[Step]:
    for step in steps:
        if isinstance(step, If):
            yield from _all_steps(step.then)
            yield from _all_steps(step.otherwise)
        else:
            yield step


def _paths_through(
    steps: Sequence[Step], name: str
) -> list[tuple[tuple[str, ...], tuple[Step, ...] | None]]:
    """Return all paths through some steps.

    Each path has the conditions for taking it, and its steps. ``None`` instead of the steps means
    that the path aborts.
    """
    ways: list[tuple[tuple[str, ...], tuple[Step, ...] | None]] = [((), ())]
    for step in steps:
        if isinstance(step, AbortStep):
            more: list[tuple[tuple[str, ...], tuple[Step, ...] | None]] = [((), None)]
        elif isinstance(step, If):
            more = [
                ((condition, *way), taken)
                for condition, inner in (
                    (step.text, step.then),
                    (f"not ({step.text})", step.otherwise),
                )
                for way, taken in _paths_through(inner, name)
            ]
        else:
            more = [((), (step,))]
        ways = [
            ((*way, *after), None if taken is None or then is None else (*taken, *then))
            for way, taken in ways
            for after, then in (more if taken is not None else [((), ())])
        ]
        if len(ways) > MOST_BRANCHES:
            raise ProgramError(
                f"{name}: too many branches (got {len(ways)} or more, expected at most "
                f"{MOST_BRANCHES})"
            )
    return ways


def _statements(step: Step, number: int, parameters: Sequence[str]) -> Iterator[TemplateStatement]:
    """Yield the statements for a step of a program.

    SOUND BECAUSE: a statement that writes by a condition first finds rows, and may then wait for
    one of them. At READ COMMITTED, it goes on with the newest version of this row only.

    Args:
        number: the number of the step in its program, from 0.
    """
    statement = _statement(step, number, parameters)
    if statement.writes and not statement.keyed:
        row = statement.text.partition("(")[2]
        yield replace(
            statement,
            kind="read",
            reads=frozenset([ALL_COLUMNS]),
            writes=frozenset(),
            newest=True,
            text=f"r({row}",
        )
    yield statement


def _statement(step: Step, number: int, parameters: Sequence[str]) -> TemplateStatement:
    """Return the statement for a step of a program.

    Args:
        number: the number of the step in its program, from 0.
    """
    assert not isinstance(step, If | AbortStep)
    assert step.row is not None  # the parser of templates sets it
    row, nothing = step.row, frozenset[str]()
    columns = frozenset(row.columns or [ALL_COLUMNS])
    kind: Kind
    match step:
        case ReadStep():
            kind, reads, writes, word = "read", columns, nothing, "r"
        case WriteStep():
            kind, reads, writes, word = "write", nothing, columns, "w"
        case UpdateStep():
            mentioned = frozenset(one for value in step.values for one in _columns(value))
            kind, reads, writes, word = "update", columns | mentioned, columns, "u"
        case InsertStep():
            kind, reads, writes, word = "insert", nothing, frozenset([ALL_COLUMNS]), "insert"
        case DeleteStep():
            kind, reads, writes, word = "delete", nothing, frozenset([ALL_COLUMNS]), "delete"
    return TemplateStatement(
        kind=kind,
        relation=row.relation,
        keys=_keys(row, parameters),
        reads=reads,
        writes=writes,
        step=number,
        text=f"{word}({step.key})",
    )


def _keys(row: RowKey, parameters: Sequence[str]) -> tuple[Key, ...]:
    """Return the components of a row's key, with ``None`` for a value read by the program."""
    found: list[Key] = []
    for one in row.arguments:
        match one:
            case Number():
                found.append(one.value)
            case Variable():
                found.append(one.name if one.name in parameters else None)
            case AnyRow():
                found.append(None)
    return tuple(found)


def _columns(value: Value) -> Iterator[str]:
    match value:
        case Column():
            yield value.name
        case Computed():
            yield from _columns(value.left)
            yield from _columns(value.right)
