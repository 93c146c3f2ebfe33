"""MariaDB's texts are split as the server splits them, or not at all."""

import pytest

from isolang.observe.mariadb.lexer import statements, tokens
from isolang.observe.sql.lexer import UnclearTextError


def texts(text, mode="", version=101119):
    """The texts of the tokens, without their kinds."""
    return [token.text for token in tokens(text, mode, version=version)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT `a``b`, 'it''s' -- end", ["select", '"a`b"', ",", "'it''s'"]),
        (r"SELECT 'it\'s', 'a\nb', '5\%'", ["select", "'it''s'", ",", "'a\nb'", ",", "'5\\%'"]),
        ('SELECT "say ""x""" # end', ["select", "'say \"x\"'"]),
        ("a--1", ["a", "-", "-", "1"]),
        ("a -- 1\n, b", ["a", ",", "b"]),
        ("/* x; 'y */ a /*! b */ /*!40101 c */ /*!80000 d */ /*M!100100 e */",
         ["a", "b", "c", "e"]),
        ("a <=> ? AND b = ?", ["a", "<=>", "$1", "and", "b", "=", "$2"]),
        ("x'4D' 0x4D 1e3 .5 1a @x @@y @`z z`", ["x'4D'", "0x4d", "1e3", ".5", "1a", "@x", "@@y",
                                                 "@`z z`"]),
        ("SELECT 'é', été", ["select", "'é'", ",", "été"]),
    ],
)  # fmt: skip
def test_tokens(text, expected):
    """Strings lose their escapes, names get double quotes, and comments are skipped."""
    assert texts(text) == expected


def test_modes():
    """The session's sql_mode decides what quotes and backslashes mean."""
    assert texts('"a""b"', "ANSI_QUOTES") == ['"a""b"']
    assert texts(r"'a\' 'b'", "NO_BACKSLASH_ESCAPES") == ["'a\\'", "'b'"]
    with pytest.raises(UnclearTextError):
        texts("SELECT 1", "PIPES_AS_CONCAT,ORACLE")


@pytest.mark.parametrize(
    "text", ["'a", '"a', "`a", "/* a", "/*! a", "a */ b", "/*!40101 /*!40102 a */ */", r"'a\'"]
)
def test_what_is_not_certain(text):
    """A text that does not end, or has an unusual comment, is not split."""
    with pytest.raises(UnclearTextError):
        texts(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("a; b;; c;", 3),
        ("CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END", 1),
        ("CREATE DEFINER=`r`@`h` TRIGGER t BEFORE INSERT ON x FOR EACH ROW SET @a = 1", 1),
        ("SELECT 1; BEGIN NOT ATOMIC SELECT 1; END; SELECT 2", 2),
        ("BEGIN; SELECT 1; COMMIT", 3),
        ("IF 1 THEN SELECT 1; END IF; SELECT 2", 1),
        ("x: LOOP SELECT 1; END LOOP", 1),
        ("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)", 2),
    ],
)  # fmt: skip
def test_statements(text, count):
    """The statements of a body belong to the statement around them."""
    assert len([*statements([*tokens(text)])]) == count
