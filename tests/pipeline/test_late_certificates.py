"""A verdict that was found is given, whatever becomes of its certificate."""

from __future__ import annotations

import time

import pytest
from oracle.history import parse
from oracle.pipeline import to_tool

from isolang.api import check
from isolang.certify.errors import NotCertifiedError

VALID, INVALID = "w(x,1) -> r(x,1)", "w(x,1) w(y,1) || r(x,1) r(y,nil)"


def too_late(*_args, **_kwargs):
    time.sleep(0.6)
    raise NotCertifiedError("not certified: the time is up")


def beyond_the_deadline(*_args, **_kwargs):
    time.sleep(0.6)
    raise TimeoutError


def out_of_memory(*_args, **_kwargs):
    raise MemoryError


@pytest.mark.parametrize(
    ("fails", "why"),
    [
        (too_late, "the time is up"),
        (beyond_the_deadline, "the time limit was reached before the proof was checked"),
        (out_of_memory, "the memory limit was reached in phase certify"),
    ],
)
@pytest.mark.parametrize(("operations", "outcome"), [(VALID, "valid"), (INVALID, "invalid")])
@pytest.mark.parametrize("level", ["cc-adya", "relational"])
def test_what_ends_the_checker_does_not_end_the_verdict(
    monkeypatch, fails, why, operations, outcome, level
):
    """It is not certified, and says why."""
    relational = level == "relational"
    module = "proofs.check_proof" if relational else "native.check_natively"
    monkeypatch.setattr(f"isolang.certify.{module}", fails)
    text = 'include "adya.iso"\nempty ((so | wr) ; rw) & id as c\n'
    verdict = check(to_tool(parse(operations)), text if relational else level, timeout=0.5)
    assert (verdict.outcome, verdict.certified) == (outcome, False)
    assert why in verdict.certified_reason


def test_an_answer_that_comes_with_the_deadline_counts(monkeypatch):
    from isolang.solvers import engine

    solve = engine.solve

    def slow(*args, **kwargs):
        found = solve(*args, **kwargs)
        time.sleep(0.6)
        return found

    monkeypatch.setattr(engine, "solve", slow)
    for operations, outcome in ((VALID, "valid"), (INVALID, "invalid")):
        verdict = check(to_tool(parse(operations)), "ser", timeout=0.5)
        assert (verdict.outcome, verdict.certified) == (outcome, False)
        assert verdict.certified_reason == "the time limit was reached before the proof was checked"
