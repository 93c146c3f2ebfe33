"""Checking the chain of a watch again, part by part, with the independent checkers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.native import check_natively
from isolang.certify.proofs import Witness, check_proof
from isolang.history.transaction import Transaction
from isolang.language.classify.event_graph import Plan
from isolang.language.load import load_texts
from isolang.language.meaning.core import Spec
from isolang.watch.chain import NAME, End, Head, Part, as_place, as_values, live_parts, read_chain
from isolang.watch.levels import watched
from isolang.watch.state import Key, Last, State, as_watched, last_write
from isolang.watch.stream import Stream, transactions
from isolang.watch.window import Watched, history_of

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.watch.stream import Log


_At = tuple[int, int, int, int]
"""A place, as entries have it."""


def _at(place: Sequence[int]) -> _At:
    file, offset, done_file, done = place
    return (file, offset, done_file, done)


class ChainRejected(CertificateRejected):
    """A chain does not prove what it claims."""


def verify_chain(folder: Path, stream: Stream, *, by_definition: bool = False) -> int:
    """Check that a stream satisfies a level, by the chain of a watch that said so.

    It proves the whole because each part satisfies the level from the values that the parts before
    it left; no edge of ``so`` and none of ``rt`` leads back over a cut; and each committed
    transaction of the log is in one part.

    Args:
        folder: with the chain.
        stream: the same input from its beginning, not followed.
        by_definition: have the checker by definition accept each part, too; it takes parts of up to
            2,000 transactions, and much longer.

    Returns:
        How many transactions the parts have.

    Raises:
        ChainRejected: it does not prove it.
        HistoryError: the chain or the log cannot be read.
    """
    plan = watched(level_of(folder))
    entries = list(read_chain(folder / NAME))
    head = entries[0]
    assert isinstance(head, Head)
    if not isinstance(end := entries[-1], End) or end.outcome != "valid":
        raise ChainRejected("the chain does not end with a valid verdict")
    checker = _Checker(plan, int(head.reading.get("clock_error", 0)))
    parts = deque(enumerate(live_parts(entries), 1))
    seen: dict[_At, Transaction] = {}
    count = 0
    for batch in stream:
        flying = batch.in_flight.tolist()
        for at, given in enumerate(transactions(batch.history)):
            if given.status != "aborted" and (batch.ended or not flying[at]):
                place = batch.places[at]
                seen[(place.file, place.offset, place.done_file, place.done)] = given
        while parts and all(_at(place) in seen for _, place in parts[0][1].members):
            number, part = parts.popleft()
            members = [
                Watched(
                    number=name,
                    given=as_watched(seen.pop(_at(place)), name, f"transaction {name}"),
                    place=as_place(place),
                    in_flight=False,
                )
                for name, place in part.members
            ]
            checker.check(part, members, f"part {number}", by_definition=by_definition)
            count += len(members)
    _check_bytes(entries, stream.log)
    if parts:
        raise ChainRejected(
            f"part {parts[0][0]}: the log does not have all of its transactions, or they are in an "
            "earlier part, too"
        )
    if left := [at for at, given in seen.items() if given.status == "committed"]:
        file, offset, *_ = min(left)
        raise ChainRejected(
            f"{len(left)} committed transactions are in no part "
            f"(the first one in file {file} at byte {offset})"
        )
    return count


def level_of(folder: Path) -> Spec:
    """The level that a chain is about, by the texts that it holds.

    Raises:
        HistoryError: the chain cannot be read.
        SpecError: its texts cannot be.
    """
    head = next(read_chain(folder / NAME), None)
    if not isinstance(head, Head):
        raise ChainRejected("the chain is empty")
    return load_texts(head.spec_texts)


class _Checker:
    """Checks parts, one after the other."""

    def __init__(self, plan: Plan, clock_error: int) -> None:
        self._plan, self._clock_error = plan, clock_error
        self._state, self._order = State(), _Order(plan)

    def check(self, part: Part, members: list[Watched], where: str, *, by_definition: bool) -> None:
        """Check the next part.

        Raises:
            ChainRejected: it does not hold, or leads back.
        """
        self._order.add(members, where)
        history = history_of(members, self._state, clock_error=self._clock_error)
        witness = Witness.of(part.source, part.order_start, part.order_txn)
        _accept(history, self._plan, witness, where, by_definition=by_definition)
        left = as_values(part.left)
        if left != _left(members, history, witness):
            raise ChainRejected(f"{where}: it does not leave the values that it says")
        self._state.apply({key: last for key, last in left.items() if last is not None})


def _check_bytes(entries: Iterable[object], log: Log) -> None:
    for entry in entries:
        if isinstance(entry, Part):
            for file, start, end, digest in entry.spans:
                if log.bytes_hash(file, start, end) != digest:
                    raise ChainRejected(
                        f"file {file}: bytes {start} to {end} are not what was judged"
                    )


def _accept(
    history: History, plan: Plan, witness: Witness, where: str, *, by_definition: bool
) -> None:
    try:
        check_natively(history, plan.spec, witness)
        if by_definition:
            check_proof(history, plan.spec, witness)
    except (CertificateRejected, NotCertifiedError) as error:
        raise ChainRejected(f"{where}: {error}") from None


def _left(members: list[Watched], history: History, witness: Witness) -> dict[Key, Last | None]:
    """The last value of each key, by the version orders of the part."""
    found: dict[Key, Last | None] = {}
    for key in range(history.columns.n_keys()):
        start, end = witness.order_start[key], witness.order_start[key + 1]
        if start < end:
            one, atom = members[witness.order_txn[end - 1]], history.columns.key(key)
            value = last_write(one.given, atom)
            found[atom] = Last(value=value, place=one.place, number=one.number)
    return found


class _Order:
    """That sessions and real time lead forward, from each part to later ones."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._position: dict[object, tuple[int, int]] = {}
        self._begin: int | None = None

    def add(self, members: list[Watched], where: str) -> None:
        for one in members:
            at = (one.place.file, one.place.offset)
            if at <= self._position.get(one.given.session, (-1, -1)):
                raise ChainRejected(
                    f"{where}: T{one.number} comes after what its session did later"
                )
            self._position[one.given.session] = at
        if not self._plan.uses_real_time:
            return
        for one in members:
            if (
                self._begin is not None
                and isinstance(one.given.end, int)
                and (one.given.end < self._begin)
            ):
                raise ChainRejected(
                    f"{where}: T{one.number} ended before something in an earlier part began"
                )
        begins = [one.given.begin for one in members if isinstance(one.given.begin, int)]
        known = [] if self._begin is None else [self._begin]
        self._begin = max([*begins, *known], default=None)
