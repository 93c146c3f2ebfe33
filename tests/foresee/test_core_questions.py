"""The question about a core, and the candidate of its answer."""

import pytest

from isolang import History, Transaction, check, load_spec
from isolang.foresee.completion import Completions
from isolang.foresee.core_questions import Core, CoreQuestions
from isolang.foresee.passed import run_of
from isolang.foresee.run import INITIAL

X, Y = 0, 1


@pytest.fixture(scope="module")
def run():
    """A run after which two transactions read both keys, and each writes another one."""
    history = History.from_transactions([
        Transaction([("w", "x", 1), ("w", "y", 1)], session="a"),
        Transaction([("r", "x", 1), ("r", "y", 1), ("w", "y", 2)], session="a"),
        Transaction([("r", "x", 1), ("r", "y", 2), ("w", "x", 2)], session="b"),
    ])  # fmt: skip
    return run_of(check(history, "ser"), serial=True)


@pytest.fixture(scope="module")
def completions():
    """Questions what si allows and ser forbids."""
    return Completions(load_spec("si"), load_spec("ser"))


@pytest.mark.parametrize("stranger", [2, None], ids=["one stranger", "same statements"])
def test_a_question_and_its_answer(run, completions, stranger):
    """The only answer is write skew: both transactions read what the first one wrote."""
    questions = CoreQuestions(run, completions)
    core = Core(members=(1, 2), keys=(X, Y), context=0b001)
    question = questions.question(core, stranger)
    first, second = (("r", X), ("r", Y), ("w", Y)), (("r", X), ("r", Y), ("w", X))
    assert [set(steps) for steps in question.steps] == [set(first), set(second)]
    # Versions of the context are the initial ones of a question; the stranger's reads are open.
    assert question.sources == ((INITIAL, INITIAL) if stranger else None, None)
    answer = completions.answer(question)
    assert answer.sources == ((INITIAL, INITIAL), (INITIAL, INITIAL))
    candidate, who = questions.candidate(core, stranger, answer)
    assert [*who] == [0, 1, 2]
    assert (candidate.stranger, candidate.sources) == (2, (0, 0))
    assert (candidate.overlooked, candidate.path, candidate.members) == (1, (1,), 0b011)
    # The transactions of the other candidate read other versions, but from this arrangement.
    assert candidate.changed() == ((1,) if stranger else ())
