"""What a court may rule on which evidence: no acquittal stands against a doubt."""

from types import SimpleNamespace

import pytest

from isolang.court.ruling import Evidence, PlayedViolation, exit_code_of, rule
from isolang.explain.harm import Harm

VERDICT = SimpleNamespace(violation=SimpleNamespace(anomaly="lost update"))


def evidence(**more):
    """A complete search for two calls."""
    settings = {"recorded": 2, "played": 4, "possible": 4, "transactions": [1, 1]}
    return Evidence(**(settings | more))


def violation(kind):
    """A violation of some harm."""
    harm = Harm(kind=kind, why="x", order=("a", "b"))
    return PlayedViolation(played=None, verdict=VERDICT, harm=harm)


def test_a_complete_search_acquits():
    """It says what it does not cover."""
    ruling = rule(evidence())
    assert (ruling.standing, exit_code_of([ruling])) == ("acquitted", 0)
    assert "this state was complete" in ruling.ground
    assert "branches" in dict(ruling.notes)["not covered"]


def test_robust_programs_are_acquitted_under_conditions():
    """However many calls there are, and whatever was played."""
    ruling = rule(evidence(robust=("no other program",), transactions=[1, 1, 1], played=0))
    assert (ruling.standing, ruling.notes) == ("acquitted", (("only if", "no other program"),))


@pytest.mark.parametrize(
    ("more", "standing", "word"),
    [
        ({"transactions": [1, 1, 1]}, "not convicted", "only for two"),
        ({"transactions": [1, 2]}, "not convicted", "several transactions"),
        ({"transactions": [1, 2], "robust": ("x",)}, "not convicted", "several transactions"),
        ({"played": 3}, "not convicted", "3 of 4"),
        ({"undecided": ["bob sent nothing for 2 s"]}, "not convicted", "bob sent nothing"),
        ({"looking_away": ["SELECT … SKIP LOCKED"]}, "not convicted", "locks of others"),
        ({"writes": False}, "not convicted", "no call wrote anything"),
        ({"writes": False, "robust": ("x",)}, "not convicted", "no call wrote anything"),
        ({"played": 0, "possible": 0, "at_once": ["x"]}, "not convicted", "no call can be held"),
        ({"at_once": ["UPDATE job …"]}, "not convicted", "its COMMIT: UPDATE job"),
        ({"together": ["SELECT 2"]}, "not convicted", "sent with others: SELECT 2"),
        ({"deadlocks": True}, "not convicted", "deadlock"),
        ({"unseen": ["functions"]}, "unknown", "functions"),
        ({"unseen": ["functions"], "robust": ("x",)}, "unknown", "functions"),
        ({"strange": [Harm(kind="harmful")]}, "unknown", "harmful"),
        ({"strange": [Harm(kind="harmful")], "robust": ("x",)}, "unknown", "harmful"),
        ({"failures": [Harm(kind="answers differ")]}, "not convicted", "answers differ"),
        (
            {"failures": [Harm(kind="answers differ")], "robust": ("x",)},
            "not convicted",
            "answers differ",
        ),
        ({"violations": [violation("harmless")]}, "not convicted", "harmless with this data"),
        (
            {"violations": [violation("harmless")], "robust": ("x",)},
            "not convicted",
            "harmless with this data",
        ),
        ({"violations": [violation("unknown")]}, "not convicted", "harm unknown"),
        ({"violations": [violation("harmful")]}, "proved", "harmful"),
        (
            {"violations": [violation("harmless"), violation("harmful")], "unseen": ["x"]},
            "proved",
            "harmful",
        ),
    ],
)
def test_a_doubt_stands_against_an_acquittal(more, standing, word):
    """And the ruling says which."""
    ruling = rule(evidence(**more))
    assert ruling.standing == standing
    assert word in " ".join([ruling.ground, *(text for _, text in ruling.notes)])
    assert exit_code_of([ruling, rule(evidence())]) == (1 if standing == "proved" else 3)


def test_rows_that_others_lock_are_not_decided():
    """A queue that skips locked rows may be robust, and finds other rows than in every order."""
    ruling = rule(evidence(robust=("x",), looking_away=["SELECT … SKIP LOCKED"]))
    assert ruling.standing == "acquitted"
    assert "SKIP LOCKED" in dict(ruling.notes)["not decided"]


def test_a_call_that_was_rolled_back_is_named():
    """It counts as not made, also for those who read only the ruling."""
    ruling = rule(evidence(refused={"buy bob"}))
    assert ruling.standing == "acquitted"
    assert "buy bob" in dict(ruling.notes)["rolled back"]
