"""A level of the library that said something else would be noticed: a slice of
`benchmarks/spec_mutants.py`.
"""

from __future__ import annotations

import pytest
from oracle.spec_mutants import EQUIVALENT, Judge, equivalent, litmus, mutants
from support.sampling import quick_first

from isolang.language.load import load_spec


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    quick_first(
        ["si", "ser", "pl-2", "rc", "ra", "cc", "pc", "psi", "sser-co"], 3, rest="campaign"
    ),
)
def test_every_mutant_of_a_level_is_caught(name: str) -> None:
    judge = Judge(name, samples=100)
    changed = list(mutants(judge.spec))
    assert len(changed) > 5
    left = [m.what for m in changed if not judge.caught(m) and not equivalent(name, m)]
    assert left == []


def test_mutants_are_different_texts() -> None:
    spec = load_spec("si-co")
    texts = [mutant.what for mutant in mutants(spec)]
    assert len(texts) > 30
    assert "without prefix" in texts
    assert any(text.startswith("exists co : order on T containing wr | vo") for text in texts)


@pytest.mark.slow
def test_the_level_itself_is_not_caught() -> None:
    """Its verdicts are not told apart from those of the same level in another style."""
    for name, same in (("si", "si-co"), ("cc", "cc-adya")):
        judge = Judge(name, samples=50)
        assert judge.differs(load_spec(same)) == ""
    assert len(litmus()) > 40


def test_reasons_are_given() -> None:
    assert all(reason for _, _, reason in EQUIVALENT)
