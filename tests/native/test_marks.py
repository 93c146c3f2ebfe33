"""The tables of mutants and ablations fit the marks in the sources."""

import sys

from support.paths import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import ablations
import mutants
import pytest
from scratch import Change, Sources, apply, apply_to_python, misfits


def changes():
    return [*mutants.load(), *(c for a in ablations.load() for c in a.changes)]


def test_every_change_fits():
    """Each change finds its mark, and the statement that it changes has what it replaces."""
    assert misfits(changes()) == []


def test_every_mutant_has_tests():
    """Wherever its rule stands, there are tests that should notice, and all of them are there."""
    for mutant in mutants.load():
        assert all((ROOT / file).exists() for file in mutants.tests_for(mutant)), mutant.mark


def test_every_mark_is_used():
    """A mark in the sources without an entry would be a rule that nobody breaks."""
    assert set(Sources(ROOT).marks) == {change.mark for change in changes()}


@pytest.mark.parametrize(
    ("edit", "before", "after"),
    [
        ({"edit": "drop"}, "f(a, {b; c});\ng();", ";\ng();"),
        ({"edit": "drop 2"}, "f(); g(); h();", "; h();"),
        ({"edit": "never"}, "if (x; a && f(b)) y();", "if (x;false && ( a && f(b))) y();"),
        ({"edit": "always"}, "while (a[i]) {", "while (true || (a[i])) {"),
        ({"edit": "insert", "new": "g();"}, "f();", "g();\nf();"),
        ({"old": "<", "new": "<="}, "if (a < b) {\n  c < d;", "if (a <= b) {\n  c < d;"),
    ],
)
def test_edits(edit, before, after):
    """An edit changes the marked statement and nothing behind it."""
    assert apply(Change(mark="m", **edit), before) == after


@pytest.mark.parametrize(
    ("edit", "before", "after"),
    [
        ({"edit": "drop"}, "  f(a)\n  g()", "  pass\n  g()"),
        ({"edit": "never"}, "  if a or b:\n    c", "  if False and (a or b):\n    c"),
        ({"edit": "always"}, "elif a[i]:\n  c", "elif True or (a[i]):\n  c"),
        ({"old": "<", "new": "<="}, "x = a < b\nc < d", "x = a <= b\nc < d"),
    ],
)
def test_edits_of_python(edit, before, after):
    """In Python a statement is a line."""
    assert apply_to_python(Change(mark="m", **edit), before) == after


def test_an_edit_that_does_not_fit():
    """What is not there exactly once is an error, not a mutant that changes nothing."""
    with pytest.raises(ValueError, match="occurs 2 times"):
        apply(Change(mark="m", old="a", new="b"), "f(a, a);")
