"""The file of a case."""

import sys

import pytest

from isolang.court.case import load_case, parse_case
from isolang.court.function import main
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


def test_calls_may_be_those_of_python_functions():
    """The preparation, too; each runs in a process of its own."""
    text = 'functions = "bank.py"\ncalls = ["pay(1, 30)", "save(1)"]\nprepare = "setup()"'
    case = parse_case(text, "x")
    command = (sys.executable, "-m", "isolang.court.function", "bank.py")
    assert case.prepare == (*command, "setup()")
    assert [(call.words, call.line) for call in case.calls] == [
        (command, "pay(1, 30)"),
        (command, "save(1)"),
    ]


def test_a_function_of_a_file_is_called(tmp_path, monkeypatch, capsys):
    """Its result is printed as JSON; an error is no answer."""
    (tmp_path / "bankfile.py").write_text(
        "def pay(a, b): return {'left': a - b, 'who': None}\n"
        "def name(): return 'ann'\n"
        "def fail(): raise ValueError('no money')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert (main("bankfile.py", "pay(30, 10)\n"), capsys.readouterr().out) == (
        0,
        '{"left":"20","who":null}\n',
    )
    assert (main("bankfile.py", "name()"), capsys.readouterr().out) == (0, "ann\n")
    assert (main("bankfile.py", "fail()"), capsys.readouterr().out) == (
        1,
        "ValueError: no money\n",
    )
    with pytest.raises(SystemExit, match="has no function steal"):
        main("bankfile.py", "steal()")
    with pytest.raises(SystemExit, match="no such file"):
        main("none.py", "pay(1, 2)")


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
        (CALLS + 'functions = "a.py"\ncommand = "cat"', "exclude each other"),
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
