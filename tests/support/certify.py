"""A small solver that produces certificates, to test the certificate checkers.

The solver tries all choices, evaluates expressions as sets of pairs, and writes certificates. It
shares neither the products nor the propagation with the checkers that it tests.
"""

from itertools import permutations, product

from isolang._native import verify_refutation
from isolang.certify.anomalies import anomalies_of, are_incompatible
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.facts import Facts
from isolang.certify.native import check_natively, native_checks
from isolang.certify.proofs import check_proof
from isolang.certify.refutation import check_refutation
from isolang.history import History, Transaction
from isolang.language.meaning.core import Check, Opt, Plus, Rel, Seq, Spec, Star, Union

so, rt, wr, ww, rw, init = (Rel(name) for name in ("so", "rt", "wr", "ww", "rw", "init"))


def some_strategy(history):
    """Return a strategy of the engine, chosen by the number of operations in the history.

    One of the two strategies starts to search before pruning is complete; the other does not.
    """
    return ("auto", "cdcl")[len(history.columns.op_kind) % 2]


def spec(*checks, name="test"):
    """Return a specification with these checks, each given as a pair (kind, expression)."""
    return Spec(
        name=name,
        title="",
        source="<text>",
        checks=tuple(
            Check(name=f"c{i}", kind=kind, expr=expr) for i, (kind, expr) in enumerate(checks)
        ),
        texts={"main": "spec test"},
    )


def acyclic(expr):
    return spec(("acyclic", expr))


SER = acyclic(Union((so, wr, ww, rw)))
SI = acyclic(Seq((Union((so, wr, ww)), Opt(rw))))
PC = acyclic(Union((Seq((Union((so, wr)), Opt(rw))), ww)))
SSER = acyclic(Union((so, rt, wr, ww, rw)))
PL1 = acyclic(ww)
PSI = spec(("irreflexive", Seq((Plus(Union((so, wr, ww))), Opt(rw)))))
RA = spec(("acyclic", Union((so, wr, ww))), ("irreflexive", Seq((Union((so, wr)), rw))))
INNER_LOOP = acyclic(Seq((Star(so), Plus(Union((wr, ww))), rw)))
TWO_RW = acyclic(Seq((wr, Opt(ww), rw, rw)))
LEVELS = {
    "SER": SER,
    "SI": SI,
    "PC": PC,
    "SSER": SSER,
    "PL1": PL1,
    "PSI": PSI,
    "RA": RA,
    "INNER_LOOP": INNER_LOOP,
    "TWO_RW": TWO_RW,
}


def txn(text, session=0, status="committed", begin=None, end=None):
    """Parse a transaction such as ``w(x,1) r(y,nil) a(z,2) r(z,[1 2]) r(x,?) in(x,[1 nil])``.

    A ``!`` before an operation, as in ``!w(x,3)``, marks the operation as failed.
    """
    ops, failed = [], []
    for i, word in enumerate(text.replace(", ", ",").split(") ")):
        bad, body = word.startswith("!"), word.lstrip("!").rstrip(")")
        kind, rest = body.split("(")
        key, value = rest.split(",", 1)
        if bad:
            failed.append(i)
        ops.append((_KINDS.get(kind, kind), key, _value(value)))
    return Transaction(
        ops=ops, session=session, status=status, begin=begin, end=end, failed=tuple(failed)
    )


_KINDS = {"a": "append", "in": "r-in", "out": "r-not-in"}


def _value(text):
    from isolang.history import UNKNOWN

    if text == "nil":
        return None
    if text == "?":
        return UNKNOWN
    if text.startswith("["):
        return [None if i == "nil" else int(i) for i in text.strip("[]").split()]
    return int(text)


def history(*transactions, **options):
    return History.from_transactions(transactions, **options)


