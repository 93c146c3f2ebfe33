"""Finds the smallest history forbidden by only one check of a specification."""

from __future__ import annotations

from msgspec.structs import replace

from isolang.comparison.compare import Implication, decide_implication
from isolang.comparison.effort import OF_MANY, Effort
from isolang.comparison.normal import normal
from isolang.comparison.separate import Bounds
from isolang.language.load import load_spec
from isolang.language.meaning.core import Check, Spec

# A specification that allows every history, because `so` is always acyclic.
_ALLOWS_ALL = 'spec anything "anything"\n\ninclude "adya.iso"\n\nacyclic so as anything\n'


def smallest_forbidden(spec: Spec, check: Check) -> Implication:
    """Find the smallest history that one check forbids and all other checks allow.

    Returns:
        The history; or a proof that the other checks imply this one, so that no such history
        exists; or the size up to which the search found none.

    Raises:
        SpecError: if the specification uses a relation that small histories lack.
        DisagreementError: if the engine does not confirm the history.

    >>> from isolang.language.load import load_spec
    >>> spec = load_spec("si")
    >>> smallest_forbidden(spec, spec.checks[0]).witness.violation.violation.anomaly
    'G-single-session'
    """
    others = tuple(one for one in spec.checks if one is not check)
    rest = load_spec(_ALLOWS_ALL)
    if others:
        rest = replace(spec, checks=others, name=f"{spec.name} without {check.name}")
    return decide_implication(normal(rest), normal(spec), bounds=Bounds(), effort=Effort(OF_MANY))
