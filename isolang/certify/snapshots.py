"""Derives the sources of implicit set-reads from a witness's snapshots, by definition.

The witness contains an order of the COMMITs and, for each predicate read, the number of COMMITs it
sees. The source of a set-read is the last writer of its key among these COMMITs. Once the sources
have been added, the witness is checked like any other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from isolang.arrays import np
from isolang.certify.errors import CertificateRejected
from isolang.certify.statements import IMPLICIT, Matching, StatedRows, judged_statements, own_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolang.certify.facts import Facts
    from isolang.history.history import History

    Numbers = Sequence[int] | NDArray[np.integer[Any]]


def places_of_commits(  # noqa: PLR0917 - a witness, and what is known of the history
    facts: Facts,
    history: History,
    included: AbstractSet[int],
    orders: Sequence[Sequence[int]],
    commits: Numbers,
    seen: Numbers,
) -> dict[int, int]:
    """Return the place of each included transaction in the order of the COMMITs.

    Raises:
        CertificateRejected: if the order lacks a transaction or contradicts a version order, or if
            a predicate read sees the COMMIT of its own transaction.
    """
    columns = history.columns
    if len(seen) != len(columns.statement_start):
        raise CertificateRejected("the witness does not state what each predicate read saw")
    committed = [int(t) for t in commits]
    # mutant: python-commits
    if sorted(committed) != sorted(included):
        raise CertificateRejected(
            "the order of snapshots does not contain each included transaction once, and no others"
        )
    place = {t: i for i, t in enumerate(committed)}
    for key, order in enumerate(orders):
        # mutant: python-commits-as-versions
        if any(place[a] > place[b] for a, b in pairwise(order)):
            raise CertificateRejected(
                f"the order of snapshots contradicts the version order of key {key}"
            )
    for s in judged_statements(history, facts):
        t = int(columns.statement_txn[s])
        # mutant: python-sees-itself
        if t in place and not 0 <= int(seen[s]) <= place[t]:
            raise CertificateRejected(f"predicate read {s} sees its own COMMIT or no snapshot")
    return place


def resolve_set_reads(  # noqa: PLR0917 - a witness, and what is known of the history
    facts: Facts,
    history: History,
    rows: StatedRows,
    included: AbstractSet[int],
    orders: Sequence[Sequence[int]],
    commits: Numbers | None,
    seen: Numbers | None,
) -> dict[int, int]:
    """Add all implicit set-reads to ``facts`` as operations, and return their sources.

    Raises:
        CertificateRejected: if the snapshots are not consistent, or if a predicate read sees a
            version that matches its predicate but did not return the row.
    """
    columns = history.columns
    if commits is None or seen is None:
        raise CertificateRejected("the witness does not state what predicate reads saw")
    place = places_of_commits(facts, history, included, orders, commits, seen)
    places = [[place[t] for t in order] for order in orders]
    sources = dict[int, int]()
    for s in sorted(judged_statements(history, facts)):
        t = int(columns.statement_txn[s])
        if t not in place or columns.statement_known[s] != IMPLICIT:
            continue
        start, end = int(columns.statement_start[s]), int(columns.statement_end[s])
        # Skip keys whose set-read is already an operation, and rows written by the transaction.
        # mutant: python-own-decides
        explained = {*facts.key[start:end], *own_rows(history, facts, s)}
        holds, snapshot = rows.judge(s), int(seen[s])
        for key in rows.missed(s, explained):
            op = facts.add_set_read(s, t, key, Matching(holds, key))
            # mutant: python-last-seen
            last = bisect_left(places[key], snapshot)
            sources[op] = orders[key][last - 1] if last else facts.n
            # mutant: python-walked-rows
            if not facts.may_read(op, sources[op]):
                raise CertificateRejected(
                    f"predicate read {s} sees a row of key {key}, which matches, and did not "
                    "return it"
                )
    return sources
