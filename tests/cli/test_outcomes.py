"""``isocheck outcomes``, as users see it."""

from __future__ import annotations

import json

import jsonschema
import pytest
from support.cli import run_here
from support.paths import ROOT

SKEW = 'a = r(x) w(y, 1) || b = r(y) w(x, 1)\nexists a = 0 and b = 0 "write skew"'
LEVELS = ("-s", "si", "-s", "ser")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "skew.litmus").write_text(SKEW)
    return tmp_path


def test_the_table_names_the_anomaly_of_what_is_forbidden(folder, capfd):
    """The text has a row for each outcome, a column for each level, and the program's question."""
    run = run_here(capfd, "outcomes", "skew.litmus", *LEVELS)
    assert run.code == 0
    lines = run.out.splitlines()
    assert lines[0] == "skew"
    assert "  1  0  0  allowed  write skew" in lines
    assert "  2  0  1  allowed  allowed" in lines
    assert "  4  1  1  G1c      G1c" in lines
    assert "  a = 0 and b = 0  allowed  forbidden  write skew" in lines
    assert "4 outcomes, 8 verdicts, all certified" in lines[-1]


def test_json_follows_its_schema(folder, capfd):
    """The report has each outcome with its history, and which of them the condition names."""
    run = run_here(capfd, "outcomes", "skew.litmus", *LEVELS, "-o", "json")
    found = json.loads(run.out)
    schema = json.loads((ROOT / "docs/schema/outcomes.json").read_text())
    jsonschema.validate(found, schema, cls=jsonschema.Draft202012Validator)
    assert found["outcomes"][0]["reads"] == {"a": 0, "b": 0}
    assert [one["standing"] for one in found["outcomes"][0]["levels"]] == ["allowed", "forbidden"]
    assert found["outcomes"][0]["levels"][1]["anomaly"] == "write skew"
    assert '[:r "x" nil]' in found["outcomes"][0]["history"]
    assert found["exists"][0]["outcomes"] == [1]
    assert [one["standing"] for one in found["exists"][0]["levels"]] == ["allowed", "forbidden"]


def test_latex_is_a_table(folder, capfd):
    """What LaTeX would obey in a program is escaped; a tick says that a level allows an outcome."""
    run = run_here(capfd, "outcomes", "a_b = r(x) || w(x, 1)", *LEVELS, "-o", "latex")
    assert run.code == 0
    assert r"a\_b & si & ser \\" in run.out.splitlines()
    assert r"0 & \checkmark & \checkmark \\" in run.out.splitlines()
    assert run.out.rstrip().endswith(r"\end{tabular}")


def test_every_verdict_is_saved_with_its_proof(folder, capfd):
    """The certificates of ``--save`` prove what the table says of the histories beside them."""
    run = run_here(capfd, "outcomes", "skew.litmus", *LEVELS, "--save", "out", "--html", "t.html")
    assert run.code == 0
    names = {path.name for path in (folder / "out").iterdir()}
    certificates = sorted(name for name in names if name.endswith(".certificate.json"))
    assert len(certificates) == 8
    assert {name.replace("certificate.json", "svg") for name in certificates} == {
        name for name in names if name.endswith(".svg")
    }
    for name in certificates:
        history = f"out/{name.partition('.')[0]}.edn"
        checked = run_here(capfd, "verify", f"out/{name}", history)
        assert checked.code == 0
        forbidden = name.startswith(("1.ser", "4."))
        assert f"is {'invalid' if forbidden else 'valid'} under" in checked.out
    page = (folder / "t.html").read_text()
    assert page.count("<svg") == 8
    assert '<td class="invalid">write skew</td>' in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["skew.litmus"], "--spec/-s SPEC is missing"),
        (["none.litmus", *LEVELS], "none.litmus: cannot read the file: No such file or directory"),
        (["skew.litmus", "-s", "si", "-s", "si"], "each level may be named only once"),
        (["skew.litmus", "-s", "sser"], "uses real time, but the history has none"),
        (["w(x, a)", *LEVELS], "<text>:1:6: `a` has no value here"),
        (["r(x) || ", *LEVELS], "got `the end of the text`, expected a step"),
        (["a = r(x) || a = r(y)", *LEVELS], "another read already has the name `a`"),
        (["a = r(x) exists b = 1", *LEVELS], "`b` has no value here"),
        (["r(x) )", *LEVELS], "got `)`, expected a step, `->`, `||` or `exists`"),
        (["r(x) ; r(y)", *LEVELS], "unexpected character ';'"),
        (["w(x, 99999999999999999)", *LEVELS], "too large (got 99999999999999999, expected"),
        (["r(x) " * 101, *LEVELS], "too many steps (expected at most 100)"),
        (["||".join(["r(x)"] * 13), *LEVELS], "too many transactions (got 13, expected at most"),
        (
            ["w(x, " + "(" * 99 + "1" + ")" * 99 + ")", *LEVELS],
            "parentheses are nested too deeply (expected at most 30)",
        ),
        (["r(x) w(x,1) || r(x) w(x,2)", *LEVELS, "--most", "3"], "expected at most 3"),
    ],
)
def test_what_cannot_be_used(folder, capfd, arguments, said):
    """A mistake ends with exit code 2 and says where it is."""
    run = run_here(capfd, "outcomes", *arguments)
    assert run.code == 2
    assert said in run.err
    assert "internal error" not in run.err


def test_a_verdict_without_time_is_unknown(folder, capfd):
    """What the time does not suffice for is unknown, with the reason, and the exit code is 3."""
    run = run_here(capfd, "outcomes", "skew.litmus", "-s", "si", "--timeout", "1e-9")
    assert run.code == 3
    assert "timeout: the time limit was reached" in run.err


@pytest.mark.parametrize("pair", [("si", "ser"), ("psi", "si"), ("pc", "si"), ("ra", "cc")])
def test_what_tells_two_levels_apart_is_a_program(folder, capfd, pair):
    """What ``isocheck litmus A B`` finds has one outcome, which A allows and B forbids."""
    found = json.loads(run_here(capfd, "litmus", *pair, "-o", "json").out)["results"][0]["program"]
    command = ["outcomes", found, "-s", pair[0], "-s", pair[1], "-o", "json"]
    (outcome,) = json.loads(run_here(capfd, *command).out)["outcomes"]
    assert [one["standing"] for one in outcome["levels"]] == ["allowed", "forbidden"]
    assert all(one["certified"] for one in outcome["levels"])
