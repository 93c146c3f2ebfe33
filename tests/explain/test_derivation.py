"""Arguments: whatever clauses they are made from, each lemma follows and each end contradicts."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolang.certify.steps import Before, ChoiceStep, CycleStep, Edge, Source
from isolang.explain.argument import (
    CaseSplit,
    Clause,
    Contradiction,
    Derived,
    canonical_literal,
    negate,
)
from isolang.explain.derivation import Reasoner, TooLongError

LITERALS = [Before(0, 1, 2), Before(0, 2, 3), Before(1, 1, 4), Source(5, 1), Source(5, 2)]


def cycle_clause(literals):
    """A clause that is some cycle's; which one does not matter here."""
    return Clause(tuple(literals), CycleStep("C", (Edge("so", 1, 2),)), 1.0 + len(literals))


clauses = st.lists(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from(LITERALS)), min_size=1, max_size=3, unique=True
    ).map(cycle_clause),
    max_size=10,
)


def satisfiable(clauses):
    """Brute force over all assignments."""
    for values in product((False, True), repeat=len(LITERALS)):
        assigned = dict(zip(LITERALS, values, strict=True))
        if all(any(assigned[x] == positive for positive, x in c.literals) for c in clauses):
            return True
    return False


def check(argument, known):
    """Fail unless the argument holds, given what is known."""
    known = set(known)
    for lemma in argument.lemmas:
        if isinstance(lemma, Derived):
            assert lemma.literal in lemma.clause.literals
            assert {negate(x) for x in lemma.clause.literals} - {negate(lemma.literal)} <= known
        else:
            check(lemma.otherwise, known | {negate(lemma.literal)})
        known.add(lemma.literal)
    if isinstance(argument.end, Contradiction):
        assert {negate(x) for x in argument.end.clause.literals} <= known
        return
    cases = [case for case, _ in argument.end.cases]
    if argument.end.choice is None:
        assert len(cases) == 2
        assert cases[0] == negate(cases[1])
    for case, against in argument.end.cases:
        check(against, known | {case})


@pytest.mark.slow
@given(clauses)
@settings(max_examples=300, deadline=None)
def test_arguments_hold(clauses):
    """Contradictory clauses get an argument that holds; others get none."""
    reasoner = Reasoner(clauses, lambda literal: None, 400)
    if satisfiable(clauses):
        with pytest.raises(TooLongError):
            reasoner.argue()
    else:
        check(reasoner.argue(), set())


def test_either_order():
    """Two cycles, one for each order, become a case split and no lemma."""
    one = cycle_clause([canonical_literal(False, Before(0, 1, 2))])
    other = cycle_clause([canonical_literal(False, Before(0, 2, 1))])
    argument = Reasoner([one, other], lambda literal: None, 50).argue()
    assert argument.lemmas == ()
    assert isinstance(argument.end, CaseSplit)
    assert {case for case, _ in argument.end.cases} == {
        (True, Before(0, 1, 2)),
        (False, Before(0, 1, 2)),
    }


def test_one_of_these_sources():
    """A choice whose every source is a cycle becomes a case for each source."""
    choice = Clause(tuple((True, Source(5, t)) for t in (1, 2, 3)), ChoiceStep(5), 1.0)
    cycles = [cycle_clause([(False, Source(5, t))]) for t in (1, 2, 3)]
    argument = Reasoner([choice, *cycles], lambda literal: None, 50).argue()
    assert isinstance(argument.end, CaseSplit)
    assert argument.end.choice == ChoiceStep(5)
    assert [case for case, _ in argument.end.cases] == list(choice.literals)


def test_the_cheapest_cycle_ends_the_argument():
    """Of two cycles that both contradict the facts, the shorter one is shown."""
    short = Clause((), CycleStep("short", ()), 2.0)
    long = Clause((), CycleStep("long", ()), 3.0)
    argument = Reasoner([long, short], lambda literal: None, 50).argue()
    assert argument.end == Contradiction(short)


def test_facts_need_no_lemma():
    """What the history says is no step of the argument."""
    clause = cycle_clause([canonical_literal(False, Before(0, 1, 2))])
    argument = Reasoner([clause], lambda literal: True, 50).argue()
    assert argument.lemmas == ()
    assert argument.end == Contradiction(clause)


def test_attempts_are_bounded():
    """Pigeons: five in four holes is too long an argument for three attempts."""
    holes, pigeons = range(4), range(5)
    somewhere = [Clause(tuple((True, Source(p, h)) for h in holes), None, 1.0) for p in pigeons]
    alone = [
        Clause(((False, Source(p, h)), (False, Source(q, h))), None, 1.0)
        for h in holes
        for p in pigeons
        for q in pigeons
        if p < q
    ]
    with pytest.raises(TooLongError):
        Reasoner([*somewhere, *alone], lambda literal: None, 3).argue()
