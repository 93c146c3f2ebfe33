"""Checking the chain of a watch again, part by part, with the independent checkers."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Final

from msgspec import Struct

from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.native import check_natively
from isolang.certify.proofs import Witness
from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.clock_error import shown
from isolang.history.history import History
from isolang.history.values import decode
from isolang.language.classify.event_graph import Plan
from isolang.language.load import load_texts
from isolang.language.meaning.core import Spec
from isolang.watch.before import Before, as_left
from isolang.watch.chain import (
    NAME,
    Head,
    Held,
    Live,
    Part,
    Taken,
    live_parts,
    part_at,
    read_chain,
    taken,
)
from isolang.watch.levels import watched, why_no_predicates
from isolang.watch.state import Values
from isolang.watch.stream import Batch, Rows, Stream
from isolang.watch.stream.rows import rows_of
from isolang.watch.window import history_of, initial_of, opened

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns
    from isolang.watch.by_definition import ByDefinition
    from isolang.watch.stream import Log

_AHEAD: Final = 8  # parts that an executor has at a time


_ALONE: Final = re.compile(r"(.*/)?@\d+:\d+", re.DOTALL)  # as the reader names sessions of one


class ChainRejected(CertificateRejected):
    """A chain does not prove what it claims."""


class Checked(Struct, frozen=True, kw_only=True):
    """What a chain proves, and of what.

    Attributes:
        spec: the level, by the texts that the chain holds.
        transactions: how many the parts have.
        read_as: how the log was read: names and values.
    """

    spec: Spec
    transactions: int
    read_as: tuple[tuple[str, str], ...]


def verify_chain(
    folder: Path,
    stream: Stream,
    *,
    by_definition: bool = False,
    executor: Executor | None = None,
    memory: int = 256 << 20,
) -> int:
    """How many transactions satisfy a level; see :func:`check_chain`."""
    return check_chain(
        folder, stream, by_definition=by_definition, executor=executor, memory=memory
    ).transactions


def check_chain(
    folder: Path,
    stream: Stream,
    *,
    by_definition: bool = False,
    executor: Executor | None = None,
    memory: int = 256 << 20,
) -> Checked:
    """Check that a stream satisfies a level, by the chain of a watch that said so.

    It proves the whole because each part satisfies the level from the values that the parts before
    it left; no edge of ``so`` and none of ``rt`` leads back over a cut; and each committed
    transaction of the log is in one part.

    Args:
        folder: with the chain.
        stream: the same input from its beginning, not followed.
        by_definition: have the checker by definition accept each part, too, and the values that it
            leaves; it takes parts of up to 2,000 transactions, and much longer.
        executor: checks the parts, several at a time: of threads, or another one of
            :mod:`concurrent.futures` or alike; ``None``: one after the other, here.
        memory: bytes that the last values of the keys may take; what is beyond is kept on disk.

    Returns:
        What it proves, and how the log was read, which may change what that means.

    Raises:
        ChainRejected: it does not prove it.
        HistoryError: the chain or the log cannot be read.
    """
    path = folder / NAME
    if not path.is_file():
        raise HistoryError(
            f"{folder}: no chain of a watch (expected {NAME} in it, which isocheck watch --state "
            "writes); a certificate is a file"
        )
    head = next(read_chain(path), None)
    if not isinstance(head, Head):
        raise ChainRejected("the chain is empty")
    spec = load_texts(head.spec_texts)
    if head.spec_name != spec.name:
        raise HistoryError(
            f"{path}:1: spec_name is not the name of the level in spec_texts "
            f"(got {head.spec_name!r:.60}, expected {spec.name!r:.60})"
        )
    plan = watched(spec)
    live = live_parts(path)
    if live.end is None or live.end.outcome != "valid":
        raise ChainRejected("the chain does not end with a valid verdict")
    before = Before.read(head.reading)
    if live.held and not before.unwritten:
        raise ChainRejected("it takes for there before what nobody said")
    before.take(live.held)
    with TemporaryDirectory(prefix="isolang-verify-") as name:
        values = Values(Path(name), memory=memory)
        try:
            clock_error = head.reading.clock_error
            checker = _Checker(plan, clock_error, executor, before, values)
            if by_definition:
                from isolang.watch.by_definition import ByDefinition

                checker.by_definition = ByDefinition(plan, clock_error)
            checker.begin_with([(key, *held) for key, held in before.held.items()])
            about = _verified(checker, live, stream, path)
        finally:
            values.close()
    return Checked(
        spec=spec,
        transactions=checker.count,
        read_as=tuple(_read_as(about, clock_error, before, stream)),
    )


def _read_as(
    about: History | None, clock_error: int, before: Before, stream: Stream
) -> Iterator[tuple[str, str]]:
    """How a log was read, and what of it has no influence."""
    if about is not None:
        yield "files", ", ".join(about.files)
        yield "read as", about.format
        yield "initial state", about.initial
        yield "session", about.session
        yield "real time", about.real_time
    error = f"clocks may differ by {shown(clock_error)}, and what is nearer orders nothing"
    yield "clock error", error if clock_error else "none"
    if said := before.told():
        yield "before", said
    ignored = (
        f"{count:,} {kind.replace('_', ' ')}" for kind, count in stream.counts.items() if count
    )
    yield "ignored", "; ".join(ignored) or "nothing"
    if stream.torn:
        yield "torn", f"the last {stream.torn:,} bytes, a line without an end: left out"


def _verified(checker: _Checker, live: Live, stream: Stream, path: Path) -> History | None:
    """Check all parts; returns how the last batch was read."""
    pool = _Pool()
    about = None
    parts = deque(enumerate(live.starts, 1))
    with path.open("rb") as file:
        ready = _next(file, parts, str(path))
        for batch in stream:
            about = batch.history
            checker.begin(pool.add(batch), about)
            while ready is not None and (rows := pool.find(ready[1].members)) is not None:
                number, part = ready
                checker.check(part, pool.take(rows), f"part {number}")
                pool.drop_aside(part.aside)
                ready = _next(file, parts, str(path))
    checker.finish()
    _check_bytes(live.spans, stream.log)
    if ready is not None:
        raise ChainRejected(
            f"part {ready[0]}: the log does not have all of its transactions, or they are in an "
            "earlier part, too"
        )
    pool.check_rest()
    return about


def _next(file: IO[bytes], parts: deque[tuple[int, int]], path: str) -> tuple[int, Taken] | None:
    if not parts:
        return None
    number, start = parts.popleft()
    where = f"{path}: part {number}"
    part: Part = part_at(file, start, where)
    found = taken(part, where)
    if part.transactions != len(found.members):
        raise ChainRejected(f"{where}: it has another number of transactions than it says")
    return number, found


class _Pool:
    """The transactions of the log that are in no part yet; what is in flight may be in one."""

    def __init__(self) -> None:
        self._rows = Rows.none()  # committed, and of unknown outcome
        self._flying = Rows.none()
        self._place: dict[tuple[int, int, int, int], int] = {}
        self._taken: set[tuple[int, int]] = set()

    def add(self, batch: Batch) -> Rows:
        """Take a batch; returns its rows."""
        import numpy as np

        rows = rows_of(batch, 0)
        status = rows.columns.txn_status
        # What was in flight may be in a part as such; then it is in no other one.
        taken = [(f, o) in self._taken for f, o in rows.at[:, 1:3].tolist()] if self._taken else []
        again = np.array(taken or np.zeros(len(rows)), bool) & (status != c.COMMITTED)
        effective = ~again & ((status == c.COMMITTED) | (status == c.INDETERMINATE))
        new = np.flatnonzero(effective & ~batch.in_flight).astype(np.int32)
        self._rows.extend(rows, new)
        self._flying = rows.take(np.flatnonzero(batch.in_flight & ~again))
        self._index()
        return rows

    def _index(self) -> None:
        import numpy as np

        places = [*self._rows.at[:, 1:].tolist(), *self._flying.at[:, 1:].tolist()]
        self._place = {tuple(at): i for i, at in enumerate(places)}
        # One whose outcome the log says to be unknown may have been given up before it said so.
        maybe = np.flatnonzero(self._rows.columns.txn_status == c.INDETERMINATE)
        for i in maybe.tolist():
            self._place[places[i][0], places[i][1], -1, -1] = i

    def find(self, members: NDArray[np.int64]) -> list[int] | None:
        """The rows of the members of a part, if all are here; each once."""
        found = [self._place.get(tuple(at), -1) for at in members[:, 1:].tolist()]
        return None if -1 in found or len(set(found)) < len(found) else found

    def take(self, rows: list[int]) -> Rows:
        """Take some out, in the order given."""
        import numpy as np

        own = len(self._rows)
        found = Rows.none()
        every = Rows.none()
        every.extend(self._rows)
        every.extend(self._flying)
        found = every.take(np.array(rows, np.int32))
        self._taken |= {(f, o) for f, o, _, done in found.at[:, 1:].tolist() if done < 0}
        kept = np.ones(len(every), bool)
        kept[rows] = False
        self._rows = every.take(np.flatnonzero(kept[:own]))
        self._flying = every.take(own + np.flatnonzero(kept[own:]))
        self._index()
        return found

    def drop_aside(self, aside: NDArray[np.int64]) -> None:
        """Unknown outcomes that the watch gave up are no longer waited for here either."""
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

    def check_rest(self) -> None:
        """Nothing that certainly took effect may be left.

        Raises:
            ChainRejected: something is.
        """
        import numpy as np

        left = np.flatnonzero(self._rows.columns.txn_status == c.COMMITTED)
        if len(left):
            file, offset = min((int(f), int(o)) for f, o in self._rows.at[left, 1:3])
            raise ChainRejected(
                f"{len(left)} committed transactions are in no part "
                f"(the first one in file {file} at byte {offset})"
            )


class _Checker:
    """Checks parts, one after the other."""

    def __init__(
        self,
        plan: Plan,
        clock_error: int,
        executor: Executor | None,
        before: Before,
        values: Values,
    ) -> None:
        self._before = before
        self.clock_error = clock_error
        self.count = 0
        self.by_definition: ByDefinition | None = None
        self._plan = plan
        self._no_predicates = why_no_predicates(plan)
        self._values = values
        self._order = _Order(plan)
        self._about: History | None = None
        self._executor = executor
        self._asked: deque[tuple[str, Future[str]]] = deque()

    def begin(self, rows: Rows, about: History) -> None:
        """Take what a batch says of the initial state."""
        self._about = about
        if len(rows.columns.statement_txn) and (self._before.asked or self._no_predicates):
            raise ChainRejected("a predicate read, where it cannot be watched")
        self.begin_with(self._before.declared(about))
        if (at := self._before.written(rows.columns)) is not None:
            raise ChainRejected(
                f"{decode(*at[1])!r} did not hold before the stream what the chain says: a "
                f"transaction wrote it (file {rows.place(at[0]).file} at byte "
                f"{rows.place(at[0]).offset})"
            )
        if (first := initial_of(rows, self._values.last)) is not None:
            self._values.last.replace(first)
        if self.by_definition is not None:
            self.by_definition.begin(rows)

    def begin_with(self, held: Sequence[Held]) -> None:
        """Take what keys held before the stream."""
        if held:
            self._values.last.replace(as_left(held))
            if self.by_definition is not None:
                self.by_definition.begin_with(held)

    def check(self, part: Taken, members: Rows, where: str) -> None:
        """Check the next part.

        Raises:
            ChainRejected: it does not hold, or leads back.
        """
        self._order.add(members, where)
        self._values.fetch(members.columns)
        columns, stale = opened(members, self._values.last)
        if len(stale):
            raise ChainRejected(f"{where}: a list was read with another beginning than was left")
        witness = _witness(part, where, members.columns.n_keys(), columns.n_keys())
        history = history_of(columns, members.names, self._about, clock_error=self.clock_error)
        self._accept(history, witness, where)
        if self.by_definition is not None:
            try:
                self.by_definition.check(members, columns, witness, where)
            except CertificateRejected as error:
                raise ChainRejected(f"{where}: {error}") from None
        try:
            left = self._values.last.left_by(columns, witness.order_start, witness.order_txn)
            before = self._values.last.replace(left)
        except ValueError as error:
            raise ChainRejected(f"{where}: {error}") from None
        if before != part.before:
            raise ChainRejected(f"{where}: it does not replace the values that it says")
        self._values.make_room()
        self.count += len(members)

    def _accept(self, history: History, witness: Witness, where: str) -> None:
        if self._executor is None:
            _raise(where, accepted(history.columns, self._plan.spec, witness))
            return
        asked = self._executor.submit(accepted, history.columns, self._plan.spec, witness)
        self._asked.append((where, asked))
        while len(self._asked) > _AHEAD:
            self._answer()

    def _answer(self) -> None:
        where, asked = self._asked.popleft()
        _raise(where, asked.result())

    def finish(self) -> None:
        """Wait for all answers.

        Raises:
            ChainRejected: a part does not hold.
        """
        while self._asked:
            self._answer()


def accepted(columns: Columns, spec: Spec, witness: Witness) -> str:
    """Check one part with the native checker; empty if it holds, else the reason."""
    history = History(columns=columns, name="a part", format="memory")
    try:
        check_natively(history, spec, witness)
    except (CertificateRejected, NotCertifiedError) as error:
        return str(error) or "it does not hold"
    return ""


def _raise(where: str, reason: str) -> None:
    if reason:
        raise ChainRejected(f"{where}: {reason}")


def _witness(part: Taken, where: str, touched: int, keys: int) -> Witness:
    """The witness of a part, with the rows that nobody touched behind its keys."""
    import numpy as np

    for column in (part.source, part.order_txn):
        if len(column) and not -1 <= int(column.min()) <= int(column.max()) < 1 << 31:
            raise ChainRejected(f"{where}: a witness with numbers of no transaction")
    start = part.order_start
    if len(start) != touched + 1:
        raise ChainRejected(f"{where}: no order of each key")
    start = np.concatenate([start, np.full(keys - touched, start[-1])])
    return Witness.of(part.source, start, part.order_txn)


def _check_bytes(spans: Sequence[tuple[int, int, int, str]], log: Log) -> None:
    for file, start, end, digest in spans:
        try:
            found = log.bytes_hash(file, start, end)
        except IndexError:
            raise HistoryError(f"no file {file} in the log") from None
        if found != digest:
            raise ChainRejected(f"file {file}: bytes {start} to {end} are not what was judged")


class _Order:
    """That sessions and real time lead forward, from each part to later ones."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._position: dict[str, tuple[int, int]] = {}
        self._begin = c.UNKNOWN_BEGIN

    def add(self, members: Rows, where: str) -> None:
        sessions = members.columns.txn_session.tolist()
        for session, at in zip(sessions, members.at[:, 1:3].tolist(), strict=True):
            name = members.names[session]
            if _ALONE.fullmatch(name):  # a session of its own
                continue
            place = (at[0], at[1])
            if place <= self._position.get(name, (-1, -1)):
                raise ChainRejected(
                    f"{where}: what began in file {at[0]} at byte {at[1]} comes after what its "
                    "session did later"
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
