"""Evidence of an inclusion: what shows it is accepted, and nothing that was changed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from isolang.comparison.inclusion import STUCK, holds, prove
from isolang.comparison.normal import normal
from isolang.comparison.walks import prove_implication
from isolang.language.classify.regular import Dfa
from isolang.language.load import load_spec

AB = Dfa(({"a": 1}, {"b": 2}, {}), frozenset((2,)))  # ab
AB_PLUS = Dfa(({"a": 1}, {"b": 2}, {"a": 1}), frozenset((2,)))  # (ab)+


def test_an_inclusion_has_evidence_and_its_converse_none():
    found = prove(AB, AB_PLUS)
    assert found is not None
    assert holds(found)
    assert prove(AB_PLUS, AB) is None


def test_evidence_without_a_pair_that_is_reached_shows_nothing():
    found = prove(AB, AB_PLUS)
    for pair in found.pairs:
        assert not holds(replace(found, pairs=found.pairs - {pair}))


def test_evidence_about_states_that_there_are_not_shows_nothing():
    found = prove(AB, AB_PLUS)
    assert not holds(replace(found, pairs=found.pairs | {(7, 0)}))
    assert not holds(replace(found, pairs=found.pairs | {(0, 7)}))
    assert not holds(replace(found, pairs=found.pairs | {(2, STUCK)}))


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [("ser", "si"), ("si", "psi"), ("cc", "mr"), ("pc-co", "cc-vis")],
)
def test_proofs_of_the_library_do_not_survive_a_change_of_an_automaton(stronger, weaker):
    """A step less on the right side, or a word more on the left side, and the evidence is refused.

    Steps of the right side that the evidence never takes may go.
    """
    proof = prove_implication(normal(load_spec(stronger)), normal(load_spec(weaker)))
    inclusions = [step.inclusion for step in proof.steps if step.inclusion is not None]
    assert inclusions
    refused = 0
    for claim in inclusions:
        assert holds(claim)
        left, right = claim.left, claim.right
        for q, row in enumerate(right.moves):
            for letter in row:
                taken = any(r == q and letter in left.moves[p] for p, r in claim.pairs)
                rows = [dict(one) for one in right.moves]
                del rows[q][letter]
                mutant = replace(claim, right=Dfa(tuple(rows), right.final))
                assert holds(mutant) == (not taken)
                refused += taken
        for p in set(range(len(left.moves))) - left.final:
            if any(r not in right.final for s, r in claim.pairs if s == p):
                assert not holds(replace(claim, left=Dfa(left.moves, left.final | {p})))
                refused += 1
        for q in right.final:
            fewer = Dfa(right.moves, right.final - {q})
            if any(r == q and p in left.final for p, r in claim.pairs):
                assert not holds(replace(claim, right=fewer))
                refused += 1
    assert refused
