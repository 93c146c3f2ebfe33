"""Checks a cycle step by definition: evaluates the check, as written, on the step's edges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from isolang.certify.claim import Claim, is_monotonic
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.evaluator import is_satisfied
from isolang.certify.facts import Facts
from isolang.certify.least import Rules, least_values, rules_of, with_pairs
from isolang.certify.steps import Edge
from isolang.language.meaning.core import Check, Spec

_Transactions = Iterable[tuple[int, int]]


class Cycles:
    """Decides whether closed walks violate the checks of a specification.

    Raises:
        NotCertifiedError: if the specification does not determine the meaning of the version orders
            in a proof.
    """

    def __init__(self, facts: Facts, spec: Spec) -> None:
        self._facts = facts
        self._exists = spec.exists
        self.rules = rules_of(spec)
        self._checks = {check.name: check for check in spec.checks if not check.flag}
        self._names = {*self._checks, "+".join(self._checks)}
        if self.rules is not None:
            self._names.add(self.rules.order)

    def require(self, name: str, edges: Sequence[Edge]) -> None:
        """Require that a closed walk violates the check with this name.

        Raises:
            CertificateRejected: if the walk does not violate the check.
            NotCertifiedError: if a violation on a part of a choice need not be a violation on the
                whole choice.
        """
        if name not in self._names:
            raise CertificateRejected(f"cycle: the spec has no check {name}")
        if self.rules is None:
            met = self._meets(self._checks[name], edges)
        else:
            met = self._may_be(self.rules, edges)
        if met:
            relations = " ; ".join(edge.relation for edge in edges)
            raise CertificateRejected(f"cycle: '{relations}' does not violate {name}")

    def _meets(self, check: Check, edges: Sequence[Edge]) -> bool:
        if check.negated or check.bound is not None or not is_monotonic(check.expr):
            raise NotCertifiedError(
                f"not certified by definition: check {check.name} may fail on a "
                "part although it holds on the whole"
            )
        return is_satisfied(Claim(self._facts, edges), check)

    # --- an order of all transactions ---

    def _may_be(self, rules: Rules, edges: Sequence[Edge]) -> bool:
        """Return whether the rules allow an order of all transactions with these edges."""
        if not self.may_order(rules, edges, ()):
            return False
        cases = [(a, b) for a, b, _ in self.cases(rules, edges)]
        if any(a == b for a, b in cases) or not self.may_order(rules, edges, cases):
            return False
        if rules.beyond:
            raise NotCertifiedError(
                f"not certified by definition: no rule for everything ({rules.beyond})"
            )
        return True

    def may_order(self, rules: Rules, edges: Sequence[Edge], known: _Transactions) -> bool:
        """Return whether the rules find edges and known pairs of the order consistent."""
        claim = Claim(self._facts, edges, rules.order)
        values = least_values(rules, self._exists, claim.t0, claim.everyone)
        place = claim.of_transaction
        more = [(place[a], place[b]) for a, b in known]
        values[rules.order] = with_pairs(values[rules.order], (*claim.before(), *more))
        return rules.extend(claim, values)

    def cases(
        self, rules: Rules, edges: Sequence[Edge]
    ) -> Iterator[tuple[int, int, Sequence[Edge]]]:
        """Yield pairs that a total order must contain because the reverse pair would close a loop.

        Each pair is returned with the edges that form a loop with the reverse pair. The function
        tries the ends of each stretch of the walk in which only the last edge is an ``rw``.
        """
        for i, last in enumerate(edges):
            if last.relation != "rw":
                continue
            stretch = [last]
            for j in range(1, len(edges) + 1):
                a, b = stretch[0].a, last.b
                other_way = [] if a == b else [(b, a)]
                # mutant: definition-other-way
                if not self.may_order(rules, stretch, other_way):
                    yield a, b, tuple(stretch)
                    break
                before = edges[i - j]
                if before.relation == "rw":
                    break
                stretch.insert(0, before)
