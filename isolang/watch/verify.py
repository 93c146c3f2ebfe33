"""Checks the chain of a watch part by part with the independent checkers."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any, Final, Literal, Protocol

from msgspec import Struct

from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.kernel import check_by_kernel, find_kernel
from isolang.certify.native import check_natively
from isolang.certify.proofs import Witness
from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.clock_error import format_duration
from isolang.history.history import History
from isolang.history.not_seen import LACKS_FACTS, NOT_ENDED
from isolang.history.values import decode
from isolang.language.classify.event_graph import Plan
from isolang.language.load import load_texts
from isolang.language.meaning.core import Spec
from isolang.watch.chain import (
    NAME,
    Head,
    InitialValue,
    LiveChain,
    Part,
    PartColumns,
    part_at,
    read_chain,
    read_live_chain,
    unpack_columns,
)
from isolang.watch.initial_state import InitialState, as_last_values
from isolang.watch.judging import columns_after_parts, history_of, initial_writes_of
from isolang.watch.levels import watchable_plan, why_no_predicates
from isolang.watch.state import Values
from isolang.watch.stream import Batch, Rows, Stream
from isolang.watch.stream.rows import rows_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns
    from isolang.watch.by_definition import ByDefinition
    from isolang.watch.stream import Log

_AHEAD: Final = 32  # the largest number of parts that the executor checks at a time

#: The session name that the reader gives to a transaction without a :process.
_LONE_SESSION: Final = re.compile(r"(.*/)?@\d+:\d+", re.DOTALL)


class PendingCheck(Protocol):
    """The future result of checking a part."""

    def result(self) -> tuple[str, str]:
        """Wait for the result, and return it."""


class CheckExecutor(Protocol):
    """The executor method that runs the checks of parts."""

    def submit(self, work: Callable[..., Any], /, *args: Any) -> PendingCheck:
        """Begin a check, and return its future result."""


class ChainRejected(CertificateRejected):
    """Raised when a chain does not prove that the log satisfies the level."""


class CheckedChain(Struct, frozen=True, kw_only=True):
    """The result proved by an accepted chain.

    Attributes:
        by_kernel: a sentence about the parts accepted by the kernel; empty if the kernel did not
            run.
    """

    spec: Spec
    transactions: int
    read_as: tuple[tuple[str, str], ...]
    by_kernel: str = ""


def verify_chain(
    folder: Path,
    stream: Stream,
    *,
    by_definition: bool = False,
    executor: Executor | None = None,
    memory: int = 256 << 20,
) -> int:
    """Check a chain with :func:`check_chain`, and return its number of transactions."""
    return check_chain(
        folder, stream, by_definition=by_definition, executor=executor, memory=memory
    ).transactions


def check_chain(
    folder: Path,
    stream: Stream,
    *,
    by_definition: bool = False,
    by_kernel: Literal["no", "tries", "insists"] = "no",
    executor: Executor | CheckExecutor | None = None,
    memory: int = 256 << 20,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> CheckedChain:
    """Check that a stream satisfies a level, using the chain of a watch that ended as valid.

    SOUND BECAUSE each part satisfies the level if it begins with the values left by the earlier
    parts; no edge of ``so`` or ``rt`` leads from a part back to an earlier part; and each committed
    transaction of the log is in exactly one part.

    Args:
        by_definition: whether the checker by definition must also accept each part and the values
            that the part leaves. This checker accepts only parts of up to 2,000 transactions, and
            is much slower.
        by_kernel: ``"tries"`` if the kernel checks each part that it covers, provided that its
            program is installed; ``"insists"`` if the kernel must accept every part; ``"no"`` if it
            does not run.
        executor: an executor of :mod:`concurrent.futures`, or an object with its interface, which
            checks several parts at a time; ``None`` to check one part after another in this thread.
        memory: the memory limit for the last values of keys, in bytes; if they take more, they are
            moved to disk.

    Raises:
        ChainRejected: the chain does not prove that the log satisfies the level.
        NotCertifiedError: the kernel must accept every part, but it cannot decide some part; or the
            transactions in the log are not all that happened.
        HistoryError: the chain or the log cannot be read.
    """
    path = folder / NAME
    if not path.is_file():
        raise HistoryError(
            f"{folder}: the folder contains no chain of a watch (expected {NAME}, which "
            "isocheck watch --state writes); a certificate is a file"
        )
    head = next(read_chain(path), None)
    if not isinstance(head, Head):
        raise ChainRejected("the chain is empty")
    spec = load_texts(head.spec_texts)
    if head.spec_name != spec.name:
        raise HistoryError(
            f"{path}:1: spec_name differs from the level's name in spec_texts (got "
            f"{head.spec_name!r:.60}, expected {spec.name!r:.60})"
        )
    plan = watchable_plan(spec)
    live = read_live_chain(path)
    if live.end is None or live.end.outcome != "valid":
        raise ChainRejected("the chain does not end with a valid verdict")
    initial = InitialState.from_options(head.reading)
    if live.initial and not initial.unwritten:
        raise ChainRejected("the chain has initial values that its head does not allow")
    initial.add(live.initial)
    with TemporaryDirectory(prefix="isolang-verify-") as name:
        values = Values(Path(name), memory=memory)
        try:
            clock_error = head.reading.clock_error
            checker = _ChainChecker(plan, clock_error, executor, initial, values)
            checker.progress = lambda done: progress(done, len(live.starts))
            if find_kernel() is not None:
                checker.by_kernel, checker.spec = by_kernel, spec
            if by_definition:
                from isolang.watch.by_definition import ByDefinition

                checker.by_definition = ByDefinition(plan, clock_error)
            checker.add_initial_values([(key, *value) for key, value in initial.entries.items()])
            source = _check_parts(checker, live, stream, path)
            if stream.lacks_facts or stream.lacks_end:
                raise NotCertifiedError(NOT_ENDED if stream.lacks_end else LACKS_FACTS)
        finally:
            values.close()
    return CheckedChain(
        spec=spec,
        transactions=checker.count,
        read_as=tuple(_reading_notes(source, clock_error, initial, stream)),
        by_kernel=checker.kernel_summary(),
    )


def _reading_notes(
    source: History | None, clock_error: int, initial: InitialState, stream: Stream
) -> Iterator[tuple[str, str]]:
    """Yield pairs of a name and a text that describe how the log was read and what was ignored."""
    if source is not None:
        yield "files", ", ".join(source.files)
        yield "read as", source.format
        yield "initial state", source.initial
        yield "session", source.session
        yield "real time", source.real_time
    error = (
        f"clocks may differ by {format_duration(clock_error)}, so a smaller difference between two "
        "times orders nothing"
    )
    yield "clock error", error if clock_error else "none"
    if text := initial.summary():
        yield "before", text
    ignored = (
        f"{count:,} {kind.replace('_', ' ')}" for kind, count in stream.counts.items() if count
    )
    yield "ignored", "; ".join(ignored) or "nothing"
    if stream.torn:
        yield "torn", f"the last {stream.torn:,} bytes, which are an incomplete line, are left out"


def _check_parts(
    checker: _ChainChecker, live: LiveChain, stream: Stream, path: Path
) -> History | None:
    """Check all parts against the log.

    Return the history of the last batch, which records how the log was read; ``None`` if the stream
    has no batches.
    """
    pool = _UncheckedTransactions()
    source = None
    parts = deque(enumerate(live.starts, 1))
    with path.open("rb") as file:
        ready = _next_part(file, parts, str(path))
        for batch in stream:
            source = batch.history
            checker.begin(pool.add(batch), source)
            while ready is not None and (rows := pool.find(ready[1].members)) is not None:
                number, part = ready
                checker.check(part, pool.take(rows), f"part {number}")
                pool.remove_abandoned(part.aside)
                stream.set_aside(_not_ended(part))
                ready = _next_part(file, parts, str(path))
    checker.finish()
    _check_bytes(live.spans, stream.log)
    if ready is not None:
        raise ChainRejected(
            f"part {ready[0]}: some of its transactions are not in the log, or are also in an "
            "earlier part"
        )
    pool.check_all_in_parts()
    return source


def _not_ended(part: PartColumns) -> set[tuple[int, int]]:
    """Return the file and offset of each transaction in a cut that had not ended.

    No later part may contain such a transaction, unless it commits later.
    """
    cut = [*part.members.tolist(), *part.aside.tolist()]
    return {(file, offset) for _, file, offset, _, done in cut if done < 0}


def _next_part(
    file: IO[bytes], parts: deque[tuple[int, int]], path: str
) -> tuple[int, PartColumns] | None:
    if not parts:
        return None
    number, start = parts.popleft()
    where = f"{path}: part {number}"
    part: Part = part_at(file, start, where)
    found = unpack_columns(part, where)
    if part.transactions != len(found.members):
        raise ChainRejected(
            f"{where}: the part contains another number of transactions than it states"
        )
    return number, found


class _UncheckedTransactions:
    """The transactions of the log that are not in any checked part yet."""

    def __init__(self) -> None:
        self._rows = Rows.empty()  # the committed and indeterminate transactions
        self._in_flight = Rows.empty()
        self._place: dict[tuple[int, int, int, int], int] = {}
        self._taken: set[tuple[int, int]] = set()

    def add(self, batch: Batch) -> Rows:
        """Add the transactions of a batch that took effect, and return all rows of the batch."""
        import numpy as np

        rows = rows_of(batch, 0)
        status = rows.columns.txn_status
        # If a part contains a transaction that was still in flight, no later part may contain that
        # transaction again after its completion.
        taken = [(f, o) in self._taken for f, o in rows.at[:, 1:3].tolist()] if self._taken else []
        again = np.array(taken or np.zeros(len(rows)), bool) & (status != c.COMMITTED)
        effective = ~again & ((status == c.COMMITTED) | (status == c.INDETERMINATE))
        new = np.flatnonzero(effective & ~batch.in_flight).astype(np.int32)
        self._rows.extend(rows, new)
        self._in_flight = rows.take(np.flatnonzero(batch.in_flight & ~again))
        self._index()
        return rows

    def _index(self) -> None:
        import numpy as np

        places = [*self._rows.at[:, 1:].tolist(), *self._in_flight.at[:, 1:].tolist()]
        self._place = {tuple(at): i for i, at in enumerate(places)}
        # The watch may have given up on an indeterminate transaction before its completion was
        # read, so the transaction is also found by its place without the completion.
        maybe = np.flatnonzero(self._rows.columns.txn_status == c.INDETERMINATE)
        for i in maybe.tolist():
            self._place[places[i][0], places[i][1], -1, -1] = i

    def find(self, members: NDArray[np.int64]) -> list[int] | None:
        """Return the row numbers of the members of a part.

        Return ``None`` if a member is not in the pool, or if a member occurs twice.
        """
        found = [self._place.get(tuple(at), -1) for at in members[:, 1:].tolist()]
        return None if -1 in found or len(set(found)) < len(found) else found

    def take(self, rows: list[int]) -> Rows:
        """Remove the transactions in these rows from the pool, and return them in this order."""
        import numpy as np

        own = len(self._rows)
        every = Rows.empty()
        every.extend(self._rows)
        every.extend(self._in_flight)
        found = every.take(np.array(rows, np.int32))
        self._taken |= {(f, o) for f, o, _, done in found.at[:, 1:].tolist() if done < 0}
        kept = np.ones(len(every), bool)
        kept[rows] = False
        self._rows = every.take(np.flatnonzero(kept[:own]))
        self._in_flight = every.take(own + np.flatnonzero(kept[own:]))
        self._index()
        return found

    def remove_abandoned(self, aside: NDArray[np.int64]) -> None:
        """Remove the indeterminate transactions that the watch gave up on from the pool."""
        import numpy as np

        places = {tuple(at) for at in aside[:, 1:].tolist()}
        maybe = self._rows.columns.txn_status == c.INDETERMINATE
        gone = {
            i
            for i in np.flatnonzero(maybe).tolist()
            if tuple(self._rows.at[i, 1:].tolist()) in places
        }
        if gone:
            kept = [i for i in range(len(self._rows)) if i not in gone]
            self._rows = self._rows.take(np.array(kept, np.int32))
            self._index()

    def check_all_in_parts(self) -> None:
        """Check that the pool contains no committed transaction."""
        import numpy as np

        rest = np.flatnonzero(self._rows.columns.txn_status == c.COMMITTED)
        if len(rest):
            file, offset = min((int(f), int(o)) for f, o in self._rows.at[rest, 1:3])
            raise ChainRejected(
                f"{len(rest)} committed transactions are in no part "
                f"(the first one in file {file} at byte {offset})"
            )


class _ChainChecker:
    """Checks parts in order. Each part begins with the last values left by the earlier parts."""

    def __init__(
        self,
        plan: Plan,
        clock_error: int,
        executor: Executor | CheckExecutor | None,
        initial: InitialState,
        values: Values,
    ) -> None:
        self._initial = initial
        self.clock_error = clock_error
        self.count = 0
        self.by_definition: ByDefinition | None = None
        self.by_kernel: Literal["no", "tries", "insists"] = "no"
        self.spec: Spec | None = None  # the specification as it was written, for the kernel
        self.progress: Callable[[int], object] = lambda done: None
        self._parts = 0
        self._not_by_kernel: list[str] = []
        self._plan = plan
        self._no_predicates = why_no_predicates(plan)
        self._values = values
        self._order = _Order(plan)
        self._source: History | None = None
        self._executor = executor
        self._pending: deque[tuple[str, PendingCheck]] = deque()

    def begin(self, rows: Rows, source: History) -> None:
        """Set the initial values for the keys of a batch, from its :init and from the head."""
        self._source = source
        if len(rows.columns.statement_txn) and (self._initial.is_stated or self._no_predicates):
            raise ChainRejected(
                "the history contains a predicate read, which cannot be watched at this level"
            )
        self.add_initial_values(self._initial.stated_values(source))
        if (at := self._initial.contradiction(rows.columns)) is not None:
            raise ChainRejected(
                f"the chain states a wrong initial value of {decode(*at[1])!r}: a "
                f"transaction wrote it (file {rows.place(at[0]).file} at byte "
                f"{rows.place(at[0]).offset})"
            )
        if (first := initial_writes_of(rows, self._values.last)) is not None:
            self._values.last.replace(first)
        if self.by_definition is not None:
            self.by_definition.begin(rows)

    def add_initial_values(self, entries: Sequence[InitialValue]) -> None:
        """Set the initial values of the keys in these entries."""
        if entries:
            self._values.last.replace(as_last_values(entries))
            if self.by_definition is not None:
                self.by_definition.add_initial_values(entries)

    def check(self, part: PartColumns, members: Rows, where: str) -> None:
        """Check the next part, and update the last values."""
        self._order.add(members, where)
        self._values.fetch(members.columns)
        columns, stale = columns_after_parts(members, self._values.last)
        if len(stale):
            raise ChainRejected(
                f"{where}: a list read does not begin with the elements that earlier parts left"
            )
        witness = _witness(part, where, members.columns.n_keys(), columns.n_keys())
        history = history_of(columns, members.names, self._source, clock_error=self.clock_error)
        self._accept(history, witness, where)
        if self.by_definition is not None:
            try:
                self.by_definition.check(members, columns, witness, where)
            except CertificateRejected as error:
                raise ChainRejected(f"{where}: {error}") from None
        try:
            entries = self._values.last.left_by(columns, witness.order_start, witness.order_txn)
            before = self._values.last.replace(entries)
        except ValueError as error:
            raise ChainRejected(f"{where}: {error}") from None
        if before != part.before:
            raise ChainRejected(
                f"{where}: the values that the part replaces differ from those that it states"
            )
        self._values.make_room()
        self.count += len(members)

    def _accept(self, history: History, witness: Witness, where: str) -> None:
        spec = None if self.by_kernel == "no" else self.spec
        arguments = (history.columns, self._plan.spec, witness, spec)
        if self._executor is None:
            self._judge(where, *_check_part(*arguments))
            return
        self._pending.append((where, self._executor.submit(_check_part, *arguments)))
        while len(self._pending) > _AHEAD:
            self._await_first()

    def _await_first(self) -> None:
        where, result = self._pending.popleft()
        self._judge(where, *result.result())

    def _judge(self, where: str, reason: str, beyond_kernel: str) -> None:
        self._parts += 1
        self.progress(self._parts)
        if reason:
            raise ChainRejected(f"{where}: {reason}")
        if beyond_kernel:
            if self.by_kernel == "insists":
                raise NotCertifiedError(f"{where}: {beyond_kernel}")
            self._not_by_kernel.append(f"{where}: {beyond_kernel}")

    def kernel_summary(self) -> str:
        """Return a sentence about the parts accepted by the kernel; empty if it did not run."""
        if self.by_kernel == "no":
            return ""
        accepted = self._parts - len(self._not_by_kernel)
        if accepted == self._parts:
            return f"accepted by: native checker (all parts), kernel (all {accepted:,} parts)"
        return (
            f"accepted by: native checker (all parts), kernel ({accepted:,} of {self._parts:,} "
            f"parts); {self._not_by_kernel[0]}"
        )

    def finish(self) -> None:
        """Wait until the executor has checked all parts."""
        while self._pending:
            self._await_first()


def _check_part(
    columns: Columns, spec: Spec, witness: Witness, written: Spec | None
) -> tuple[str, str]:
    """Check a part with the native checker, and with the kernel if ``written`` is given.

    Returns:
        The reason why a checker rejects the part, and the reason why the kernel cannot decide it.
        Each is empty if there is none.
    """
    reason = reason_for_rejection(columns, spec, witness)
    if reason or written is None:
        return reason, ""
    history = History(columns=columns, name="a part", format="memory")
    try:
        check_by_kernel(history, written, witness, of_part=True)
    except CertificateRejected as error:
        return str(error), ""
    except NotCertifiedError as error:
        return "", str(error)
    return "", ""


def reason_for_rejection(columns: Columns, spec: Spec, witness: Witness) -> str:
    """Return the reason why the native checker rejects a part; empty if it accepts the part."""
    history = History(columns=columns, name="a part", format="memory")
    try:
        check_natively(history, spec, witness)
    except (CertificateRejected, NotCertifiedError) as error:
        return str(error) or "the chain does not hold"
    return ""


def _witness(part: PartColumns, where: str, touched: int, keys: int) -> Witness:
    """Return the witness of a part for all keys of its columns.

    The version order is empty for each key not accessed by any member of the part.
    """
    import numpy as np

    for column in (part.source, part.order_txn):
        if len(column) and not -1 <= int(column.min()) <= int(column.max()) < 1 << 31:
            raise ChainRejected(
                f"{where}: the witness contains numbers that belong to no transaction"
            )
    start = part.order_start
    if len(start) != touched + 1:
        raise ChainRejected(f"{where}: the witness does not order the writers of every key")
    start = np.concatenate([start, np.full(keys - touched, start[-1])])
    return Witness.of(part.source, start, part.order_txn)


def _check_bytes(spans: Sequence[tuple[int, int, int, str]], log: Log) -> None:
    for file, start, end, digest in spans:
        try:
            found = log.bytes_hash(file, start, end)
        except IndexError:
            raise HistoryError(f"no file {file} in the log") from None
        if found != digest:
            raise ChainRejected(
                f"file {file}: bytes {start} to {end} have changed since they were checked"
            )


class _Order:
    """Checks that no edge of ``so`` or ``rt`` leads from a part back to an earlier part."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._position: dict[str, tuple[int, int]] = {}
        self._begin = c.UNKNOWN_BEGIN

    def add(self, members: Rows, where: str) -> None:
        sessions = members.columns.txn_session.tolist()
        for session, at in zip(sessions, members.at[:, 1:3].tolist(), strict=True):
            name = members.names[session]
            if _LONE_SESSION.fullmatch(name):
                continue
            place = (at[0], at[1])
            if place <= self._position.get(name, (-1, -1)):
                raise ChainRejected(
                    f"{where}: the transaction that began in file {at[0]} at byte {at[1]} comes "
                    "after a later transaction of its session"
                )
            self._position[name] = place
        if not self._plan.uses_real_time or not len(members):
            return
        begin, end = members.columns.txn_begin, members.columns.txn_end
        if self._begin != c.UNKNOWN_BEGIN and bool((end < self._begin).any()):
            raise ChainRejected(
                f"{where}: a transaction ended before something in an earlier part began"
            )
        self._begin = max(self._begin, int(begin.max()))