class World:
    """One choice of sources and version orders for a history, with relations as sets of pairs."""

    def __init__(self, facts, source, orders):
        self.facts, self.source, self.orders = facts, source, orders
        n = facts.n
        self.included = included_transactions(facts, source)
        members = sorted(self.included)
        self.edges = []  # (relation, a, b, key, op, writer)
        for a in (*members, n):
            for b in members:
                if a != b:
                    for name in ("so", "rt", "init"):
                        if getattr(facts, name)(a, b):
                            self.edges.append((name, a, b, -1, -1, -1))
        full = [[n, *(t for t in order if t in self.included)] for order in orders]
        for key, order in enumerate(full):
            for i, a in enumerate(order):
                self.edges += [("ww", a, b, key, -1, -1) for b in order[i + 1 :]]
        for op, u in enumerate(source):
            reader, key = facts.txn_of[op], facts.key[op]
            if u == -1 or reader not in self.included:
                continue
            self.edges.append(("wr", u, reader, key, op, -1))
            at = full[key].index(u)
            self.edges += [
                ("rw", reader, b, key, op, u) for b in full[key][at + 1 :] if b != reader
            ]

    def pairs(self, e):
        """The pairs of an expression, the identity left to the caller through ``None``."""
        everyone = {(t, t) for t in (*self.included, self.facts.n)}
        if isinstance(e, Rel):
            return {(a, b) for name, a, b, *_ in self.edges if name == e.name}
        if isinstance(e, Union):
            return set().union(*(self.pairs(p) for p in e.parts))
        if isinstance(e, Seq):
            result = everyone
            for part in e.parts:
                result = compose(result, self.pairs(part))
            return result
        if isinstance(e, Opt):
            return self.pairs(e.arg) | everyone
        if isinstance(e, (Plus, Star)):
            closed = closure(self.pairs(e.arg))
            return closed | everyone if isinstance(e, Star) else closed
        raise TypeError(e)

    def broken_check(self, s):
        for check in s.checks:
            found = self.pairs(check.expr)
            if check.kind == "acyclic":
                found = closure(found)
            if any(a == b for a, b in found):
                return check
        return None

    def cycle(self, check):
        """Return the edges of a shortest closed walk that violates a check."""
        labels, follow, accepting = positions_of(check.expr)
        again = check.kind == "acyclic"
        for start in sorted(self.included):
            seen = {(start, 0): None}
            queue = [(start, 0)]
            for t, q in queue:
                states = [q, 0] if again and q in accepting else [q]
                for edge in self.edges:
                    if edge[1] != t:
                        continue
                    for state in states:
                        for p in follow[state]:
                            if labels[p] != edge[0]:
                                continue
                            if edge[2] == start and p in accepting:
                                walk, at = [edge], (t, q)
                                while seen[at] is not None:
                                    before, step = seen[at]
                                    walk.append(step)
                                    at = before
                                return walk[::-1]
                            if (edge[2], p) not in seen:
                                seen[edge[2], p] = ((t, q), edge)
                                queue.append((edge[2], p))
        return None


def positions_of(expr):
    """Return the position automaton of an expression (V. Glushkov, 1961).

    The result consists of the labels of the positions, their successors, and the accepting
    positions.
    """
    labels, follow = [""], [set()]

    def build(e):  # whether `e` matches the empty word, its first positions, its last positions
        if isinstance(e, Rel):
            labels.append(e.name)
            follow.append(set())
            return False, {len(labels) - 1}, {len(labels) - 1}
        if isinstance(e, Union):
            empty, first, last = zip(*map(build, e.parts), strict=True)
            return any(empty), set().union(*first), set().union(*last)
        if isinstance(e, Seq):
            empty, first, last = True, set(), set()
            for part in e.parts:
                may_skip, begins, ends = build(part)
                for p in last:
                    follow[p] |= begins
                first |= begins if empty else set()
                last = last | ends if may_skip else ends
                empty = empty and may_skip
            return empty, first, last
        empty, first, last = build(e.arg)
        if not isinstance(e, Opt):
            for p in last:
                follow[p] |= first
        return empty or not isinstance(e, Plus), first, last

    _, follow[0], accepting = build(expr)
    return labels, follow, accepting


def compose(a, b):
    after = {}
    for x, y in b:
        after.setdefault(x, set()).add(y)
    return {(x, z) for x, y in a for z in after.get(y, ())}


def closure(pairs):
    while True:
        more = pairs | compose(pairs, pairs)
        if more == pairs:
            return pairs
        pairs = more


def included_transactions(facts, source):
    included = {t for t in range(facts.n) if facts.status[t] == 0}
    while True:
        more = set(included)
        for op in range(facts.operations):
            if facts.txn_of[op] in included and facts.is_read(op):
                more |= {source[op]} - {-1, facts.n}
                if facts.is_list(op):
                    more |= set(facts.shown(op)) - {facts.n}
        if more == included:
            return included
        included = more


def worlds(h):
    """Yield every combination of a source for each read and an order for each key."""
    facts = Facts(h)
    reads = [op for op in range(facts.operations) if facts.is_external(op)]
    choices = [facts.candidates(op) or [-1] for op in reads]
    orders = [list(permutations(w)) for w in facts.writers]
    for picked in product(*choices):
        source = [-1] * facts.operations
        for op, u in zip(reads, picked, strict=True):
            source[op] = u
        included = included_transactions(facts, source)
        # If a read has no candidates and the level judges reads, the caller skips the world.
        source = [u if facts.txn_of[op] in included else -1 for op, u in enumerate(source)]
        for order in product(*orders):
            yield World(facts, source, [list(o) for o in order])


def contains_list_orders(world):
    """Return whether the version orders contain ``vo``, the order that list reads show."""
    facts = world.facts
    for key in range(facts.keys):
        order = [facts.n, *(t for t in world.orders[key] if t in world.included)]
        at = {t: i for i, t in enumerate(order)}
        for op in facts.list_reads(key):
            if facts.txn_of[op] not in world.included:
                continue
            shown = facts.shown(op)
            merged = [t for i, t in enumerate(shown) if i == 0 or shown[i - 1] != t]
            where = [at[t] for t in merged]
            if where != sorted(where) or len(set(where)) < len(where):
                return False
            if where and any(at[t] < where[-1] for t in order[1:] if t not in merged):
                return False
    return True


