"""The kernel accepts what the engine proves of the litmus histories, or says why it does not."""

from collections import Counter
from functools import cache

import pytest
from support.kernel import kernel_answer
from support.paths import TESTS
from support.sampling import quick_first

from isolang.api import load_history
from isolang.certify.kernel_text import has_lists
from isolang.language.library import list_library
from isolang.language.load import load_spec

HISTORIES = sorted((TESTS / "litmus").glob("**/*.edn"))
#: What the kernel says of the meanings that it does not know, on each history.
BEYOND = {
    "the level chooses the relation vis": 23,
    "the relation tx": 4,
    "the relation irw": 3,
    "the relation group-rt": 2,
}
NO_READS = "the level ignores reads, but the history has lists"
OF_REGISTERS = {**BEYOND, "accepted": 53}
OF_LISTS = {**BEYOND, "accepted": 48, NO_READS: 5}
OF_PREDICATES = {**BEYOND, "the history has predicate reads": 53}


@cache
def meanings():
    """The levels of the library, one of each meaning."""
    found = {}
    for entry in list_library():
        spec = load_spec(entry.name)
        checks = tuple((c.kind, c.expr, c.bound, c.flag, c.negated) for c in spec.checks)
        chosen = tuple((e.name, e.kind, e.over, e.containing, e.within) for e in spec.exists)
        found.setdefault((checks, chosen), spec)
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", quick_first(HISTORIES, 10, rest="campaign"), ids=lambda path: path.stem
)
def test_a_litmus_history_at_every_level(kernel, path):
    """No proof is rejected; so many are accepted, and so many beyond the kernel, by reason."""
    history = load_history(path)
    found = Counter(kernel_answer(history, spec) for spec in meanings())
    if history.columns.statements():
        assert found == OF_PREDICATES
    else:
        assert found == (OF_LISTS if has_lists(history) else OF_REGISTERS)


def test_the_litmus_histories_of_each_kind():
    """So the kernel accepts 3,246 verdicts, 54 times 53 and 8 times 48, of 79 times 85."""
    histories = [load_history(path) for path in HISTORIES]
    predicates = [history for history in histories if history.columns.statements()]
    lists = [history for history in histories if has_lists(history)]
    assert (len(histories), len(predicates)) == (80, 18)
    assert len([history for history in lists if history not in predicates]) == 8
