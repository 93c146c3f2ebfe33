"""Templates: what the statements of programs with parameters read and write."""

from __future__ import annotations

import pytest

from isolang.foresee.templates import ALL_COLUMNS, templates
from isolang.programs.syntax import ProgramError, parse_program, parse_templates


def of(text: str):
    return templates(parse_templates(text))


def test_what_each_step_reads_and_writes() -> None:
    """An update reads what it writes and what its values mention; inserts touch the whole row."""
    (branch,) = of(
        "program P(c, v) a = r(x[c].(m, n)) w(x[c].m, v) u(x[c].n, .n + v, .k) u(z, 1)"
        " insert(y[c, 7]) delete(y[c, *])"
    ).branches
    found = [
        (one.kind, one.relation, one.keys, sorted(one.reads), sorted(one.writes))
        for one in branch.statements
    ]
    assert found == [
        ("read", "x", ("c",), ["m", "n"], []),
        ("write", "x", ("c",), [], ["m"]),
        ("update", "x", ("c",), ["k", "n"], ["n"]),
        ("update", "z", (), [ALL_COLUMNS], [ALL_COLUMNS]),
        ("insert", "y", ("c", 7), [], [ALL_COLUMNS]),
        ("read", "y", ("c", None), [ALL_COLUMNS], []),  # by its condition
        ("delete", "y", ("c", None), [], [ALL_COLUMNS]),
    ]
    assert branch.parameters == ("c",)  # v names no row


def test_a_key_that_was_read_may_be_that_of_any_row() -> None:
    """The decision does not follow values."""
    (branch,) = of("program P(c) a = r(x[c]) r(y[a])").branches
    assert branch.statements[1].keys == (None,)


def test_each_way_through_a_program_is_a_branch() -> None:
    """Ways that abort take no effect, and are counted; equal ways are one."""
    found = of(
        "program P(c) a = r(x[c]) if a = 0 { w(x[c], 1) } else { if a = 1 { abort } w(y[c], 1) }"
        " program Q(c) a = r(x[c]) if a = 0 { }"
    )
    assert [(one.name, [s.text for s in one.statements]) for one in found.branches] == [
        ("P if a = 0", ["r(x[c])", "w(x[c])"]),
        ("P if not (a = 0) and not (a = 1)", ["r(x[c])", "w(y[c])"]),
        ("Q if a = 0", ["r(x[c])"]),
    ]
    assert found.dropped == 1
    assert found.programs == ("P", "Q")


def test_parameters_that_meet_in_a_relation_have_one_type() -> None:
    """The type decides which parameters may have the same value."""
    found = of("program P(c, d, e) r(x[c]) r(y[d]) r(z[e]) program Q(f) r(x[f]) r(y[f])").types
    assert found["P", "c"] == found["P", "d"] == found["Q", "f"] != found["P", "e"]


def test_a_program_without_parameters_is_a_template_of_each_transaction() -> None:
    """The programs of ``isocheck outcomes`` are templates."""
    found = of("r(x) w(y, 1) -> w(x, 1) || r(y)")
    assert [one.program for one in found.branches] == ["<text>.1", "<text>.2", "<text>.3"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("program P(c, c) r(x[c])", "1:14: another parameter already has the name `c`"),
        ("program P(c) where c != d r(x[c])", "expected a parameter"),
        ("program P(c) where c != c r(x[c])", "`c` is never different from itself"),
        ("program P(c) r(x[d])", "`d` has no value here; a key may use parameters, and values"),
        ("program P(c) u(x[c].n, n + 1)", "a column of the row is `.n`"),
        ("program P(c) w(x[c].n, .n)", "got `.`, expected an integer"),
        ("program P(c) insert(x[c].n)", "only whole rows can be inserted or deleted"),
        ("program P(c) r(x[c]) program P(c) r(x[c])", "another program already has the name `P`"),
        ("program P(c) r(x[c]) r(x[c, 1])", "got 2 keys of x, expected 1 as elsewhere"),
        ("program P(c) r(x[c]) abort", "each execution path of each program aborts"),
        ("program P(c) " + "a".join(["", *[f"{n} = r(x[c]) if a{n} = 0 {{ r(y[c]) }} "
                                           for n in range(7)]]), "too many branches"),
    ],
)  # fmt: skip
def test_what_is_no_template(text, said) -> None:
    """A mistake says where it is."""
    with pytest.raises(ProgramError) as error:
        of(text)
    assert said in str(error.value)


@pytest.mark.parametrize(
    "text", ["program P(c) r(x)", "r(x[1])", "r(x.n)", "u(x, 1)", "insert(x)", "delete(x)"]
)
def test_programs_with_outcomes_are_no_templates(text) -> None:
    """What only templates have is refused with the command that takes it."""
    with pytest.raises(ProgramError, match="`isocheck robust FILE` takes templates"):
        parse_program(text)


def test_words_of_templates_are_names_elsewhere() -> None:
    """``u``, ``insert`` and ``where`` remain names of keys and reads."""
    program = parse_program("u = r(insert) w(where, u) || delete = r(u)")
    assert [len(own) for own in program.sessions] == [1, 1]
