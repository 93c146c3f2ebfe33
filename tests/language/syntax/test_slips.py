"""Texts that do not follow the grammar: each with its place, what is said, and the hint."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.errors import check_error

from isolang.errors import SpecError
from isolang.language.classify.event_graph import classify
from isolang.language.library import SPECS
from isolang.language.load import load_spec

A = 'include "adya.iso"\n'

# text, line, column, part of the first line, part of the hint
SYNTAX = [
    ("acyclic so ; rt & so as X\n", 1, 17, "`;` and `&` are mixed", "(a ; b) & c"),
    ("acyclic so & rt ; so as X\n", 1, 17, "`&` and `;` are mixed", "(a & b) ; c"),
    ("acyclic so \\ rt \\ so as X\n", 1, 17, "`\\` is used twice", "(a \\ b) \\ c"),
    ("acyclic so ; (rt & so) \\ id as X\n", 1, 24, "`;` and `\\` are mixed", "(a ; b) \\ c"),
    ("acyclic so | rt\nacyclic so as Y\n", 1, 16, "the check has no name", "as NAME"),
    ("acyclic so | rt\n", 1, 16, "got the end of the text, expected `as NAME`", "as NAME"),
    ("require so in rt", 1, 17, "the check has no name", "require EXPRESSION in"),
    ("require so as X\n", 1, 12, "`require` needs `in`", "in EXPRESSION as NAME"),
    ("show so\n", 1, 8, "`show` needs a name", "show EXPRESSION as NAME"),
    ('acyclic so "X"\n', 1, 15, "the check has no name", "as NAME"),
    ('acyclic so as "X"\n', 1, 15, "a check's name is not quoted", 'as NAME "text"'),
    ("acyclic so* as X\n", 1, 13, "`*` is the product of two sets", "`^*`"),
    ("acyclic (so|rt)* ; so as X\n", 1, 18, "`*` is the product of two sets", "`^*`"),
    ("acyclic so+ as X\n", 1, 11, "got `+`", "`so^+`"),
    ("acyclic so^ as X\n", 1, 11, "unknown operator", "`-1` (inverse)"),
    ("acyclic so^-2 as X\n", 1, 11, "unknown operator", "`-1` (inverse)"),
    ("let a : so\n", 1, 7, "a definition cannot contain `:`", "`let` defines with `=`"),
    (
        "exists co = order on T\n",
        1,
        11,
        "a declaration cannot contain `=`",
        "`exists` declares with `:`",
    ),
    ("spec my level\n", 1, 9, "a name is one word", "`spec my-level`"),
    ("spec my\nacyclik so as X\n", 2, 1, "unknown word", "did you mean `acyclic`?"),
    ("spec my\naxiom so as X\n", 2, 1, "unknown word", "a file has `let`"),
    ("acyclic so as X\naxiom so as Y\n", 2, 1, "unknown word", "a file has `let`"),
    ("acyclic so as no cycle\n", 1, 18, "a name is one word", "`as no-cycle`"),
    ("exists o : total order on T\n", 1, 12, "unknown kind", "is strict and total"),
    ("spec SER Serializability\n", 1, 10, "a title is in double quotes", 'spec SER "Ser'),
    ('spec "SER"\nacyclic so as X\n', 1, 6, "name is not quoted", 'spec NAME "title"'),
    ("include adya.iso\n", 1, 9, "needs a file name in quotes", 'include "adya.iso"'),
    ("include 'adya.iso'\n", 1, 9, "got `'`", "double quotes"),
    ('include "adya.iso\n', 1, 9, "the closing quote of a text is missing", "one line"),
    ("let a = so;\nacyclic a as X\n", 1, 11, "`;` needs a right side", "no terminator"),
    ("acyclic so ; as X\n", 1, 14, "`;` needs a right side", "a ; b"),
    ("acyclic as X\n", 1, 9, "`acyclic` needs an expression", "acyclic EXPRESSION as NAME"),
    ("acyclic (so | rt as X\n", 1, 18, "`(` of line 1, column 9 is never closed", "`)`"),
    ("acyclic so) as X\n", 1, 11, "`)` closes nothing", "remove it"),
    ("acyclic (so] as X\n", 1, 12, "`]` does not close the `(` of line 1, column 9", "`)`"),
    (
        "acyclic so rt as X\n",
        1,
        12,
        "an operator is missing between two expressions",
        "union is `|`",
    ),
    ("acyclic [label audit] ; so as X\n", 1, 16, "the name needs quotes", '`label "audit"`'),
    ("acyclic so is X\n", 1, 12, "`is` cannot stand before the name", "`as NAME`"),
    ("acyclic so or rt as X\n", 1, 12, "`or` is not an operator", "union is `|`"),
    ("acyclic so, rt as X\n", 1, 11, "`,` is not an operator", "union is `|`, as in `so | wr`"),
    ("acyclic (so, rt) as X\n", 1, 12, "`,` is not an operator", "union is `|`"),
    ("let a = so, rt\nacyclic a as X\n", 1, 11, "`,` is not an operator", "union is `|`"),
    ("acyclic so | , rt as X\n", 1, 14, "`|` needs a right side", "a | b"),
    ("forall x: acyclic ww[x] as X\n", 1, 1, "`forall` is not a word", "`for each x: acyclic …`"),
    ("empty forall x: ww[x] as X\n", 1, 14, "`forall` is not a word", "acyclic for x: EXPRESSION"),
    ("acyclic (foreach x: so) as X\n", 1, 18, "`foreach` is not a word", "`for each x: acyclic …`"),
    ("acyclic ∀x: so as X\n", 1, 9, "unexpected character", "`for each x: acyclic …`"),
    (
        "empty exists x: so as X\n",
        1,
        7,
        "`exists` cannot be inside an expression",
        "`for x: EXPRESSION`",
    ),
    ("acylic so as X\n", 1, 1, "unknown word", "`acyclic`"),
    ("foo\nbar\n", 1, 1, "unknown word", "acyclic so as c"),
    ("let order = so\n", 1, 5, "`order` is a keyword", "my-order"),
    ("acyclic so as show\n", 1, 15, "`show` is a keyword", "my-show"),
    ("let rec f = so\n", 1, 9, "definitions cannot be recursive", "`^+`"),
    (
        "acyclic so | for y: rt as X\n",
        1,
        14,
        "`for` inside an expression needs parentheses",
        "(for x: …)",
    ),
    ("for x: so\n", 1, 5, "`for` is allowed only in a check", "acyclic for x"),
    ("acyclic for so as X\n", 1, 16, "`for` needs a key", "for x: EXPRESSION"),
    ("flag so as X\n", 1, 6, "`flag` needs a check", "flag acyclic"),
    ("exists co : total on T\n", 1, 13, "unknown kind", "order on SET"),
    ("exists co : order T\n", 1, 19, "`order` needs `on`", "order on SET"),
    ("acyclic ~so as X\n", 1, 9, "got `~`", "no complement"),
    ("# comment\nacyclic so as X\n", 1, 1, "got `#`", "`// …`"),
    ("-- comment\n", 1, 1, "got `-`", "`// …`"),
    ("(* open \nacyclic so as X\n", 1, 1, "the comment is never closed", "(* … *)"),
    ("acyclic so -> rt as X\n", 1, 12, "got `-`", "composition is `;`"),
    ("acyclic so ∪ rt as X\n", 1, 12, "got `∪`", "union is `|`"),
    ("acyclic 1so as X\n", 1, 9, "unexpected digit", "begins with a letter"),
    ("let x = so\nspec A\n", 2, 1, "header must come first", "above everything"),
    ("spec A\nspec B\n", 2, 1, "only one `spec` header is allowed", "one header"),
    ("// ok\n\tacyclic so &\n", 2, 14, "`&` needs a right side", "a & b"),
    ("acyclic | so as c\n", 1, 9, "`|` needs a left side", "before it"),
    ("& so\n", 1, 1, "no item of a specification begins like this", "acyclic so as c"),
    ("order on T\n", 1, 1, "no item of a specification begins like this", "acyclic so as c"),
    ("\x00\n", 1, 1, "got `\\x00`", ""),
]


@pytest.mark.parametrize(("text", "line", "column", "what", "hint"), SYNTAX)
def test_place_message_and_hint(text: str, line: int, column: int, what: str, hint: str) -> None:
    """Each slip is found where it stands, and answered with what was probably meant."""
    check_error(text, line, column, what, hint)


def test_whole_message() -> None:
    with pytest.raises(SpecError) as caught:
        load_spec("// levels\nacyclic (so | rt) ; so & so as X\n")
    assert str(caught.value) == (
        "<text>:2:24: `;` and `&` are mixed without parentheses (got `&`, expected `as "
        "NAME` or an operator)\n  2 | acyclic (so | rt) ; so & so as X\n    |            "
        "            ^\n  hint: write `(a ; b) & c` or `a ; (b & c)`"
    )


def test_tabs_and_long_lines_keep_the_caret_in_place() -> None:
    with pytest.raises(SpecError) as caught:
        load_spec("\tacyclic\tso rt as X\n")
    assert "    | \t       \t   ^^\n" in str(caught.value)
    with pytest.raises(SpecError) as caught:
        load_spec(f"acyclic {'so | ' * 100}so rt as X\n")
    lines = str(caught.value).split("\n")
    assert lines[1][lines[2].index("^") :].startswith("rt as X")
    assert len(lines[1]) < 140


DEEP = {
    "parentheses": "(" * 5000 + "so" + ")" * 5000,
    "inverses": "so" + "^-1" * 5000,
    "both": "(" * 40 + "so" + ("?" * 40 + ")") * 40,
    "for": "".join(f"for x{i}: " for i in range(3000)) + "so",
    "lifts": "[" * 3000 + "so" + "]" * 3000,
    "domains": "domain(" * 3000 + "so" + ")" * 3000,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP.keys())
def test_no_text_exhausts_the_stack(text: str) -> None:
    with pytest.raises(SpecError, match="nested too deeply"):
        load_spec(f"acyclic {text} as X\n")


def test_as_deep_as_allowed_is_fine() -> None:
    load_spec(f"acyclic {'(so | rt ; (' * 24}so{'))' * 24} as X\n")


TOKENS = [
    "acyclic",
    "irreflexive",
    "empty",
    "require",
    "flag",
    "not",
    "let",
    "exists",
    "show",
    "include",
    "spec",
    "as",
    "in",
    "for",
    "x",
    "y",
    "so",
    "rt",
    "wr",
    "ww",
    "rw",
    "id",
    "T",
    "W",
    "rf",
    "po",
    "tx",
    "obs",
    "f",
    "|",
    ";",
    "&",
    "\\",
    "*",
    "(",
    ")",
    "[",
    "]",
    "^+",
    "^*",
    "^-1",
    "?",
    "=",
    ":",
    ",",
    '"adya.iso"',
    '"',
    "^",
    "+",
    "-",
    "1",
    "é",
    "//",
    "(*",
    "*)",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=20), st.booleans())
def test_any_tokens_are_a_specification_or_an_error_with_a_place(
    tokens: list[str], included: bool
) -> None:
    text = (A if included else "\n") + " ".join(tokens) + "\n"
    try:
        classify(load_spec(text))
    except SpecError as error:
        if error.line:
            at = f"<text>:{error.line}:{error.column}: "
            if at not in str(error).split("\n", 1)[0]:
                raise AssertionError(f"no place in {error}") from error
        elif "the specification has no check" not in str(error):
            raise AssertionError(f"no place in {error}") from error


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_damaged_level_is_a_specification_or_an_error(data: st.DataObject) -> None:
    text = list((SPECS / "si.iso").read_text(encoding="utf-8"))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 3))] = data.draw(st.sampled_from([*TOKENS, "\n"]))
    with contextlib.suppress(SpecError):
        classify(load_spec("".join(text) + "\n"))
