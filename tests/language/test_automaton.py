"""Which closed walks of known relations an automaton may forbid; "no" is certain."""

import itertools

import pytest

from isolang.language.classify.route import native_plan, route, without_sessions
from isolang.language.load import load_spec


def automata(level):
    return native_plan(load_spec(level)).automata


def may(level, *walk):
    return any(automaton.may_forbid(walk) for automaton in automata(level))


@pytest.mark.parametrize(
    ("level", "walk", "expected"),
    [
        ("ser", ("rw", "rw"), True),
        ("si", ("rw", "rw"), False),
        ("si", ("ww", "rw"), True),
        ("si", ("rw", "wr", "rw"), False),
        ("si", ("rw", "wr", "rw", "ww"), True),
        ("si", ("wr", "so", "so", "rw"), True),
        ("ser", ("rt", "rw"), False),
        ("sser", ("rt", "rw"), True),
        ("pl-2", ("wr", "ww"), True),
        ("pl-2", ("wr", "rw"), False),
    ],
)
def test_what_a_walk_spells(level, walk, expected):
    """Long fork and write skew are no violations of SI; no walk of PL-2 has an rw."""
    assert may(level, *walk) == expected


def test_where_a_walk_begins_does_not_matter():
    """A closed walk has no first edge."""
    for walk in itertools.product(("so", "wr", "ww", "rw"), repeat=4):
        assert may("si", *walk) == may("si", *walk[1:], walk[0]), walk


def test_a_specification_is_compiled_once():
    """However many histories it judges, also without its sessions."""
    plan = route(spec := load_spec("si"))
    assert route(spec) is plan
    assert without_sessions(plan) is without_sessions(plan)
