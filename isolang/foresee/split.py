"""Runs a split schedule on a simulated database, and certifies the resulting history.

The simulation executes statements as PostgreSQL or InnoDB does at each level. At MVRC, a statement
reads the versions committed before the statement. At SI and SSI, it reads those committed before
the first statement of its transaction; at InnoDB's REPEATABLE READ, a plain read reads those
committed before the first plain read, except for rows that its transaction has written, and other
statements read the newest. A write would wait while another transaction holds the row's lock, so
such a schedule is rejected. At SI, SSI and with InnoDB's snapshot isolation, a row changed since
the snapshot cannot be written.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from isolang.foresee.schedules import (
    KEEPS_LOCKED,
    Instance,
    KeyValue,
    Level,
    Link,
    SplitSchedule,
    first_updater_wins,
    is_innodb,
    opens_snapshot,
    reads_newest,
)
from isolang.foresee.templates import ALL_COLUMNS, Templates, TemplateStatement

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.history.transaction import Op
    from isolang.verdict import Invalid, Valid

Row: TypeAlias = tuple[str, tuple[str, ...]]
"""A relation, and the values that identify a row in it."""

SPECIFICATIONS: Final[Mapping[Level, Sequence[str]]] = {
    "mvrc": ["postgresql-read-committed"],
    "si": ["si"],
    "ssi": ["ser"],
    "innodb-read-committed": ["innodb-read-committed"],
    "innodb-repeatable-read": ["innodb-repeatable-read", "pl-2"],
    "innodb-snapshot": ["si"],
    "innodb-serializable": ["ser"],
}
"""One of these specifications must hold for a counterexample if all programs run at one level.