def witness_arrays(world):
    """Return the arrays of a witness: the sources, where each order starts, and the orders."""
    start, flat = [0], []
    for order in world.orders:
        flat += [t for t in order if t in world.included]
        start.append(len(flat))
    return world.source, start, flat


def decide(h, s, *, judges_reads=True):
    """Return a witness and no cycles; if none exists, ``None`` and one violating cycle per world.

    The cycles have the form of refutation steps, from which :func:`refute` builds a refutation.
    """
    cycles = []
    for world in worlds(h):
        facts = world.facts
        if not contains_list_orders(world):
            continue
        reads = [op for op in range(facts.operations) if facts.txn_of[op] in world.included]
        if judges_reads and any(anomalies_of(facts, op) for op in reads):
            continue
        check = world.broken_check(s)
        if check is None:
            return world, []
        edges = world.cycle(check)
        assert edges is not None, "sets of pairs and automaton disagree"
        cycles.append(("cycle", check.name, edges))
    return None, cycles


def literals_of(h, cycles):
    """Return a literal for each possible source, order of two writers, and inclusion."""
    facts = Facts(h)
    found = []
    for op in range(facts.operations):
        if facts.is_external(op):
            found += [("source", op, u) for u in facts.candidates(op)]
    for key in range(facts.keys):
        found += [
            ("before", key, a, b) for a in facts.writers[key] for b in facts.writers[key] if a < b
        ]
    found += [("in", t) for t in range(facts.n) if facts.status[t] == 2]
    return found


def refute(h, s, cycles, accepts):
    """Return a refutation by case splits; ``None`` if the search finds none.

    The function ``accepts(steps)`` says whether all steps hold. Every node of the tree of cases
    becomes a rup step. A node is a leaf if its step is accepted without further splits.
    """
    facts = Facts(h)
    steps = []
    for op in range(facts.operations):
        if facts.is_read(op):
            for kind in sorted(anomalies_of(facts, op)):
                steps.append(("anomaly", int(kind), facts.txn_of[op], op, -1, -1))
            for other in range(op):
                if are_incompatible(facts, op, other):
                    steps.append(("anomaly", 6, facts.txn_of[op], op, facts.txn_of[other], other))
            if facts.is_external(op):
                steps.append(("choice", op))
    for key in range(facts.keys):
        for size in range(3, len(facts.writers[key]) + 1):
            steps += [("order", key, list(p)) for p in permutations(facts.writers[key], size)]
    seen = []
    for cycle in cycles:
        if cycle not in seen:
            seen.append(cycle)
    steps += seen
    variables = literals_of(h, cycles)

    def close(assumed, rest):
        clause = ("rup", [(not value, literal) for value, literal in assumed])
        if accepts([*steps, clause]):
            steps.append(clause)
            return True
        if not rest:
            return False
        for value in (True, False):
            if not close([*assumed, (value, rest[0])], rest[1:]):
                return False
        steps.append(clause)
        return True

    return steps if close([], variables) else None


#: The result of :func:`both` for a witness that is too large for the checker by definition.
TOO_MANY_BY_DEFINITION = ("not certified", "accepted")


def verdicts_of_both(h, s, proof):
    """Return the verdicts of the Python checker and of the native checker on a proof.

    A list is taken as a refutation in the form of plain steps.
    """
    return _verdict(_check_in_python, h, s, proof), _verdict(_check_natively, h, s, proof)


def is_accepted_by_both(h, s, proof):
    """Return whether both checkers accept a proof; fail if their verdicts differ."""
    says = []
    for checker in (check_natively, check_proof):
        try:
            checker(h, s, proof)
        except CertificateRejected:
            says.append(False)
        else:
            says.append(True)
    assert says[0] == says[1], f"native: {says[0]}, Python: {says[1]}"
    return says[0]


def _check_in_python(h, s, proof):
    if isinstance(proof, list):
        check_refutation(h, s, proof)
    else:
        check_proof(h, s, proof)


def _check_natively(h, s, proof):
    if not isinstance(proof, list):
        check_natively(h, s, proof)
        return
    reason = verify_refutation(h.columns, native_checks(s), proof)
    if reason:
        raise (NotCertifiedError if reason.startswith("not certified") else CertificateRejected)(
            reason
        )


def _verdict(check, *arguments):
    try:
        check(*arguments)
    except CertificateRejected:
        return "rejected"
    except NotCertifiedError:
        return "not certified"
    return "accepted"


def prefix_holds(h, s):
    """Return a function for :func:`refute` that says whether all steps hold.

    Unlike in a complete refutation, the last step need not be the empty clause.
    """

    def accepts(steps):
        reason = verify_refutation(h.columns, native_checks(s), steps)
        return reason in ("", "the last step is not the empty clause")

    return accepts
