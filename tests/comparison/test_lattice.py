"""The lattice of the library, and the place of a specification in it."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from support.paths import ROOT
from support.sampling import quick_first

from isolang.api import check
from isolang.comparison.lattice import implication_order, lattice, library_levels, place
from isolang.comparison.normal import normal
from isolang.comparison.separate import Bounds
from isolang.history.notation import read_line
from isolang.language.hierarchy import IMPLIES
from isolang.language.library import list_library
from isolang.language.load import load_spec
from isolang.report.lattice import dot, markdown, svg
from isolang.report.layers import layers

BOUNDS = Bounds(transactions=4, keys=3)


@pytest.fixture(scope="module")
def library():
    return library_levels()


@pytest.fixture(scope="module")
def whole(library):
    return implication_order(library, bounds=BOUNDS)


@pytest.mark.campaign
@pytest.mark.slow
def test_every_pair_of_levels_is_decided(whole, library):
    """By a proof or by a history of up to four transactions, never by both."""
    pairs = {(a, b) for a in library for b in library if a != b}
    assert whole.proofs.keys() | whole.separations.keys() == pairs
    assert not whole.proofs.keys() & whole.separations.keys()
    assert whole.searched == {}


def told(t):
    """What a line says of a transaction."""
    return t.ops, t.session, t.begin, t.end, t.group, t.label, t.level


@pytest.mark.slow
def test_what_tells_levels_apart_is_no_artefact(whole, library):
    """The tool says of each history what the comparison says, certified, in sessions that do one
    thing at a time; of every thirtieth pair. It can be read from its line.
    """
    first = {same[0] for same in whole.classes}
    assert {"mixed", "mixed-levels"} < first
    pairs = [pair for pair in sorted(whole.separations) if first.issuperset(pair)]
    assert len(pairs) > 1_500
    for a, b in pairs[::30]:
        small = whole.separations[a, b]
        history = small.history()
        times = small.intervals()
        for own in small.sessions if small.timed else ():
            assert all(times[s - 1][1] < times[t - 1][0] for s, t in pairwise(own)), (a, b)
        read = read_line(str(small))
        assert [*map(told, read.transactions())] == [*map(told, history.transactions())]
        for name, outcome in ((a, "valid"), (b, "invalid")):
            verdict = check(history, library[name].spec)
            assert (verdict.outcome, verdict.certified) == (outcome, True), (a, b, name)


@pytest.mark.slow
def test_the_levels_that_a_history_is_judged_by_are_ordered_so(whole):
    """What `isocheck levels` takes as implied is, by proof."""
    for stronger, weaker in ((a, b) for a, below in IMPLIES.items() for b in below):
        assert (stronger, weaker) in whole.proofs


@pytest.mark.slow
def test_the_drawing_is_of_the_library_as_it_is(whole):
    """`isocheck spec lattice --svg docs/images/lattice.svg` draws it; docs/site.py makes tables."""
    drawn = (ROOT / "docs" / "images" / "lattice.svg").read_text()
    assert set(re.findall(r'"middle">([^<]+)</text>', drawn)) == {s[0] for s in whole.classes}
    page = (ROOT / "docs" / "lattice.md").read_text()
    assert re.search(r"^<!-- lattice: .* -->$", page, re.MULTILINE)


@pytest.mark.slow
def test_edges_of_the_drawing_go_down_and_pass_no_level(whole):
    rows, ways = layers([same[0] for same in whole.classes], whole.edges)
    assert sorted(n[0] for row in rows for n in row if not n[1]) == sorted(
        same[0] for same in whole.classes
    )
    for (a, b), way in ways.items():
        assert [node[2] for node in way] == list(range(way[0][2], way[0][2] + len(way)))
        assert (way[0][0], way[-1][0]) == (a, b)
        assert all(node[1] for node in way[1:-1])


@pytest.mark.slow
def test_each_edge_of_a_lattice_has_a_proof_and_a_witness(library):
    few = {name: library[name] for name in ("ser", "ser-co", "si", "psi", "pc")}
    found = lattice(few, bounds=BOUNDS)
    assert found.order.classes[0] == ("pc",)
    assert set(found.converses) == {("ser", "si"), ("si", "psi"), ("si", "pc")}
    assert all(half.witness is not None for half in found.converses.values())
    for text in (markdown(found), dot(found), svg(found)):
        assert all(name in text for name in few)


_LEVELS = {entry.name for entry in list_library() if not entry.alias_of}
_ALIASES = [entry for entry in list_library() if entry.alias_of in _LEVELS]


@pytest.mark.slow
@pytest.mark.parametrize("entry", quick_first(_ALIASES, 15, rest="campaign"), ids=lambda e: e.name)
def test_an_alias_is_equal_to_its_level(library, entry):
    found = place(normal(load_spec(entry.name)), library, bounds=Bounds(transactions=1))
    assert entry.alias_of in found.equal


@pytest.mark.slow
def test_a_level_of_one_s_own_is_put_between_two(library):
    """Causal consistency and no lost update, that is of one key, are weaker than PSI."""
    text = """\
spec mine
include "cc-adya.iso"
irreflexive for x: rw[x] ; ww[x] as lost-update
"""
    found = place(normal(load_spec(text)), library, bounds=BOUNDS)
    assert (set(found.above), set(found.below)) == (
        {"psi"},
        {"cc", "pl-cs", "per-key-sequential"},
    )
    assert (found.equal, found.unknown) == ((), ())
    for _, half in (*found.above.values(), *found.below.values()):
        assert half.witness is not None
        assert half.witness.certified