InnoDB's REPEATABLE READ has a specification of plain reads only. If others matter, the simulation
alone says that they are possible. In a mixture of InnoDB's levels, that of T1 decides, because all
others run alone."""

MIXED: Final = "postgresql-mixed"
"""The specification that a counterexample must satisfy if programs run at different levels."""

_REQUESTED: Final[Mapping[str, str]] = {"mvrc": "pl-2", "si": "si", "ssi": "ser"}
_MOST_CHOICES: Final = 64


class RanStatement(Struct, frozen=True, kw_only=True):
    """A statement executed in a counterexample.

    Attributes:
        transaction: the number of the transaction that executed it, numbered from 1.
    """

    transaction: int
    statement: TemplateStatement
    text: str


class Counterexample(Struct, frozen=True, kw_only=True):
    """A non-serializable execution of templates that is allowed at the level.

    Attributes:
        names: for each transaction, its program with its parameter values.
        sessions: for each transaction, the number of its session, from 1.
        allowed: the verdict that the history satisfies the level.
        accepted: for each of the two verdicts, a sentence naming the checkers that accepted its
            proof.
        candidate: the split schedule that was executed.
        refused_by_rows: whether two concurrent transactions write different columns of the same
            row. Databases with row locks do not allow this.
        refused_by_gaps: whether T1 has locked gaps between rows, and another transaction writes to
            the same table meanwhile. InnoDB may not allow this.
    """

    names: tuple[str, ...]
    programs: tuple[str, ...]
    sessions: tuple[int, ...]
    ran: tuple[RanStatement, ...]
    history: History
    edn: bytes
    allowed: Valid
    forbidden: Invalid
    accepted: tuple[str, str]
    candidate: SplitSchedule
    refused_by_rows: bool
    refused_by_gaps: bool = False


def counterexample(
    templates: Templates, levels: Mapping[str, Level], candidate: SplitSchedule, *, against: str
) -> Counterexample | None:
    """Run a candidate, and check that its history satisfies the level and is not serializable."""
    empty = _SimulatedDatabase(templates, levels, candidate, [])
    at = [MIXED] if empty.mixed else SPECIFICATIONS[levels[empty.programs[0]]]
    choices = empty.choices()
    for picked in itertools.islice(itertools.product(*choices), _MOST_CHOICES):
        machine = _SimulatedDatabase(templates, levels, candidate, list(picked))
        if machine.run() and (found := _certified(machine, at, against)) is not None:
            return replace(found, refused_by_gaps=_meets_gaps(candidate, levels))
    return None


def _certified(
    machine: _SimulatedDatabase, at: Sequence[str], against: str
) -> Counterexample | None:
    from isolang.api import check, load_history
    from isolang.history.writers import write_history
    from isolang.verdict import Invalid, Valid

    for versions in (False, True):  # versions are stated only if the order of blind writes matters
        stream = io.BytesIO()
        write_history(machine.history(versions=versions), stream, format="edn")
        edn = stream.getvalue()
        stream = io.BytesIO(edn)
        stream.name = "counterexample.edn"
        history = load_history(stream, "edn")
        forbidden = check(history, against)
        if not isinstance(forbidden, Invalid):
            continue
        allowed = next(
            (verdict for level in at if isinstance(verdict := check(history, level), Valid)), None
        )
        if allowed is None:
            return None
        accepted = _acceptance_sentence(allowed), _acceptance_sentence(forbidden)
        if not all(accepted):
            return None
        return Counterexample(
            names=machine.names,
            programs=machine.programs,
            sessions=machine.sessions,
            ran=tuple(machine.ran),
            history=history,
            edn=edn,
            allowed=allowed,
            forbidden=forbidden,
            accepted=accepted,
            candidate=machine.candidate,
            refused_by_rows=machine.shares_rows,
        )
    return None


def _acceptance_sentence(verdict: Valid | Invalid) -> str:
    """Return a sentence naming the checkers that accept the proof of a verdict.

    Return an empty string if a checker rejects the proof or cannot decide it.
    """
    from isolang.certify.errors import CertificateRejected, NotCertifiedError
    from isolang.certify.verification import accept

    proof = verdict.witness if verdict.outcome == "valid" else verdict.refutation
    try:
        return str(accept(verdict.history, verdict.spec, proof))
    except (CertificateRejected, NotCertifiedError):
        return ""


class _RowLocks:
    """The locks of rows, as far as reads take or await them.

    Transactions other than T1 run alone, so only T1 waits for a transaction, or makes it wait. At
    SI and SSI, a lock without a write prevents only writes, as :mod:`isolang.foresee.within` says.
    """

    def __init__(self, level: Level) -> None:
        self._level = level
        self._of_split: list[tuple[Row, TemplateStatement]] = []
        self._written: list[tuple[Row, TemplateStatement]] = []  # by the other transactions

    def take(self, number: int, row: Row, own: TemplateStatement) -> bool:
        """Lock a row for a transaction, and return whether no lock without a write prevents it."""
        keeps_locked = self._level in KEEPS_LOCKED
        if number == 0:
            self._of_split.append((row, own))
            meets_writes = first_updater_wins(self._level) or (keeps_locked and own.is_plain)
            others = self._written if meets_writes else []
        else:
            if own.writes:
                self._written.append((row, own))
            holds = keeps_locked or reads_newest(self._level)
            others = self._of_split if holds or own.writes else []
        return not any(
            row == other_row and own.waits_for_lock_of(other) for other_row, other in others
        )


class _SimulatedDatabase:
    """A simulated database that executes the statements of a split schedule in order."""

    def __init__(
        self,
        templates: Templates,
        levels: Mapping[str, Level],
        candidate: SplitSchedule,
        found: list[tuple[Row, ...]],
    ) -> None:
        self._templates, self._levels, self.candidate = templates, levels, candidate
        self._found = found  # the rows selected by the conditions of writing statements, in order
        self._instances = [candidate.split, *candidate.chain]
        self._values = readable_values(templates, candidate)
        self._columns = _columns_of(templates)
        self._all_rows = self._named_rows()
        self.programs = tuple(one.branch.program for one in self._instances)
        self.names = tuple(
            f"{one.branch.program}({', '.join(values[p] for p in one.branch.parameters)})"
            for one, values in zip(self._instances, self._values, strict=True)
        )
        self.sessions = _numbered_sessions(candidate)
        used = {levels[program] for program in self.programs}
        self.mixed = len(used) > 1 and not any(map(is_innodb, used))
        self.ran: list[RanStatement] = []
        self.shares_rows = False
        # For each transaction: its operations, and the version and times of each operation.
        count = len(self._instances)
        self._ops: list[list[Op]] = [[] for _ in range(count)]
        # ``None`` instead of a version means that the version is the transaction's own.
        self._versions: list[list[int | None]] = [[] for _ in range(count)]
        self._times: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        self._own: list[dict[tuple[Row, str], int]] = [{} for _ in range(count)]
        self._exists: list[dict[Row, bool]] = [{} for _ in range(count)]
        self._locks = _RowLocks(self._level(0))
        self._begun: list[int | None] = [None] * count
        self._snapshot: list[int] = [0] * count
        self._has_snapshot = [False] * count
        self._found_when_written: list[dict[Row, int]] = [{} for _ in range(count)]
        self._committed: list[int] = [0] * count
        self._ends: list[int] = [0] * count
        self._commits = 0
        self._clock = 0
        self._value = 0
        # The committed versions of each item, oldest first. The initial version has commit 0.
        self._states: dict[tuple[Row, str], list[tuple[int, int]]] = {}
        self._presence: dict[Row, list[tuple[int, bool]]] = {}
        self._before: dict[Row, bool] = {}
        self._read_from: list[set[tuple[tuple[Row, str], int]]] = [set() for _ in range(count)]

    # --- the transactions ---

    def _named_rows(self) -> dict[str, list[Row]]:
        """Return the rows of each relation: those named in statements, and a few more.

        Each statement with a condition gets at least one matching row. If the statement writes, it
        gets two, so that two transactions can write different rows.
        """
        found: dict[str, list[Row]] = {}
        every = [
            (number, own)
            for number, instance in enumerate(self._instances)
            for own in instance.branch.statements
        ]
        for number, own in sorted(every, key=lambda one: not one[1].keyed):
            rows, keys = found.setdefault(own.relation, []), self._keys(number, own)
            matching = sum(_matches(row, keys) for row in rows)
            for other in range(matching, 2 if own.writes and not own.keyed else 1):
                rows.append((own.relation, tuple(key or f"other{other + 1}" for key in keys)))
        return found

    def _keys(self, number: int, own: TemplateStatement) -> tuple[str | None, ...]:
        values = self._values[number]
        return tuple(
            values[key] if isinstance(key, str) else None if key is None else str(key)
            for key in own.keys
        )

    def choices(self) -> list[list[tuple[Row, ...]]]:
        """Return the sets of rows that each writing statement with a condition may select."""
        found = []
        for order in self._order():
            number, own = order
            if own.writes and not own.keyed:
                keys = self._keys(number, own)
                rows = [row for row in self._all_rows[own.relation] if _matches(row, keys)]
                several = [tuple(rows)] if len(rows) > 1 else []
                found.append([*((row,) for row in rows), *several, ()])
        return found

    def _order(self) -> list[tuple[int, TemplateStatement]]:
        """Return the statements in schedule order, each with its transaction's index."""
        first, split = self._instances[0].branch.statements, self.candidate.after + 1
        return [
            *((0, own) for own in first[:split]),
            *(
                (number, own)
                for number, instance in enumerate(self._instances[1:], 1)
                for own in instance.branch.statements
            ),
            *((0, own) for own in first[split:]),
        ]

    # --- the run ---

    def run(self) -> bool:
        """Execute the schedule, and return whether all statements and commits were possible."""
        pending = [len(one.branch.statements) for one in self._instances]
        for number, own in self._order():
            if not self._execute(number, own):
                return False
            pending[number] -= 1
            if number and not pending[number]:
                self._commit(number)
        self._commit(0)
        return not self._aborted_by_ssi()

    def _level(self, number: int) -> Level:
        return self._levels[self.programs[number]]

    def _execute(self, number: int, own: TemplateStatement) -> bool:
        if self._begun[number] is None:
            self._begun[number] = self._clock
        if not self._has_snapshot[number]:
            self._snapshot[number] = self._commits
            self._has_snapshot[number] = opens_snapshot(self._level(number), own)
        sees = self._snapshot[number]
        if self._level(number) in KEEPS_LOCKED and not own.is_plain:
            sees = self._commits
        start, keys = self._clock + 1, self._keys(number, own)
        self._clock += 2
        arguments = f"[{', '.join(key or '*' for key in keys)}]" if keys else ""
        columns = _columns_text(own.writes or own.reads)
        word = {"read": "r", "write": "w", "update": "u"}.get(own.kind, own.kind)
        text = f"{word}({own.relation}{arguments}{columns})"
        self.ran.append(RanStatement(transaction=number + 1, statement=own, text=text))
        rows = [row for row in self._all_rows[own.relation] if _matches(row, keys)]
        if own.keyed:
            if own.kind == "insert":
                if not self._set_presence(number, rows[0], False, self._commits):
                    return False
            elif (own.writes or own.lock) and not self._set_presence(number, rows[0], True, sees):
                return False
            if own.lock and not own.writes and not self._locks.take(number, rows[0], own):
                return False
        locks_all = bool(number) and _locks_all(self._level(number), own)
        if locks_all and not self._found_when_written[0].keys().isdisjoint(rows):
            return False  # T1 has written one of them
        for row in rows:
            self._read(number, row, own, sees)
        if not own.writes:
            self._time_operations(number, start)
            return True
        if not own.keyed:
            rows = list(self._found.pop(0))
            if not all(self._set_presence(number, row, True, sees) for row in rows):
                return False
        done = all(self._write(number, row, own) for row in rows)
        self._time_operations(number, start)
        return done

    def _time_operations(self, number: int, start: int) -> None:
        missing = len(self._ops[number]) - len(self._times[number])
        self._times[number] += [(start, start + 1)] * missing

    def _set_presence(self, number: int, row: Row, expected: bool, sees: int) -> bool:
        """Return whether the existence of a row is as expected by a statement.

        If it is still open whether the row existed at the beginning, the expectation decides that.
        """
        if row in self._exists[number]:
            return self._exists[number][row] == expected
        changes = [there for commit, there in self._presence.get(row, ()) if commit <= sees]
        if changes:
            return changes[-1] == expected
        return self._before.setdefault(row, expected) == expected

    def _read(self, number: int, row: Row, own: TemplateStatement, sees: int) -> None:
        if self._level(number) in KEEPS_LOCKED:
            sees = max(sees, self._found_when_written[number].get(row, 0))
        for column in self._columns_accessed(own.relation, own.reads):
            item = (row, column)
            value: int | None
            if item in self._own[number]:
                value, version = self._own[number][item], None
            else:
                states = [one for one in self._states.get(item, ()) if one[0] <= sees]
                version, value = states[-1] if states else (0, None)
                self._read_from[number].add((item, version))
            self._ops[number].append(("r", _item_text(item), value))
            self._versions[number].append(version)

    def _write(self, number: int, row: Row, own: TemplateStatement) -> bool:
        if not self._locks.take(number, row, own):
            return False
        columns = self._columns_accessed(own.relation, own.writes)
        for other in range(len(self._instances)):
            if other == number:
                continue
            active = self._begun[other] is not None and not self._committed[other]
            since = self._committed[other] > self._snapshot[number]
            refused = active or (since and first_updater_wins(self._level(number)))
            if not refused or not any(one == row for one, _ in self._own[other]):
                continue
            self.shares_rows = True
            if any((row, column) in self._own[other] for column in columns):
                # Another transaction wrote this row. This is allowed only if the row was deleted
                # and is now inserted again.
                gone = own.kind == "insert" and not active and row[0] in self._templates.deleted
                if not gone:
                    return False
        self._found_when_written[number][row] = self._commits
        for column in columns:
            self._value += 1
            self._own[number][row, column] = self._value
            self._ops[number].append(("w", _item_text((row, column)), self._value))
            self._versions[number].append(None)
        if own.kind in ("insert", "delete"):
            self._exists[number][row] = own.kind == "insert"
        return True

    def _columns_accessed(self, relation: str, columns: frozenset[str]) -> list[str]:
        if ALL_COLUMNS in columns:
            return self._columns[relation]
        return sorted(columns)

    def _commit(self, number: int) -> None:
        self._clock += 4
        self._commits += 1
        self._committed[number] = self._commits
        for item, value in self._own[number].items():
            self._states.setdefault(item, []).append((self._commits, value))
        for row, there in self._exists[number].items():
            self._presence.setdefault(row, []).append((self._commits, there))
        self._ends[number] = self._clock - 1

    def _aborted_by_ssi(self) -> bool:
        """Return whether SSI aborts T1, given the transactions' actual reads and writes."""
        if self._level(0) != "ssi":
            return False
        missed = False
        for number in range(1, len(self._instances)):
            if self._level(number) != "ssi":
                continue
            missed = missed or self._overlooked(0, number)
            if missed and self._overlooked(number, 0):
                return True
        return False

    def _overlooked(self, reader: int, writer: int) -> bool:
        """Return whether ``reader`` read an older version of an item written by ``writer``."""
        return any(
            item in self._own[writer] and version < self._committed[writer]
            for item, version in self._read_from[reader]
        )

    # --- the history ---

    def history(self, *, versions: bool) -> History:
        """Return the history, with times, and with stated versions if ``versions`` is true."""
        from isolang.history.history import History
        from isolang.history.transaction import Transaction

        order = range(len(self._instances))  # T1 begins first
        return History.from_transactions(
            [
                Transaction(
                    self._ops[one],
                    session=self.sessions[one],
                    begin=self._begun[one],
                    commit=self._ends[one] - 1,
                    end=self._ends[one],
                    times=self._times[one],
                    label=self.programs[one],
                    level=_REQUESTED[self._level(one)] if self.mixed else None,
                    versions=self._stated_versions(one) if versions else None,
                )
                for one in order
            ],
            versions="ordered" if versions else None,
        )

    def _stated_versions(self, one: int) -> list[int | None]:
        """Return each operation's stated version: the number of the commit that created it.

        A version overwritten by its own transaction has no number.
        """
        last = {op[1]: op[2] for op in self._ops[one] if op[0] == "w"}
        return [
            version
            if version is not None
            else self._committed[one]
            if op[2] == last[op[1]]
            else None
            for op, version in zip(self._ops[one], self._versions[one], strict=True)
        ]


