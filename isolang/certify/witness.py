"""Checks a witness by definition: evaluates the spec on its sources and version orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from isolang.arrays import np
from isolang.certify.anomalies import anomalies_of, value_of_initial
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.evaluator import is_satisfied
from isolang.certify.facts import Facts
from isolang.certify.history_index import COMMITTED, NO_SOURCE
from isolang.certify.least import Rules, least_values, linear_extension, rules_of, with_pairs
from isolang.certify.relations import LARGEST, bounds_violation, order_of_sequence
from isolang.certify.snapshots import places_of_commits, resolve_set_reads
from isolang.certify.statements import check_statements
from isolang.certify.versions import agrees_with_stated, first_contradiction
from isolang.certify.world import ConcreteInterpretation
from isolang.language.classify.theorems import event_graph_form
from isolang.language.meaning.core import Check, Spec
from isolang.language.meaning.mentions import mentioned, uses_events, uses_reads_from
from isolang.rows import bits, union

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolang.history.history import History

    Numbers = Sequence[int] | NDArray[np.integer[Any]]

LARGEST_IN_PARTS = 20_000
"""The largest number of transactions if only some of the checks are evaluated.

The relations in these checks are mostly sparse, and the native checker decides the others."""


def check_witness(
    history: History,
    spec: Spec,
    source: Numbers,
    order_start: Numbers,
    order_txn: Numbers,
    *,
    only: Sequence[Check] | None = None,
    commits: Numbers | None = None,
    seen: Numbers | None = None,
) -> ConcreteInterpretation:
    """Check that a witness proves that the history satisfies the spec.

    Args:
        source: for each operation, the transaction it reads from (T0 has number n) if it is an
            external read by an included transaction, otherwise -1.

    Raises:
        CertificateRejected: if the witness is wrong; the message says where.
        NotCertifiedError: if this checker cannot decide the specification or the history.
    """
    facts = Facts(history)
    largest = LARGEST if only is None else LARGEST_IN_PARTS
    if len(facts.could_be_included) > largest:
        raise NotCertifiedError(
            f"not certified by definition: {len(facts.could_be_included)} transactions (witnesses "
            f"are evaluated up to {largest})"
        )
    rows = check_statements(history, facts)
    facts.require(mentioned(spec))
    rules = rules_of(spec) if only is None else None
    sources = [int(u) for u in source]
    if len(sources) != facts.operations:
        raise CertificateRejected(
            f"source has {len(sources)} entries (expected one per operation: {facts.operations})"
        )
    if wrong := first_contradiction(facts):
        raise CertificateRejected(f"operation {wrong[0]} contradicts {wrong[1]} by its version")
    included = included_transactions(facts, sources)
    orders = _orders(facts, included, order_start, order_txn)
    reads = _reads(facts, included, sources, judges_reads=uses_reads_from(spec))
    if rows is not None and history.columns.implicit:
        reads |= resolve_set_reads(facts, history, rows, included, orders, commits, seen)
    elif commits is not None and seen is not None:
        places_of_commits(facts, history, included, orders, commits, seen)
    world = ConcreteInterpretation(facts, included, reads, events=uses_events(spec))
    for key, order in enumerate(orders):
        world.choose("ww", key, order_of_sequence([facts.n, *order]))
    if rules is not None:
        _choose(world, spec, rules)
    for check in spec.checks if only is None else only:
        if not check.flag and not is_satisfied(world, check):
            if rules is not None and rules.beyond:
                raise NotCertifiedError(
                    f"not certified by definition: no rule for everything ({rules.beyond})"
                )
            raise CertificateRejected(f"check {check.name}: the witness has a violating cycle")
    return world


def _choose(world: ConcreteInterpretation, spec: Spec, rules: Rules) -> None:
    """Extend the version orders to an order of all transactions, and store that order in ``world``.

    Relations chosen by the spec within the order are also set. A mistake in this function cannot
    make the checker accept a wrong witness, because the spec's bounds and checks are evaluated on
    the relations set here.
    """
    values = least_values(rules, spec.exists, world.t0, world.transactions)
    before = world.relation("ww")
    pairs = ((i, j) for i, row in before.items() for j in bits(row))
    values[rules.order] = with_pairs(values[rules.order], pairs)
    if not rules.extend(world, values):
        raise CertificateRejected(
            f"check {rules.order}: the witness has a violating cycle, by what it must contain"
        )
    least = values[rules.order]
    theorem = event_graph_form(spec)
    if theorem is not None:
        # In the theorem's form, the spec states additional pairs that the order must contain
        # because it is total.
        (form,) = theorem.spec.checks
        if not is_satisfied(world, form):
            raise CertificateRejected(f"check {form.name}: the witness has a violating cycle")
        least = union((least, world.value(form.expr)))
    values[rules.order] = order_of_sequence(linear_extension(least, world.transactions))
    rules.extend(world, values, fixed=True)
    for exists in spec.exists:
        if exists.name in rules.chosen:
            over = world.value(exists.over)
            if wrong := bounds_violation(world, exists, {}, over, values[exists.name]):
                raise CertificateRejected(f"{exists.name}: {wrong}")


def included_transactions(facts: Facts, source: Sequence[int]) -> set[int]:
    """Return the transactions included by a witness.

    These are the committed transactions, and every indeterminate transaction that an included
    transaction reads from or sees in a list.
    """
    included = {t for t in range(facts.n) if facts.status[t] == COMMITTED}
    work = list(included)
    while work:
        t = work.pop()
        for op in range(facts.op_start[t], facts.op_start[t + 1]):
            if not facts.is_read(op):
                continue
            targets = facts.shown(op) if facts.is_list(op) else ()
            for u in (*targets, source[op]):
                if u == facts.n or u in included or u == NO_SOURCE:
                    continue
                if not facts.live(u):
                    raise CertificateRejected(
                        f"operation {op} reads from transaction {u}, which is not included"
                    )
                included.add(u)
                work.append(u)
    return included


def _reads(
    facts: Facts, included: set[int], source: Sequence[int], *, judges_reads: bool
) -> dict[int, int]:
    """Return the source of each external read of an included transaction, by operation."""
    reads: dict[int, int] = {}
    initial: dict[int, int] = {}  # for each key, the value returned by reads of T0's version
    for op, u in enumerate(source):
        reader = facts.txn_of[op]
        external = reader in included and facts.is_external(op)
        if judges_reads and reader in included:
            found = anomalies_of(facts, op)
            if found:
                names = ", ".join(sorted(a.name.lower().replace("_", " ") for a in found))
                raise CertificateRejected(f"operation {op} is an intrinsic anomaly: {names}")
            value = value_of_initial(facts, op)
            if value is not None and initial.setdefault(facts.key[op], value) != value:
                raise CertificateRejected(
                    f"operation {op} gives the initial version a second value"
                )
        if not external:
            if u != NO_SOURCE:
                raise CertificateRejected(
                    f"operation {op} has source {u}, "
                    "but is no external read of an included transaction"
                )
            continue
        if u == NO_SOURCE:
            if facts.has_candidate(op):
                raise CertificateRejected(f"the external read {op} has no source")
        elif not facts.may_read(op, u):
            raise CertificateRejected(
                f"the external read {op} cannot read from transaction {u} "
                f"(candidates: {facts.candidates(op)})"
            )
        else:
            reads[op] = u
    return reads


def _orders(
    facts: Facts, included: set[int], order_start: Numbers, order_txn: Numbers
) -> list[list[int]]:
    """Return, for each key, its included writers in version order."""
    starts = [int(i) for i in order_start]
    listed = [int(t) for t in order_txn]
    if len(starts) != facts.keys + 1 or starts[0] != 0 or starts[-1] != len(listed):
        raise CertificateRejected("order_start does not fit the keys and order_txn")
    orders = []
    for key in range(facts.keys):
        if starts[key] > starts[key + 1]:
            raise CertificateRejected(f"order_start decreases at key {key}")
        order = [t for t in listed[starts[key] : starts[key + 1]] if t in included]
        if sorted(order) != [t for t in facts.writers[key] if t in included]:
            raise CertificateRejected(
                f"the order of key {key} is not a permutation of its included writers"
            )
        for op in facts.list_reads(key):
            if facts.txn_of[op] in included:
                _contains(facts, order, op)
        if not agrees_with_stated(facts, key, order):
            raise CertificateRejected(
                f"the order of key {key} differs from the order that its versions state"
            )
        orders.append(order)
    return orders


def _contains(facts: Facts, order: Sequence[int], op: int) -> None:
    """Require that an order begins with the writers shown by list read ``op``, in their order."""
    shown = facts.shown_order(op)
    if list(order[: len(shown)]) != shown:
        raise CertificateRejected(
            f"the order of key {facts.key[op]} differs from the order that the list read {op} shows"
        )
