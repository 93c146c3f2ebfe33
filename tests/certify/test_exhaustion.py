"""The check that nothing can be chosen, by trying everything."""

import random
from collections import Counter

import pytest
from oracle.generate import any_history, well_formed
from oracle.history import parse, show
from oracle.pipeline import Levels, to_tool

from isolang.api import load_spec
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.exhaustion import check_exhaustion

LONG_FORK = "w(x,1) || w(y,1) || r(x,1) -> r(y,nil) || r(y,1) -> r(x,nil)"
CAUSALITY = "r(x,1) w(y,1) || r(y,1) r(x,nil) || w(x,1) || w(x,1)"


@pytest.mark.parametrize("level", ["pc-vis", "si-vis", "ser-vis"])
def test_a_long_fork_by_visibility(level):
    """What the axioms force into a relation is not tried both ways."""
    check_exhaustion(to_tool(parse(LONG_FORK)), load_spec(level), range(6))


def test_a_repeated_value_by_visibility():
    """Each of two sources of a read is refuted."""
    check_exhaustion(to_tool(parse(CAUSALITY)), load_spec("cc-vis-nosession"), range(4))


@pytest.mark.parametrize("level", ["cc-vis", "psi-vis", "si-vis", "ra-vis", "ser-co"])
def test_it_refutes_what_the_oracle_refutes(level):
    """Of small random histories: neither a choice nor a refutation is missed."""
    rng, levels, spec = random.Random(5), Levels([level]), load_spec(level)
    seen = Counter()
    for _ in range(150):
        history = any_history(rng)
        if len(history) > 4 or not well_formed(history):
            continue
        expected = levels.expected(history).get(level)
        if expected not in ("valid", "invalid"):
            continue
        try:
            members = [i for i, t in enumerate(history) if t.status != "aborted"]
            check_exhaustion(to_tool(history), spec, members)
        except CertificateRejected:
            got = "valid"
        except NotCertifiedError:
            continue
        else:
            got = "invalid"
        assert got == expected, show(history)
        seen[got] += 1
    assert len(seen) == 2