def _numbered_sessions(candidate: SplitSchedule) -> tuple[int, ...]:
    numbers = [1, 2]
    for link in candidate.links:
        numbers.append(numbers[-1] if link.kind == "session" else max(numbers) + 1)
    return tuple(numbers)


def _locks_all(level: Level, own: TemplateStatement) -> bool:
    """Return whether a statement locks all rows that it reads."""
    locks = level == "innodb-serializable" or (level in KEEPS_LOCKED and not own.is_plain)
    return locks and bool(own.reads)


def _meets_gaps(candidate: SplitSchedule, levels: Mapping[str, Level]) -> bool:
    """Return whether T1 has locked gaps in a table before another transaction writes to it."""
    branch = candidate.split.branch
    written = {
        own.relation for instance in candidate.chain for own in instance.branch.statements
        if own.writes
    }  # fmt: skip
    return levels[branch.program] in KEEPS_LOCKED and any(
        not (own.is_plain or own.keyed) and own.relation in written
        for own in branch.statements[: candidate.after + 1]
    )


def _matches(row: Row, keys: tuple[str | None, ...]) -> bool:
    return all(key is None or key == value for key, value in zip(keys, row[1], strict=True))


def _columns_of(templates: Templates) -> dict[str, list[str]]:
    """Return the columns of each relation that are named in statements.

    If no statement names any of a relation's columns, the relation gets one column with an empty
    name.
    """
    found: dict[str, set[str]] = {}
    for branch in templates.branches:
        for own in branch.statements:
            found.setdefault(own.relation, set()).update(own.reads | own.writes)
    return {
        relation: sorted(columns - {ALL_COLUMNS}) or [""] for relation, columns in found.items()
    }


