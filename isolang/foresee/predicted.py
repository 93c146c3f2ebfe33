"""Represents predictions, and turns candidates into checkable histories."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from itertools import count
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from isolang.foresee.row_facts import PRESENT
from isolang.foresee.run import (
    INITIAL,
    UPDATES,
    Access,
    ExecutedProgram,
    PassedRun,
    ProgramScan,
    bits,
    table_and_row,
)
from isolang.foresee.stranger import Candidate, steps_before_overlooked
from isolang.history import History, Transaction
from isolang.history import columns as c
from isolang.history.predicate_words import condition_in_words
from isolang.history.values import UNKNOWN, value_text
from isolang.history.values import Literal as LiteralValue
from isolang.verdict import Invalid, Valid

Rule: TypeAlias = Literal["one stranger", "same statements"]
"""The rule that derives a prediction from a run: B1 or B2 in docs/foresee.md."""

ASSUMED: Final[dict[Rule, str]] = {
    "one stranger": "{} executes the same statements after its first changed read",
    "same statements": "all transactions execute the same statements, whatever they read",
}


class ChangedRead(Struct, frozen=True, kw_only=True):
    """A read that returns a different version in the predicted history than in the recorded run.

    Attributes:
        transaction: the name of the reading transaction.
        operation: the read as recorded, such as ``r(account/1, 100)``.
        caller: the ``file:line`` in the application that executed the read; empty if unknown.
        recorded: the name of the transaction whose version the read returned in the run; ``T0`` for
            the initial version; empty if the read did not find the row.
        predicted: the same in the predicted history.
        condition: for a predicate read, the table and the condition in words, such as ``booking
            where room = 7``; empty if the read names its row.
        row: the row, such as ``booking/1``.
    """

    transaction: str
    operation: str
    caller: str
    recorded: str
    predicted: str
    condition: str = ""
    row: str = ""


class Prediction(Struct, frozen=True, kw_only=True, eq=False):
    """A history of a run's transactions that the weaker level allows and the stronger forbids.

    Attributes:
        rule: the rule that derived the history from the run.
        history: the predicted history, in which versions are named after the run's transactions.
        edn: the history as file content; the certificates refer to this file.
        valid: the certified verdict that the history satisfies the weaker level.
        invalid: the certified verdict that the history violates the stronger level.
        stranger: the name of the transaction that reads versions other than in the run.
        overlooked: the name of a transaction whose version the stranger does not see.
        path: the names of the transactions on the cycle, starting with the overlooked transaction
            and without the stranger.
        programs: the programs of the stranger, the overlooked transaction, and the last transaction
            on the path, each as labels, a ``file:line`` or operations.
        changed: the reads that return versions other than in the run; the stranger's reads come
            first.
        count: the number of predictions of this kind in the run.
        candidate: the candidate that the history was made from.
        who: for each transaction of the candidate's arrangement, its number in the run.
    """

    rule: Rule
    history: History
    edn: bytes
    valid: Valid
    invalid: Invalid
    stranger: str
    overlooked: str
    path: tuple[str, ...]
    programs: tuple[str, str, str]
    changed: tuple[ChangedRead, ...]
    count: int
    candidate: Candidate
    who: tuple[int, ...]

    @property
    def assumption(self) -> str:
        """A sentence stating when the application can execute the predicted history."""
        assumed = ASSUMED[self.rule].format(self.stranger)
        if any(read.condition for read in self.changed):
            assumed += ", although a condition finds other rows"
        return assumed


class Predictions(Struct, frozen=True, kw_only=True, eq=False):
    """The predictions from a run, one of each kind.

    Predictions with one stranger come first; after that, those with shorter cycles and fewer
    changed reads. "Nothing found" never means "safe"; see docs/foresee.md.

    Attributes:
        run: the run.
        at: the name of the weaker level.
        against: the name of the stronger level.
        found: one prediction of each kind, with certified verdicts at both levels.
        more: the number of further kinds that were found but not certified, because the caller
            limits the number of predictions.
        bound: a phrase describing the search's restriction; empty if the levels need none.
        gave_up: a phrase for each point where the search gave up; empty if it was complete.
    """

    run: PassedRun
    at: str
    against: str
    found: tuple[Prediction, ...]
    more: int
    bound: str
    gave_up: tuple[str, ...]

    @property
    def outcome(self) -> Literal["found", "nothing found", "gave up"]:
        """The result. ``gave up`` means that an incomplete search found nothing."""
        if self.found:
            return "found"
        return "gave up" if self.gave_up else "nothing found"


ScheduledRule: TypeAlias = Literal["snapshots", "statements"]
"""The rules whose predicted histories have times, because they follow a schedule."""


def history_of(
    run: PassedRun,
    candidate: Candidate,
    who: Sequence[int],
    *,
    least: int = 0,
    timed: ScheduledRule | None = None,
) -> History:
    """Return the history of a candidate, with different values for all versions.

    Args:
        run: the run that the candidate was made from.
        candidate: the candidate.
        who: for each transaction of the candidate's arrangement, its number in the run.
        least: the number of the first transaction to include; the versions of earlier transactions
            become the initial state.
        timed: the level's rule if the history gets the times of a schedule; otherwise ``None``.
    """
    inside = candidate.members & -(1 << least) | 1 << candidate.stranger
    writer = _TransactionWriter(run, candidate, who, least)
    out = {}
    for i in bits(inside):
        program = candidate.order.programs[i]
        sources: Sequence[int | None] = [program.steps[at].source for at in program.reads]
        if i == candidate.stranger:
            sources = candidate.sources
        out[i] = writer.transaction(i, dict(zip(program.reads, sources, strict=True)))
    if timed is not None:
        out = _scheduled(candidate, out, timed)
    rows = writer.initial_rows()
    return History.from_transactions([*rows, *out.values()], name=f"{run.history.name} (predicted)")


def schedule(candidate: Candidate, timed: ScheduledRule) -> tuple[list[int], int, list[int]]:
    """Return the schedule that a database can use to execute a candidate.

    All transactions except the stranger run one after another, without overlapping.

    Returns:
        The transactions that run before the stranger begins; the number of steps the stranger then
        executes; and the transactions that run before its remaining steps.
    """
    program = candidate.order.programs[candidate.stranger]
    steps = steps_before_overlooked(program, candidate.at, timed)
    before = list(bits(candidate.members & ~candidate.missed))
    return before, steps, list(bits(candidate.members & candidate.missed))


def _scheduled(
    candidate: Candidate, transactions: dict[int, Transaction], timed: ScheduledRule
) -> dict[int, Transaction]:
    """Return the transactions with the times at which :func:`schedule` runs them."""
    before, steps, between = schedule(candidate, timed)
    clock = count(1)
    found = {
        i: _with_times(
            transactions[i], [next(clock) for _ in range(2 * len(transactions[i].ops) + 3)]
        )
        for i in before
        if i in transactions
    }
    t = candidate.stranger
    ops = len(transactions[t].ops)
    steps = candidate.order.programs[t].operations_before(steps)
    moments = [next(clock) for _ in range(2 * steps + 1)]
    for i in between:
        if i in transactions:
            many = 2 * len(transactions[i].ops) + 3
            found[i] = _with_times(transactions[i], [next(clock) for _ in range(many)])
    moments += [next(clock) for _ in range(2 * (ops - steps) + 2)]
    found[t] = _with_times(transactions[t], moments)
    return {i: found[i] for i in sorted(found)}


def _with_times(transaction: Transaction, moments: list[int]) -> Transaction:
    begin, *operations, commit, end = moments
    return replace(
        transaction,
        begin=begin,
        times=list(zip(operations[::2], operations[1::2], strict=True)),
        commit=commit,
        end=end,
    )


class _TransactionWriter:
    """Creates the transactions of a predicted history, and names the versions they write.

    In a run with predicate reads, versions are rows, because predicates are about their columns.
    """

    def __init__(
        self, run: PassedRun, candidate: Candidate, who: Sequence[int], least: int
    ) -> None:
        order = candidate.order
        self.run, self.order, self.who = run, order, who
        self.inside = candidate.members & -(1 << least) | 1 << candidate.stranger
        self._outside = candidate.members & ~self.inside
        self._rows = order.has_scans
        self._versions: dict[tuple[int, int], list[Any]] = {}
        self._initial: dict[int, Any] = {}

    # --- versions ---

    def versions(self, txn: int, key: int) -> list[Any]:
        """Return the names of a transaction's versions of a key, in program order.

        A deleted row is ``None``.
        """
        found = self._versions.get((txn, key))
        if found is None:
            steps = self.order.programs[txn].steps
            ops = [s.op for s in steps if s.key == key and s.kind in UPDATES]
            name = self.run.name(self.who[txn])
            found = self._versions[txn, key] = [
                self._version(op, name + (f".{n}" if n < len(ops) else ""))
                for n, op in enumerate(ops, 1)
            ]
        return found

    def _version(self, op: int, name: str) -> Any:
        history = self.run.history
        if history.is_delete(op) and self.order.facts is not None:
            return None
        atom = int(history.columns.op_value[op])
        if self._rows and history.columns.op_kind[op] == c.WRITE:
            return self._row(atom, name)
        return f"{'deleted' if history.is_delete(op) else history.value(atom)} of {name}"

    def _row(self, atom: int, name: str) -> Any:
        """Return a version as a row that differs from all others of its key."""
        row = self.run.history.value_object(atom)
        if isinstance(row, LiteralValue) and row.text.startswith("{"):
            if '"xmin" ' in row.text:  # the column by which recorders tell versions apart
                return row
            return _with_column(row.text, name)
        columns = row if isinstance(row, dict) else {"value": row}
        return columns if "xmin" in columns else {**columns, _free_column(columns): name}

    def _before(self, key: int) -> Any:
        """Return the version of a key that is there when the predicted history begins."""
        facts = self.order.facts
        if facts is None or not (self._rows or (PRESENT, key) in facts.shown):
            return None
        if key not in self._initial:
            writers = self.order.writers.get(key, 0) & self._outside
            version = None
            if writers:
                version = self.versions(writers.bit_length() - 1, key)[-1]
            elif key in facts.initial:
                atom = facts.initial[key]
                text = f"{self.run.history.value(atom)} of T0"
                version = self._row(atom, "T0") if self._rows else text
            self._initial[key] = version
        return self._initial[key]

    def initial_rows(self) -> Iterator[Transaction]:
        """Yield the transaction that writes the rows that are there at the beginning, if any."""
        for program in (self.order.programs[i] for i in bits(self.inside)):
            for key in program.writes:
                self._before(key)
        key_object = self.run.history.key_object
        ops = [("w", key_object(k), row) for k, row in self._initial.items() if row is not None]
        if ops:
            yield Transaction(ops, session="T0", status="initial")

    # --- transactions ---

    def transaction(self, i: int, sources: dict[int, int | None]) -> Transaction:
        history, number = self.run.history, self.run.numbers[self.who[i]]
        program = self.order.programs[i]
        ops: list[tuple[Any, ...]] = []
        written: dict[int, list[Any]] = {}
        at, end = 0, len(program.steps)
        for scan in (*program.scans, ProgramScan(-1, end, end)):
            ops += (
                self._operation(i, n, sources, written)
                for n in range(at, scan.begin)
                if not program.steps[n].possible
            )
            if scan.number >= 0 and not scan.possible:
                ops.append(self._scan(program, scan, sources, written))
            at = scan.end
        columns = history.columns
        return Transaction(
            ops,
            session=history.session_name(int(columns.txn_session[number])),
            number=int(columns.txn_number[number]),
            group=history.group_of(number) or None,
            level=history.level_of(number) or None,
            label=history.labels_of(number) or None,
        )

    def _operation(
        self, i: int, at: int, sources: dict[int, int | None], written: dict[int, list[Any]]
    ) -> tuple[Any, ...]:
        step = self.order.programs[i].steps[at]
        key = self.run.history.key_object(step.key)
        own = written.setdefault(step.key, [])
        if step.kind in UPDATES:
            own.append(self.versions(i, step.key)[len(own)])
            if own[-1] is None:
                return ("delete", key)
            return ("w" if step.kind == c.WRITE else "append", key, own[-1])
        if at in sources:
            source = sources[at]
            assert source is not None
            return ("r", key, self._read(step.kind, step.key, source, i, own))
        return ("r", key, own[-1] if own else UNKNOWN)

    def _read(self, kind: int, key: int, source: int, reader: int, own: list[Any]) -> Any:
        if kind != c.READ_LIST:
            known = source != INITIAL and self.inside >> source & 1
            return self.versions(source, key)[-1] if known else self._before(key)
        before = self.order.writers.get(key, 0) & self.inside & ~(1 << reader)
        writers = bits(before & (2 << source) - 1 if source >= 0 else 0)
        return [version for w in writers for version in self.versions(w, key)] + own

    def _scan(
        self,
        program: ExecutedProgram,
        scan: ProgramScan,
        sources: dict[int, int | None],
        written: dict[int, list[Any]],
    ) -> tuple[Any, ...]:
        """Return a predicate read with the rows that it returns in the predicted history."""
        history, columns = self.run.history, self.run.history.columns
        at = {program.steps[n].key: n for n in range(scan.begin, scan.end)}
        begin, end = (int(c[scan.number]) for c in (columns.statement_start, columns.statement_end))
        rows = {}
        for op in range(begin, end):
            key = int(columns.op_key[op])
            if key in at:
                step, source = program.steps[at[key]], sources[at[key]]
                assert source is not None
                shown = self.order.shows(step, source)
                row = self._read(c.READ, key, source, -1, []) if shown else None
            else:  # only the transaction itself writes this row
                shown = int(columns.op_kind[op]) != c.READ_NONE_OF
                row = None
                if shown:
                    row = own[-1] if (own := written.get(key)) else self._before(key)
            if row is not None:
                rows[history.key_object(key)] = row
            else:
                self._before(key)
        predicate = columns.predicates[int(columns.statement_predicate[scan.number])]
        return ("scan", predicate, rows)


def _free_column(columns: Container[str]) -> str:
    column = "of"
    while column in columns:
        column += "_"
    return column


def _with_column(text: str, name: str) -> LiteralValue:
    """Return the text of a row, in canonical form, with one more column for the version's name."""
    from isolang import _native

    column = "of"
    while f'"{column}" ' in text:
        column += "_"
    row = f'{text[:-1]} "{column}" {value_text(name, "")}}}'
    line = f"{{:index 0, :type :ok, :process 0, :f :txn, :value [[:w 0 {row}]]}}\n"
    columns, _ = _native.read_edn(line.encode())
    return LiteralValue(columns.value(int(columns.op_value[0]))[1])


