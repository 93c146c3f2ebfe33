"""Names in quotes: how they are written, and what is said where they are not."""

from __future__ import annotations

import random

import pytest

from isolang import History, Transaction, check
from isolang.errors import SpecError
from isolang.language.load import load_spec
from isolang.language.meaning.show import show_check
from isolang.language.syntax.layout import format_text
from isolang.language.syntax.source import SourceText

TEXT = """\
include "adya.iso"

let rel = [level "ser" | level "s*"] ; rw

acyclic so | wr | ww["audit/*", "b"] | rel | (for x not in "audit/*": rw[x]) as a
for each x in "acc/*": acyclic so | wr[x] | ww[x] | rw[x] as b
empty [T \\ label "audit"] ; wr[not "audit"] ; [W["z"]] as c
"""


def test_names_are_parsed_shown_and_laid_out() -> None:
    """What is shown means the same, and the layout leaves it alone."""
    checks = load_spec(TEXT).checks
    again = load_spec("".join(['include "adya.iso"\n', *(f"{show_check(c)}\n" for c in checks)]))
    assert [c.expr for c in again.checks] == [c.expr for c in checks]
    assert format_text(SourceText("x", TEXT)) == TEXT


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("label", "`label` needs a name"),
        ('so "a"', "`so` takes no name"),
        ('[lable "a"]', "unknown name `lable`"),
        ('label ""', "has an empty name"),
        ('so["a"]', "`so` has no key"),
        ('[W["a"] | so]', "two operands of one kind"),
    ],
)
def test_what_is_no_name(text: str, what: str) -> None:
    """Each mistake has its message."""
    with pytest.raises(SpecError, match=what):
        load_spec(f'include "adya.iso"\nacyclic ww | {text} as c\n')


@pytest.mark.slow
def test_patterns_mean_the_same_everywhere() -> None:
    """The engine, both checkers, and what knows no automaton match a pattern alike."""
    rng = random.Random(3)
    for _ in range(150):
        name = "".join(rng.choice("ab/.[\n") for _ in range(rng.randint(1, 5)))
        pattern = "".join(rng.choice("ab/.[**") for _ in range(rng.randint(1, 5)))
        matches = _matches(pattern, name)
        history = History.from_transactions(
            [
                Transaction([("r", name, None), ("w", name, 1)], session=0),
                Transaction([("r", name, None), ("w", name, 2)], session=1),
            ]
        )
        spec = load_spec(f'include "adya.iso"\nacyclic ww["{pattern}"] | rw["{pattern}"] as c\n')
        for options in ({}, {"encoding": "monosat", "prune": "none"}, {"encoding": "relational"}):
            verdict = check(history, spec, **options)
            assert verdict.outcome == ("invalid" if matches else "valid"), (pattern, name)
            assert verdict.certified


def _matches(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(_matches(pattern[1:], name[i:]) for i in range(len(name) + 1))
    return bool(name) and name[0] == pattern[0] and _matches(pattern[1:], name[1:])