def _columns_text(columns: frozenset[str]) -> str:
    if ALL_COLUMNS in columns:
        return ""
    return f".{next(iter(columns))}" if len(columns) == 1 else f".({', '.join(sorted(columns))})"


def _item_text(item: tuple[Row, str]) -> str:
    (relation, keys), column = item
    arguments = f"[{','.join(keys)}]" if keys else ""
    return f"{relation}{arguments}{f'.{column}' if column else ''}"


def readable_values(templates: Templates, candidate: SplitSchedule) -> list[dict[str, str]]:
    """Return the parameter values of each transaction in a candidate as readable texts.

    Values that may be different get different texts.
    """
    names: dict[int, str] = {}
    for (_, parameter), kind in templates.types.items():
        names.setdefault(kind, parameter.rstrip("0123456789") or parameter)
    counts: dict[int, Iterator[int]] = {}
    of_split: dict[KeyValue, str] = {}
    found: list[dict[str, str]] = []
    for place, instance in enumerate((candidate.split, *candidate.chain)):
        own: dict[KeyValue, str] = {}
        values = (
            _values_taken_over(instance, candidate.links[place - 2], found[-1]) if place > 1 else {}
        )
        for parameter, value in instance.values.items():
            if parameter in values and _is_own(value):
                own[value] = values[parameter]
        for parameter in instance.branch.parameters:
            kind = templates.types[instance.branch.program, parameter]
            picked = instance.values.get(parameter)
            known = own if picked is None or _is_own(picked) else of_split
            if isinstance(picked, tuple):
                values[parameter] = str(picked[0])
            elif picked is not None and picked in known:
                values[parameter] = known[picked]
            else:
                number = next(counts.setdefault(kind, itertools.count(1)))
                values[parameter] = f"{names[kind]}{number}"
                if picked is not None:
                    known[picked] = values[parameter]
        found.append(values)
    return found


def _is_own(value: KeyValue) -> bool:
    """Return whether a value belongs to a single transaction other than T1."""
    return isinstance(value, int) and value < 0


def _values_taken_over(instance: Instance, link: Link, previous: dict[str, str]) -> dict[str, str]:
    """Return the values that a transaction takes from the previous transaction in the chain."""
    if link.earlier is None or link.later is None:
        return {}
    return {
        own: previous[theirs] if isinstance(theirs, str) else str(theirs)
        for own, theirs in zip(link.later.keys, link.earlier.keys, strict=True)
        if isinstance(own, str) and theirs is not None and own in instance.values
    }
