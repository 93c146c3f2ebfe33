"""The smallest history that one check of a specification forbids, and no other check does."""

from __future__ import annotations

from msgspec.structs import replace

from isolang.comparison.compare import Half, half
from isolang.comparison.effort import OF_MANY, Effort
from isolang.comparison.normal import normal
from isolang.comparison.separate import Bounds
from isolang.language.load import load_spec
from isolang.language.meaning.core import Check, Spec

# A specification that allows everything: sessions are orders as they are.
_ANYTHING = 'spec anything "anything"\n\ninclude "adya.iso"\n\nacyclic so as anything\n'


def smallest_forbidden(spec: Spec, check: Check) -> Half:
    """The smallest history that a check forbids and the others allow.

    Args:
        spec: the specification.
        check: one of its checks.

    Returns:
        Its witness; or a proof that the others imply the check; or how far was looked.

    Raises:
        SpecError: the specification speaks of what small histories do not have.
        DisagreementError: the engine does not confirm the history.

    >>> from isolang.language.load import load_spec
    >>> spec = load_spec("si")
    >>> smallest_forbidden(spec, spec.checks[0]).witness.violation.violation.anomaly
    'G-single-session'
    """
    others = tuple(one for one in spec.checks if one is not check)
    rest = load_spec(_ANYTHING)
    if others:
        rest = replace(spec, checks=others, name=f"{spec.name} without {check.name}")
    return half(normal(rest), normal(spec), bounds=Bounds(), effort=Effort(OF_MANY))