def changed_reads(run: PassedRun, candidate: Candidate, who: Sequence[int]) -> list[ChangedRead]:
    """Return the reads with a different version than in the run, the stranger's reads first."""
    found = []
    order, t = candidate.order, candidate.stranger
    for i in (t, *bits(candidate.members & ~(1 << t))):
        recorded = run.order.programs[who[i]]
        if i == t:
            sources: Sequence[int | None] = candidate.sources
        elif order is run.order:
            break  # all other transactions read the recorded versions
        else:
            sources = [order.programs[i].steps[at].source for at in recorded.reads]
        for at, source in zip(recorded.reads, sources, strict=True):
            step = recorded.steps[at]
            if step.possible:
                continue
            assert step.source is not None
            assert source is not None
            now = INITIAL if source == INITIAL else who[source]
            old = _version_name(run, step.source) if step.shown else ""
            new = _version_name(run, now) if run.order.shows(step, now) else ""
            if old != new:
                found.append(
                    ChangedRead(
                        transaction=run.name(who[i]),
                        operation=run.history.describe_op(step.op),
                        caller=run.history.remark(step.op).caller,
                        recorded=old,
                        predicted=new,
                        condition=_condition(run, step),
                        row=run.history.key(step.key),
                    )
                )
    return found


def _condition(run: PassedRun, step: Access) -> str:
    if step.scan < 0:
        return ""
    columns = run.history.columns
    predicate = columns.predicates[int(columns.statement_predicate[step.scan])]
    table = table_and_row(run.history.key(step.key))[0]
    words = condition_in_words(predicate, run.history.row_texts().forms)
    return f"{table} where {words}" if words else f"all rows of {table}"


def _version_name(run: PassedRun, source: int) -> str:
    return "T0" if source == INITIAL else run.name(source)
