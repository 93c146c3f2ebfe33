"""Makes the verdict proved by an accepted certificate, without a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from isolang.certify.proofs import Exhaustion, Refutation, Relations, Witness
from isolang.problem import build_problem
from isolang.verdict import Invalid, Valid

if TYPE_CHECKING:
    from isolang.certify.certificate import Certificate
    from isolang.certify.verification import Acceptance
    from isolang.history.history import History
    from isolang.language.meaning.core import Spec


def verdict_of(
    certificate: Certificate, history: History, spec: Spec, accepted: Acceptance
) -> Valid | Invalid:
    """Return the verdict proved by a certificate, with a new explanation."""
    who = f"accepted by: {accepted}"
    match certificate.proof:
        case Witness() | Relations() as witness:
            return Valid(
                history=history, spec=spec, witness=witness, certified=True, certified_reason=who
            )
        case Refutation() as refutation:
            from isolang.explain.explain import explain

            violation = explain(build_problem(history), refutation.steps)
        case Exhaustion() as refutation:
            from isolang.explain.exhausted import explain_exhausted

            checks = [check.name for check in spec.checks]
            violation = explain_exhausted(
                build_problem(history), refutation.transactions, checks, spec
            )
        case _:
            assert_never(certificate.proof)
    return Invalid(
        history=history,
        spec=spec,
        violation=violation,
        refutation=refutation,
        certified=True,
        certified_reason=who,
    )
