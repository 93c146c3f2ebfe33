"""Tests of the lexer: the memory it needs for long literals, and unterminated strings."""

import tracemalloc

import pytest

from isolang.observe.sql.lexer import UnclearTextError, statements, tokens

_LENGTH = 2_000_000
_LONG = {
    "text": ("'{}'", "x"),
    "quotes in a text": ("'{}'", "''"),
    "escaped": ("E'{}'", "x"),
    "escapes": ("E'{}'", r"\\"),
    "quotes in an escaped text": ("E'{}'", "''"),
    "dollar quotes": ("$a${}$a$", "x$"),
    "identifier": ('"{}"', "x"),
    "quotes in an identifier": ('"{}"', '""'),
    "line comment": ("--{}\n1", "x"),
    "comment": ("/*{}*/1", "x"),
}


@pytest.mark.parametrize("name", _LONG)
def test_a_long_statement_costs_a_few_times_its_size(name):
    """However long a literal is, the lexer does not remember each of its characters."""
    form, piece = _LONG[name]
    text = "SELECT " + form.format(piece * (_LENGTH // len(piece)))
    tracemalloc.start()
    try:
        count = sum(1 for _ in tokens(text))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 2
    assert peak < 4 * _LENGTH


@pytest.mark.parametrize("text", [r"E'a\'", r"E'a''\'", r"SELECT e'\\\'", "E'", "'a''", '"a""'])
def test_an_unterminated_string_is_unclear(text):
    """If a string has no end, the lexer does not take part of it for a shorter string."""
    with pytest.raises(UnclearTextError):
        list(tokens(text))


@pytest.mark.parametrize(
    ("text", "ends"),
    [(r"E'a\'b''c\\' x", [12, 14]), ("'a''' 'b'", [5, 9]), ('"""a" x', [5, 7]), ('"a""b"', [6])],
)
def test_a_quote_that_is_doubled_or_escaped_does_not_end_a_string(text, ends):
    """A string ends at the first quote that is neither doubled nor escaped."""
    assert [token.end for token in tokens(text)] == ends


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT v FROM t; SELECT 1; END", [75]),
        (
            "CREATE OR REPLACE PROCEDURE f() BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; END;"
            " SELECT 2",
            [82, 92],
        ),
        ("CREATE FUNCTION f() RETURNS int AS $$ BEGIN; END $$; BEGIN; SELECT 1", [51, 58, 68]),
        ("CREATE TABLE function (atomic int); SELECT 1", [34, 44]),
    ],
)
def test_the_body_of_a_function_belongs_to_its_definition(text, ends):
    """The statements between BEGIN ATOMIC and END are not executed, so none may be changed."""
    assert [part[-1].end for part in statements(list(tokens(text)))] == ends
