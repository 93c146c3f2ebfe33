"""Histories of more sessions than the clocks have columns for: clients that lost a connection."""

import pytest
from support.certify import check_natively

import isolang
from isolang.api import load_spec
from isolang.certify.errors import CertificateRejected
from isolang.simulator import Workload, generate


def many_sessions(*bugs):
    """Each unknown outcome ends a session: there are some 1,200, most of a few transactions."""
    return generate(
        Workload(
            rule="serializable",
            bugs=bugs,
            transactions=3000,
            keys=60,
            operations=6,
            info_rate=0.4,
            seed=5,
        )
    )


@pytest.mark.parametrize(
    ("bug", "violated", "held"),
    [
        ("write skew", "ser", "si"),
        ("long fork", "si", "psi"),
        ("lost update", "psi", "cc"),
        ("lost session guarantee", "cc", "cc-nosession"),
        ("fractured read", "cc-nosession", "pl-2"),
    ],
)
def test_what_is_planted_is_found(bug, violated, held):
    """And the witness of a level that holds is none of the one that does not."""
    history = many_sessions(bug)
    verdict = isolang.check(history, violated)
    assert (verdict.outcome, verdict.certified) == ("invalid", True)
    verdict = isolang.check(history, held)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    with pytest.raises(CertificateRejected):
        check_natively(history, load_spec(violated), verdict.witness)


@pytest.mark.parametrize("level", ["ser", "psi", "cc", "pl-3"])
def test_chains_go_on_at_whatever_their_ends_reach(level):
    """There are fewer of them than of sessions, and what they tell is right."""
    verdict = isolang.check(many_sessions(), level)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    assert verdict.statistics["chains"] <= 512
