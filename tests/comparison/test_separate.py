"""The search for what tells two specifications apart, beside all small histories."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from oracle import relational
from oracle.concrete import EVENT_NAMES, given, satisfiable
from oracle.concrete_histories import all_histories
from oracle.history import parse
from support.sampling import quick_first

from isolang.comparison.compare import compare
from isolang.comparison.effort import Effort
from isolang.comparison.lattice import library_levels
from isolang.comparison.normal import normal
from isolang.comparison.separate import Bounds, Separator, scope_of
from isolang.comparison.small import SmallWrite
from isolang.language.load import load_spec
from isolang.language.meaning import mentions

LEVELS = ["ser", "si", "psi", "pc", "cc", "ra", "rc", "mr", "wfr", "pl-3", "pl-2", "rc-nosession"]


@pytest.fixture(scope="module")
def library():
    return library_levels()


def search(allows, forbids, size, keys, *, lists=False, reads=1):
    """A history of exactly this many transactions and keys, all registers or all lists."""
    bounds = Bounds(transactions=size, keys=keys, reads=reads)
    separator = Separator(forbids, replace(scope_of((allows, forbids), bounds, size), lists=lists))
    all_lists = separator.histories.variables.are_lists if lists else ()
    return separator.find(allows, Effort(), all_lists)


def allowed(level, history):
    """By trying all choices, on the axioms as they are written."""
    events = bool(mentions.mentioned(level.spec) & EVENT_NAMES)
    return satisfiable(given(history, events=events), level.spec, level.spec.checks, lambda: None)


def shows_the_future(history):
    """Whether a list shows what its reader appends later: an anomaly that needs no axiom."""
    return any(
        source > 0 and reader in key.shown[: key.shown.index(source) + 1]
        for key in history.keys
        if key.shown
        for reader, source in enumerate(key.sources, 1)
    )


def test_no_list_shows_what_its_reader_appends_later():
    """It would be allowed by the axioms of the one, and by the engine under neither."""
    lost = 'include "adya.iso"\nirreflexive for x: rw[x] ; ww[x] as lost-update\n'
    one, other = normal(load_spec(lost)), normal(load_spec(f"{lost}acyclic wr | ww as c\n"))
    found = compare(one.spec, other.spec)
    assert (found.relation, found.forth.witness.certified) == ("weaker", True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "keys", "lists"),
    quick_first([(2, 2, True), (3, 1, False), (2, 2, False)], 1, rest="campaign"),
)
def test_the_search_finds_what_there_is(library, size, keys, lists):
    """For each pair of levels: a history is found iff one of that size tells them apart."""
    expected = set()
    # Up to these many: fewer keys are among the histories with more.
    for some in range(1, keys + 1):
        every = all_histories(size, some, lists=lists, real_time=False, orders=True)
        for history in every:
            if shows_the_future(history):
                continue
            verdicts = {name: allowed(library[name], history) for name in LEVELS}
            good = [name for name in LEVELS if verdicts[name]]
            expected |= {(a, b) for a in good for b in LEVELS if not verdicts[b]}
    assert expected
    for a in LEVELS:
        for b in LEVELS:
            if a != b:
                found = any(
                    search(library[a], library[b], size, some, lists=lists)
                    for some in range(1, keys + 1)
                )
                assert found == ((a, b) in expected), (a, b)


@pytest.mark.parametrize(
    ("allows", "forbids", "size"),
    [
        ("si", "ser", 2), ("psi", "si", 4), ("cc", "pc", 3), ("ra", "cc", 3), ("rc", "ra", 2),
        ("pl-2", "rc-nosession", 2), ("pl-1", "pl-2", 2), ("ser", "sser", 2), ("mr", "mw", 2),
    ],
)  # fmt: skip
def test_the_oracle_judges_the_witnesses_alike(library, allows, forbids, size):
    """What is found is allowed and forbidden by the oracle's own evaluation of the axioms."""
    one, other = library[allows], library[forbids]
    for smaller in range(1, size):
        scope = scope_of((one, other), Bounds(), smaller)
        assert Separator(other, scope).find(one, Effort()) is None
    scope = scope_of((one, other), Bounds(), size)
    small, least = Separator(other, scope).smallest(one, Effort())
    assert least
    history = parse(str(small))
    assert relational.satisfied(history, one.spec)
    assert not relational.satisfied(history, other.spec)


# Adya's PL-3U: what updates is serializable, and so is each transaction beside that.
UPDATES = 'include "adya.iso"\nlet upd = [W] ; (wr | ww | rw) ; [W]\nacyclic upd as updates\n'
PL_3U = f"{UPDATES}irreflexive upd^* ; wr ; rw as query\n"


def least(allows, forbids, up_to):
    """The size of the smallest history, and the history."""
    one, other = normal(load_spec(allows)), normal(load_spec(forbids))
    for size in range(1, up_to + 1):
        scope = scope_of((one, other), Bounds(transactions=size), size)
        found = Separator(other, scope).smallest(one, Effort())
        if found is not None:
            return size, found[0]
    return None


def test_fekete_s_read_only_anomaly_is_found():
    """The smallest history under SI whose updates alone are serializable, and not PL-3U: three.

    A. Fekete, E. O'Neil, P. O'Neil, SIGMOD Record 33(3), 2004: a transaction that only reads shows
    that the others cannot be put in an order.
    """
    size, small = least(f'include "si-nosession.iso"\n{UPDATES}', PL_3U, 3)
    assert size == 3
    writers = [any(isinstance(op, SmallWrite) for op in ops) for ops in small.transactions]
    assert sorted(writers) == [False, True, True]


@pytest.mark.slow
def test_si_and_pl_3u_together_are_told_from_serializability_by_five_transactions():
    """Two transactions that only read, each of which sees another order of the others."""
    both = f'include "si-nosession.iso"\n{PL_3U}'
    size, _ = least(both, "ser-nosession", 5)
    assert size == 5


def test_predicate_reads_tell_levels_apart():
    """A phantom, and a skew of which one read is by key: adjacent levels, least histories."""
    found = compare(load_spec("pl-3"), load_spec("pl-2-99"))
    assert found.relation == "stronger"
    witness = found.back.witness
    assert witness.certified
    assert str(witness.small) == "w(x,1) || rp(x,none) r(x,1)"
    assert witness.violation.violation.anomaly == "phantom"
    found = compare(load_spec("pl-2-99"), load_spec("locking-repeatable-read"))
    assert found.relation == "stronger"
    assert "[:rp " in found.back.witness.edn()
