"""Checks proofs that list the chosen relations, by evaluating all axioms on these sets of pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from isolang.certify.anomalies import anomalies_of, are_incompatible
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.evaluator import is_satisfied
from isolang.certify.facts import Facts
from isolang.certify.history_index import INITIAL
from isolang.certify.versions import first_contradiction
from isolang.certify.world import ConcreteInterpretation
from isolang.language.meaning.core import Exists, Spec
from isolang.language.meaning.mentions import mentioned, uses_events, uses_reads_from
from isolang.language.vocabulary import BEGIN_WITH_T0
from isolang.rows import Rows, bits, set_members

if TYPE_CHECKING:
    from isolang.history.history import History

LARGEST = 2_000
"""The largest number of transactions; beyond that, sets of pairs take too much time and memory."""

Pairs = Sequence[tuple[int, int]]


def check_relations(
    history: History,
    spec: Spec,
    included: Sequence[int],
    relations: Mapping[str, Mapping[int, Pairs]],
) -> None:
    """Check that chosen relations prove that the history satisfies the spec.

    Args:
        relations: for each name in an ``exists`` and each key (-1 if the relation has no key), the
            pairs of the relation. Elements are numbered as in :class:`ConcreteInterpretation`. For
            an order, only the pairs of neighbours are listed. Each pair of ``rf`` consists of a
            transaction and an operation that reads from it.

    Raises:
        CertificateRejected: if a relation is not of its declared kind or violates a check; the
            message names the relation or the check.
        NotCertifiedError: if this checker cannot decide the history.
    """
    if len(included) > LARGEST:
        raise NotCertifiedError(
            f"not certified: the history has {len(included)} transactions, and this checker checks "
            f"chosen relations for at most {LARGEST}"
        )
    if history.columns.implicit:
        raise NotCertifiedError("not certified: relations do not cover implicit set-reads")
    facts = Facts(history)
    facts.require(mentioned(spec))
    world = _world(facts, spec, included, relations)
    for check in spec.checks:
        if not check.flag and not is_satisfied(world, check):
            raise CertificateRejected(f"check {check.name}: the chosen relations violate it")


def interpretation_of(
    history: History,
    spec: Spec,
    included: Sequence[int],
    relations: Mapping[str, Mapping[int, Pairs]],
) -> ConcreteInterpretation:
    """Return the assignment defined by chosen relations, to evaluate other expressions in it.

    Raises:
        CertificateRejected: if a relation is not of its declared kind.
    """
    return _world(Facts(history), spec, included, relations)


def _world(
    facts: Facts,
    spec: Spec,
    included: Sequence[int],
    relations: Mapping[str, Mapping[int, Pairs]],
) -> ConcreteInterpretation:
    members = _included(facts, included)
    if wrong := first_contradiction(facts):
        raise CertificateRejected(f"operation {wrong[0]} contradicts {wrong[1]} by its version")
    judged = uses_reads_from(spec)
    if judged:
        for contradiction in contradictions(facts, members):
            raise CertificateRejected(contradiction)
    sources = _sources(facts, members, relations.get("rf", {}), judged=judged)
    world = ConcreteInterpretation(facts, members, sources, events=uses_events(spec))
    for exists in spec.exists:
        if exists.name != "rf":
            _choose(world, exists, relations.get(exists.name, {}))
    return world


# --- the contents of a certificate ---


def _included(facts: Facts, included: Sequence[int]) -> set[int]:
    members = set(included)
    for t in members:
        if not 0 <= t < facts.n or not facts.live(t) or facts.status[t] == INITIAL:
            raise CertificateRejected(f"transaction {t} cannot be included")
    for t in range(facts.n):
        if facts.certain(t) and t not in members:
            raise CertificateRejected(f"the committed transaction {t} is left out")
    for t in members:
        for op in range(facts.op_start[t], facts.op_start[t + 1]):
            if facts.is_read(op) and facts.is_list(op):
                for u in facts.shown(op):
                    if u != facts.n and u not in members:
                        raise CertificateRejected(
                            f"operation {op} shows transaction {u}, which is not included"
                        )
    return members


def contradictions(facts: Facts, members: Iterable[int]) -> list[str]:
    """Look for a read with an intrinsic anomaly, and for incompatible list reads."""
    lists: dict[int, list[int]] = {}
    for t in sorted(members):
        for op in range(facts.op_start[t], facts.op_start[t + 1]):
            if found := anomalies_of(facts, op):
                names = ", ".join(sorted(a.name.lower().replace("_", " ") for a in found))
                return [f"operation {op} is an intrinsic anomaly: {names}"]
            if facts.is_read(op) and facts.is_list(op):
                lists.setdefault(facts.key[op], []).append(op)
    for reads in lists.values():
        longest = max(reads, key=lambda op: len(facts.list_of(op)))
        for op in reads:
            if are_incompatible(facts, op, longest):
                return [f"the list reads {op} and {longest} are incompatible"]
    return []


def _sources(
    facts: Facts, members: set[int], rf: Mapping[int, Pairs], *, judged: bool
) -> dict[int, int]:
    sources: dict[int, int] = {}
    for key, pairs in rf.items():
        for source, op in pairs:
            if not 0 <= op < facts.operations or facts.key[op] != key or op in sources:
                raise CertificateRejected(f"rf has no place for the source of operation {op}")
            sources[op] = source
    for t in members:
        for op in range(facts.op_start[t], facts.op_start[t + 1]):
            if not facts.is_external(op):
                continue
            candidates = facts.candidates(op)
            source = sources.get(op, -1)
            if source < 0:
                if candidates or judged:
                    raise CertificateRejected(f"the external read {op} has no source")
            elif source not in candidates or (source != facts.n and source not in members):
                raise CertificateRejected(f"the external read {op} cannot read from {source}")
    for op in sources:
        if facts.txn_of[op] not in members or not facts.is_external(op):
            raise CertificateRejected(f"operation {op} has a source, but is not an external read")
    return sources


def _choose(
    world: ConcreteInterpretation, exists: Exists, pairs_by_key: Mapping[int, Pairs]
) -> None:
    keys: Sequence[int] = [-1] if exists.key is None else world.keys
    if unknown := set(pairs_by_key) - set(keys):
        raise CertificateRejected(f"{exists.name} has no key {min(unknown)}")
    for key in keys:
        binding = {} if exists.key is None else {exists.key: key}
        pairs = pairs_by_key.get(key, ())
        over = world.value(exists.over, binding)
        make = {"order": _order, "relation": _relation, "choice": _choice}[exists.kind]
        value = make(exists.name, over, pairs)
        if wrong := bounds_violation(world, exists, binding, over, value):
            raise CertificateRejected(f"{exists.name}: {wrong}")
        world.choose(exists.name, None if exists.key is None else key, value)


def bounds_violation(
    world: ConcreteInterpretation,
    exists: Exists,
    binding: Mapping[str, int],
    over: Rows,
    value: Rows,
) -> str:
    """Describe how a value violates the bounds of an ``exists``; return ``""`` if it does not."""
    if exists.containing is not None:
        least = world.value(exists.containing, binding)
        if any(row & ~value.get(i, 0) for i, row in least.items()):
            return "a pair of `containing` is missing"
    if exists.name in BEGIN_WITH_T0 and exists.kind != "choice":
        t0, members = world.t0, set_members(over)
        if members >> t0 & 1 and members & world.transactions & ~(1 << t0) & ~value.get(t0, 0):
            return "the initial transaction does not come first"
    if exists.within is not None:
        most = world.value(exists.within, binding)
        if any(row & ~most.get(i, 0) for i, row in value.items()):
            return "a pair is not in `within`"
    return ""


def _order(name: str, over: Rows, pairs: Pairs) -> Rows:
    """Return the total order whose pairs of neighbours are ``pairs``."""
    members = set_members(over)
    following = dict(pairs)
    starts = [i for i in bits(members) if i not in set(following.values())]
    row = starts[:1]
    while row and row[-1] in following and len(row) <= len(pairs):
        row.append(following[row[-1]])
    if len(following) < len(pairs) or sorted(row) != list(bits(members)):
        raise CertificateRejected(f"{name} is not a total order of its elements")
    return order_of_sequence(row)


def order_of_sequence(row: Sequence[int]) -> Rows:
    """Return the relation in which each element of a sequence precedes all later elements."""
    value: Rows = {}
    later = 0
    for i in reversed(row):
        if later:
            value[i] = later
        later |= 1 << i
    return value


def _relation(name: str, over: Rows, pairs: Pairs) -> Rows:
    members = set(bits(set_members(over)))
    value: Rows = {}
    for i, j in pairs:
        if i not in members or j not in members:
            raise CertificateRejected(f"{name}: ({i}, {j}) is not a pair of its elements")
        value[i] = value.get(i, 0) | 1 << j
    return value


def _choice(name: str, over: Rows, pairs: Pairs) -> Rows:
    value: Rows = {}
    seen = 0
    for i, j in pairs:
        if i < 0 or j < 0 or not over.get(i, 0) >> j & 1 or seen >> j & 1:
            raise CertificateRejected(f"{name}: ({i}, {j}) is not a choice")
        seen |= 1 << j
        value[i] = value.get(i, 0) | 1 << j
    if seen != set_members({0: _union(over)}):
        raise CertificateRejected(f"{name}: an element of the range has no choice")
    return value


def _union(rows: Rows) -> int:
    found = 0
    for row in rows.values():
        found |= row
    return found
