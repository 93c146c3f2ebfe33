"""The text of programs."""

from __future__ import annotations

import random

import pytest

from isolang.programs.explore import explore, satisfies
from isolang.programs.syntax import ProgramError, parse_program

TEXT = """program name "title" // a comment
init x = 1, y = -2
a = r(x) if (a + 1) * 2 >= 4 and not (a = 3 or (a) != 1) { w(y, a) } else { abort } ->
r(y, nil) || b = r(y)
exists a = 1 and b = -2 "first"
exists b = 1
"""


def test_a_program_of_everything() -> None:
    """Header, initial values, sessions, texts and questions are what was written."""
    program = parse_program(TEXT)
    assert (program.name, program.title, program.initial) == ("name", "title", {"x": 1, "y": -2})
    assert [len(own) for own in program.sessions] == [2, 1]
    assert program.texts[0][1] == "r(y, nil)"
    assert [(one.text, one.title) for one in program.targets] == [
        ("a = 1 and b = -2", "first"),
        ("b = 1", ""),
    ]
    found = explore(program)
    assert [[satisfies(one, t.condition) for one in found] for t in program.targets] == [
        [True, False],
        [False, True],
    ]


def test_a_name_of_one_branch_has_no_value_behind_both() -> None:
    """A value must have been read on every way to where it is used."""
    with pytest.raises(ProgramError, match="`b` has no value here"):
        parse_program("a = r(x) if a = 1 { b = r(y) } w(z, b)")


def test_conditions_of_reads_that_did_not_happen() -> None:
    """A condition on a read that an outcome has not is not satisfied, nor is its negation."""
    program = parse_program("a = r(x) if a = 1 { b = r(y) }\nexists b = 0\nexists not b = 0")
    assert [satisfies(explore(program)[0], one.condition) for one in program.targets] == [
        False,
        False,
    ]


def test_damaged_texts() -> None:
    """What is cut, doubled or shuffled is a program or a clear error."""
    rng = random.Random(1)
    refused = 0
    for _ in range(3000):
        text = TEXT
        for _ in range(rng.randint(1, 3)):
            a, b = sorted(rng.randrange(len(text) + 1) for _ in range(2))
            kind = rng.random()
            if kind < 0.4:
                text = text[:a] + text[b:]
            elif kind < 0.7:
                text = text[:b] + text[a:b] + text[b:]
            else:
                text = text[:a] + rng.choice('(){}|->=!"\n\x00ä 9') + text[a:]
        try:
            explore(parse_program(text), most=200)
        except ProgramError as error:
            said = str(error)
        else:
            continue
        refused += 1
        assert "<text>:" in said or "too many" in said or "62 bits" in said
    assert 500 < refused < 3000
