"""The kernel accepts what the engine proves of the litmus histories, or says why it does not."""

from collections import Counter
from functools import cache

from support.kernel import said
from support.paths import TESTS

from isolang.api import load_history
from isolang.language.library import list_library
from isolang.language.load import load_spec

EXPECTED = {
    "accepted": 3246,
    "the level chooses the relation vis": 1817,
    "the history has predicate reads": 901,
    "the relation tx": 316,
    "the relation irw": 237,
    "the relation group-rt": 158,
    "the level does not judge reads, and the history has lists": 40,
}


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


def test_every_litmus_history_at_every_level(kernel):
    """No proof is rejected; so many are accepted, and so many beyond the kernel, by reason."""
    found = Counter()
    rejected = []
    for path in sorted((TESTS / "litmus").glob("**/*.edn")):
        history = load_history(path)
        for spec in meanings():
            answer = said(history, spec)
            found[answer] += 1
            if answer.startswith("rejected") or "follow" in answer:
                rejected.append((path.name, spec.name, answer))
    assert not rejected
    assert found == EXPECTED
