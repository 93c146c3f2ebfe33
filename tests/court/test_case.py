"""The file of a case."""

import pytest

from isolang.court.case import load_case, parse_case
from isolang.errors import IsolangError

CALLS = 'calls = ["echo ann", "echo bob"]\n'


def test_each_call_may_be_a_command():
    """Its arguments are split as a shell splits them."""
    case = parse_case('calls = ["echo \'a b\'", "cat x"]', "court.toml")
    assert [call.words for call in case.calls] == [("echo", "a b"), ("cat", "x")]
    assert [call.line for call in case.calls] == ["", ""]
    assert (case.levels, case.database) == (("",), "postgres")


def test_one_command_may_get_all_calls():
    """A call that is made twice has two names."""
    case = parse_case('command = "cat -"\ncalls = ["buy", "buy"]', "court.toml")
    assert [call.name for call in case.calls] == ["buy", "buy (2)"]
    assert {(call.words, call.line) for call in case.calls} == {(("cat", "-"), "buy")}


def test_levels_may_be_several():
    """One trial is held for each."""
    levels = 'level = ["read committed", "serializable"]\n'
    assert parse_case(levels + CALLS, "x").levels == ("read committed", "serializable")
    assert parse_case('level = "repeatable read"\n' + CALLS, "x").levels == ("repeatable read",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("calls = [", "not a TOML file"),
        ('calls = ["echo a"]', r"wrong number of calls \(got 1, expected 2 to 5\)"),
        ('calls = ["a", "a", "a", "a", "a", "a"]', r"got 6"),
        ('calls = [1, "echo"]', "wrong value of calls"),
        ('calls = ["echo", " "]', "a call is one line"),
        (CALLS + 'levle = "x"', r"unknown key .*levle.*level"),
        (CALLS + 'level = "snapshot"', "unknown level"),
        (CALLS + "seconds = true", r"wrong value of seconds \(got True, expected a number\)"),
        (CALLS + 'prepare = "no-such-program-here"', "no such program"),
        ('calls = ["echo \'x", "echo"]', "not a command"),
    ],
)
def test_what_is_wrong_is_named(text, message):
    """With the file, what it has, and what is expected."""
    with pytest.raises(IsolangError, match=rf"^court\.toml: .*{message}|^court\.toml: {message}"):
        parse_case(text, "court.toml")


def test_a_file_that_cannot_be_read(tmp_path):
    """The message names it."""
    with pytest.raises(IsolangError, match=r"none\.toml: cannot read the file: No such file"):
        load_case(tmp_path / "none.toml")
