"""A misspelt field of an operation map: the message has the column, and the name that was meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from isolang import load_history
from isolang.errors import HistoryError, UnsupportedError

if TYPE_CHECKING:
    from isolang.history.history import History

TXN = (
    "{:type :invoke, :process 0, :f :txn, :value [[:w :x 1]]}\n"
    "{:type :ok, :process 0, :f :txn, :value [[:w :x 1]]}\n"
)
REGISTER = (
    "{:type :invoke, :process 0, :f :read, :value nil}\n"
    "{:type :ok, :process 0, :f :read, :value nil}\n"
    "{:type :invoke, :process 1, :f :write, :value 1}\n"
    "{:type :ok, :process 1, :f :write, :value 1}\n"
)
BANK = (
    "{:type :invoke, :process 0, :f :read, :value nil}\n"
    "{:type :ok, :process 0, :f :read, :value {0 5, 1 5}}\n"
    "{:type :invoke, :process 1, :f :transfer, :value {:from 0, :to 1, :amount 2}}\n"
    "{:type :ok, :process 1, :f :transfer, :value {:from 0, :to 1, :amount 2}}\n"
)
# Keys of maps that Jepsen and its users write, some of which resemble a field.
OTHERS = (
    ':time 3, :index 1, :error [:timeout ":vlaue"], :node "n1", :exception {}, :clock-offsets {}, '
    ':final? true, :debug {:tpye 1}, :link 3, :vals 1, :procs 2, "tpye" 2, :ts 3, '
)


def load(folder: Path, text: str) -> History:
    path = folder / "h"
    path.write_text(text)
    return load_history(path)


def refused(folder: Path, text: str) -> str:
    with pytest.raises((HistoryError, UnsupportedError)) as error:
        load(folder, text)
    return str(error.value).removeprefix(f"{folder / 'h'}: ")


def misspell(text: str, field: str, slip: str, *, line: int = 2) -> tuple[str, str]:
    """Return a text with a misspelt field on one line, and the end of the message."""
    lines = text.splitlines()
    before, after = lines[line - 1].split(field)
    lines[line - 1] = f"{before}{slip}{after}"
    column = len(before.encode()) + 1
    end = f"(got '{slip}' at column {column}, expected '{field}'); did you mean '{field}'?"
    return "\n".join(lines), end


@pytest.mark.parametrize("text", [TXN, REGISTER, BANK], ids=["txn", "register", "bank"])
@pytest.mark.parametrize(
    ("field", "slip"),
    [
        (":type", ":tpye"), (":type", ":typ"), (":type", ":types"),
        (":process", ":proces"), (":process", ":porcess"), (":process", ":processes"),
        (":value", ":vlaue"), (":value", ":values"), (":value", ":valeu"),
    ],
)  # fmt: skip
def test_edn(tmp_path: Path, text: str, field: str, slip: str) -> None:
    """The message names the key that stands there, its column, and the field."""
    wrong, end = misspell(text, field, slip)
    message = refused(tmp_path, wrong)
    assert message.startswith("line 2: ")
    assert message.endswith(end)


@pytest.mark.parametrize(
    ("field", "slip"), [("type", "tpye"), ("process", "proces"), ("value", "vlaue")]
)
def test_json(tmp_path: Path, field: str, slip: str) -> None:
    """Names of JSON are shown as they are written there."""
    maps = [
        {"type": kind, "process": 0, "f": "txn", "value": [["w", "x", 1]]}
        for kind in ("invoke", "ok")
    ]
    wrong, end = misspell("\n".join(map(json.dumps, maps)), f'"{field}"', f'"{slip}"')
    message = refused(tmp_path, wrong)
    assert message.startswith("line 2: ")
    assert message.endswith(end)


def test_the_line_of_the_key_if_the_map_has_several(tmp_path: Path) -> None:
    text = "{:type :ok, :process 0, :f :txn,\n  :ö 1 :vlaue [[:w :x 1]]}\n"
    end = "(got ':vlaue' at column 9 of line 2, expected ':value'); did you mean ':value'?"
    assert refused(tmp_path, text) == f"line 1: a transaction without :value {end}"
    bank = BANK.replace(", :value {0 5", ",\n :vlaue {0 5", 1)
    assert refused(tmp_path, bank).startswith("line 2: an :ok without :value")
    assert "':vlaue' at column 2 of line 3, expected ':value'" in refused(tmp_path, bank)


@pytest.mark.parametrize("text", [TXN, REGISTER, BANK], ids=["txn", "register", "bank"])
def test_other_keys_are_accepted(tmp_path: Path, text: str) -> None:
    """Where the fields are there, no other key is a misspelling, whatever it resembles."""
    plain = load(tmp_path, text)
    found = load(tmp_path, text.replace("{:type", "{" + OTHERS.replace(":index 1, ", "") + ":type"))
    assert found.columns.transactions() == plain.columns.transactions()
    assert found.columns.operations() == plain.columns.operations()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{:type :ok, :process 0, :f :txn, " + OTHERS.replace(":vals 1, ", "") + "}",
            "line 1: a transaction without :value (got nil, expected a vector of micro-operations)",
        ),
        (
            "{:type :ok, :process 0, :f :txn, :value nil, :vlaue [[:w :x 1]]}",
            "line 1: a transaction without :value (got nil, expected a vector of micro-operations)",
        ),
        (
            "{:process 0, :f :txn, :time 1, :value [[:w :x 1]]}",
            "line 1: an operation map without :type (expected :invoke, :ok, :fail or :info)",
        ),
    ],
    ids=["other keys", "nil", "time is not type"],
)
def test_a_field_that_is_not_misspelt_has_no_hint(tmp_path: Path, text: str, message: str) -> None:
    """A field with nil is there, and known fields and distant names are not meant for others."""
    assert refused(tmp_path, text) == message


@pytest.mark.parametrize("text", [TXN, BANK], ids=["transactions", "bank"])
@pytest.mark.parametrize("slip", [":proces", ":porcess", ":prcess", ":Process"])
def test_process_misspelt_everywhere(tmp_path: Path, text: str, slip: str) -> None:
    """Then each transaction is a session, so the verdict says that the name may be misspelt."""
    what = f"no operation has :process, but some have {slip}; did you mean :process?"
    caveats = load(tmp_path, text.replace(":process", slip)).caveats
    assert f"perhaps a misspelt field: {what}" in caveats
    none = text.replace(":process 0, ", "").replace(":process 1, ", "")
    for other in (text, none, none.replace("{:type", "{" + OTHERS + ":type")):
        assert not any("misspelt" in one for one in load(tmp_path, other).caveats)


def test_registers_without_process(tmp_path: Path) -> None:
    """Operations on registers need a process; the message says so, with the name meant."""
    slip = REGISTER.replace(":process", ":proces")
    what = "line 1: an operation without :process (got ':proces' at column 17, expected ':process')"
    assert refused(tmp_path, slip) == f"{what}; did you mean ':process'?"
    none = REGISTER.replace(":process 0, ", "").replace(":process 1, ", "")
    assert "without :process (got none" in refused(tmp_path, none)


def test_process_misspelt_everywhere_in_json(tmp_path: Path) -> None:
    operations = [
        {"type": kind, "proces": 0, "f": "txn", "value": [["w", "x", 1]]}
        for kind in ("invoke", "ok")
    ]
    (caveat,) = load(tmp_path, json.dumps(operations)).caveats
    assert caveat.endswith('some have "proces"; did you mean "process"?')
