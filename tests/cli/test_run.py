"""What ``isocheck run`` prints, for people and for continuous integration."""

from __future__ import annotations

import json
import sys
from xml.etree import ElementTree

import pytest
from support.children import Children, ConstantMethod, replace_method_after
from support.cli import run_here
from support.sampling import quick_first

from isolang.run.judge.doubts import Doubt
from isolang.run.targets.memory import MemoryClient


@pytest.fixture
def forgetful(monkeypatch, tmp_path_factory):
    """The simulated database, of which every transaction reads the initial state.

    On a busy machine a run records thousands of transactions before it ends, and the search for the
    levels that hold would take half a minute.
    """
    monkeypatch.setattr("isolang.run.judge.judge._LEVELS_WORK", 1_000_000)
    children = Children(monkeypatch, tmp_path_factory.mktemp("children"))
    children.first(replace_method_after, MemoryClient, "read", 0, ConstantMethod(None))


def run(capfd, folder, *options):
    return run_here(
        capfd, "run", "memory", "-w", "rmw", "--transactions", "20", "--keys", "2",
        "--save", folder, *options,
    )  # fmt: skip


@pytest.mark.slow
def test_brief_is_one_line_and_quiet_none(forgetful, tmp_path, capfd):
    """The exit code is that of the verdict; history and certificate are saved all the same."""
    found = run(capfd, tmp_path, "--brief")
    assert (found.code, len(found.out.splitlines())) == (1, 1)
    assert found.out.startswith(f"INVALID  {tmp_path}")
    quiet = run(capfd, tmp_path, "-q")
    assert (quiet.code, quiet.out) == (1, "")
    assert len(list(tmp_path.glob("*.certificate.json"))) == 2


@pytest.mark.slow
def test_junit_and_sarif_show_what_was_sent_and_where_the_evidence_is(forgetful, tmp_path, capfd):
    """The text report, the statements, and the paths of history and certificate."""
    found = run(capfd, tmp_path, "-o", "junit")
    (suite,) = ElementTree.fromstring(found.out)
    body = suite.find("testcase/failure").text
    assert found.code == 1
    assert "What was sent:" in body
    assert str(next(tmp_path.glob("*.certificate.json"))) in body
    found = run(capfd, tmp_path, "-o", "sarif")
    (result,) = json.loads(found.out)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith(".edn")
    assert place["region"]["startLine"] > 1


@pytest.mark.slow
def test_a_valid_verdict_on_too_little_is_no_success_in_a_test_result(tmp_path, capfd, monkeypatch):
    """It is skipped, as what is unknown; the line of --brief says so, too."""
    doubts = (Doubt(text="the server died", grave=True),)
    monkeypatch.setattr("isolang.run.judge.judge.doubts_of", lambda *_: doubts)
    found = run(capfd, tmp_path, "-o", "junit")
    (suite,) = ElementTree.fromstring(found.out)
    assert (found.code, suite.get("skipped"), suite.get("failures")) == (3, "1", "0")
    assert suite[0][0].get("message") == "not proved; the server died"
    found = run(capfd, tmp_path, "--brief")
    assert (found.code, found.out.split()[0]) == (3, "UNKNOWN")


@pytest.mark.parametrize(
    "form",
    [
        ("--brief", "-o", "junit"),
        ("--quiet", "-o", "json"),
        ("--survey", "--brief"),
        ("--survey", "--brief", "-o", "json"),
    ],
)
def test_one_form_at_a_time(capfd, form):
    """A line and a file of results, or a line and a table, cannot both be meant."""
    assert run_here(capfd, "run", "memory", *form).code == 2


@pytest.mark.slow
def test_brief_json_of_a_run_has_its_doubts(tmp_path, capfd, monkeypatch):
    """Without the argument and the input; what the verdict rests on is among the caveats."""
    doubts = (Doubt(text="the server died", grave=False),)
    monkeypatch.setattr("isolang.run.judge.judge.doubts_of", lambda *_: doubts)
    found = run(capfd, tmp_path, "--brief", "-o", "json")
    told = json.loads(found.out)
    assert (found.code, told["verdict"], told["input"]) == (0, "valid", None)
    assert "the server died" in told["caveats"]
    found = run(capfd, tmp_path, "--quiet")
    assert (found.code, "the server died" in found.err) == (0, True)


@pytest.mark.slow
def test_statements_are_not_claimed_where_each_read_takes_another_form(capfd, tmp_path):
    """With --access any the usual forms of the statements are shown, and the text says so."""
    arguments = ("--level", "python", "--workload", "rmw", "--seconds", "20", "--no-rounds")
    found = run_here(capfd, "run", "sqlite", *arguments, "--access", "any", "--save", tmp_path)
    assert found.code == 1, found.err
    assert "What was sent (each read in one of several forms: --access any):" in found.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "form"),
    quick_first(
        [
            ("_save_smallest", "text"),
            ("_save_smallest", "json"),
            ("_save_smallest", "--brief"),
            ("vacuity_doubt", "junit"),
            ("_strongest", "text"),
        ]
    ),
)
def test_the_verdict_stands_if_what_follows_is_interrupted(
    forgetful, tmp_path, capfd, monkeypatch, step, form
):
    """It is printed before anything else is computed; the exit code is that of the verdict."""
    before = []

    def interrupted(*_, **__):
        sys.stdout.flush()
        before.append(capfd.readouterr().out)
        raise KeyboardInterrupt

    monkeypatch.setattr(f"isolang.run.judge.judge.{step}", interrupted)
    found = run(capfd, tmp_path, *((form,) if form.startswith("--") else ("-o", form)))
    assert found.code == 1
    assert "interrupted: invalid stands" in found.err
    if form == "text":
        assert before[0].startswith("INVALID")
        assert ("\n  smallest " in before[0]) is (step == "_strongest")
        assert "\n  held " not in before[0] + found.out
    elif form == "json":
        assert json.loads(found.out)["verdict"] == "invalid"
    else:
        assert "INVALID" in found.out


@pytest.mark.slow
def test_a_page_that_is_interrupted_changes_no_exit_code(forgetful, tmp_path, capfd, monkeypatch):
    """Nor is it saved."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("isolang.report.page", interrupted)
    page = tmp_path / "page.html"
    found = run(capfd, tmp_path, "--html", page)
    assert (found.code, page.exists()) == (1, False)
    assert "held" in found.out
