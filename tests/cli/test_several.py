"""Several histories, folders of them, short output, and what ``pyproject.toml`` says."""

import json
import re
import shutil
from pathlib import Path

import pytest
from support.cli import LOST_UPDATE, VALID, run_here
from support.paths import ROOT

ON_CALL = ROOT / "examples" / "on-call.edn"
LOST = ROOT / "tests" / "litmus" / "lost-update.edn"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A project with histories in two folders, and something else."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "inner").mkdir(parents=True)
    (tmp_path / "runs" / "a.txt").write_text(VALID)
    (tmp_path / "runs" / "inner" / "b.txt").write_text(LOST_UPDATE)
    (tmp_path / "runs" / "notes.md").write_text("hello")
    (tmp_path / "runs" / "latest").symlink_to("inner")
    return tmp_path


def test_a_folder_stands_for_the_histories_in_it(folder, capfd):
    """Those of inner folders too, each once; what is none is named."""
    found = run_here(capfd, "--spec", "si", "--brief", "runs")
    lines = found.out.splitlines()
    assert [line.split("  ")[:3] for line in lines[:-1]] == [
        ["VALID", "runs/a.txt", "si"],
        ["INVALID", "runs/inner/b.txt", "si"],
    ]
    assert lines[-1] == "2 verdicts: 1 valid, 1 invalid"
    assert "notes.md" in found.err
    assert found.code == 1


def test_a_folder_without_a_history_is_an_error(folder, capfd):
    """It is not that all of its histories are valid."""
    (folder / "empty").mkdir()
    found = run_here(capfd, "--spec", "si", "empty")
    assert (found.code, "history" in found.out + found.err) == (2, True)


def test_a_store_of_jepsen(folder, capfd):
    """Each run is one history, by its folder; the links to the latest are not counted again."""
    for time in ("20260101T000000Z", "20260102T000000Z"):
        run = folder / "store" / "bank" / time
        run.mkdir(parents=True)
        shutil.copy(ON_CALL, run / "history.edn")
        (run / "results.edn").write_text("{:valid? true}")
        (run / "jepsen.log").write_text("INFO jepsen started")
        (run / "test.jepsen").write_bytes(b"JEPSEN\0\0\0\1binary")
    (folder / "store" / "bank" / "latest").symlink_to("20260102T000000Z")
    found = run_here(capfd, "--spec", "ser", "--brief", "store")
    assert [line.split("  ")[1] for line in found.out.splitlines()[:-1]] == [
        "store/bank/20260101T000000Z",
        "store/bank/20260102T000000Z",
    ]


@pytest.mark.parametrize("options", [[], ["--from", "edn"]])
def test_histories_below_a_history_are_judged(folder, capfd, options):
    """A run's folder may hold folders of other runs: none of them is passed over."""
    top = folder / "store"
    for inner, example in (("", "on-call"), ("runs/a", "on-call"), ("runs/b", "lost")):
        (top / inner).mkdir(parents=True, exist_ok=True)
        source = ON_CALL if example == "on-call" else LOST
        shutil.copy(source, top / inner / "history.edn")
    (top / "results.edn").write_text("{:valid? true}")
    (top / "runs" / "node.log").write_text("INFO started")
    found = run_here(capfd, "--spec", "si", "--brief", *options, "store")
    assert [line.split("  ")[:2] for line in found.out.splitlines()] == [
        ["VALID", "store"],
        ["VALID", "store/runs/a"],
        ["INVALID", "store/runs/b"],
        ["3 verdicts: 2 valid, 1 invalid"],
    ]
    assert found.code == 1
    assert "left out: store/runs/node.log" in found.err
    assert run_here(capfd, "--spec", "si", "-q", *options, "store").code == 1
    assert run_here(capfd, "levels", *options, "store", "--at-least", "si").code == 1


def test_a_short_line_says_that_nothing_was_observed(folder, capfd):
    """A history without a read of another session's write is valid, and no evidence."""
    (folder / "alone.txt").write_text("w(0,1,1,1)\n")
    shown = run_here(capfd, "--spec", "si", "--brief", "alone.txt").out
    assert shown == "VALID  alone.txt  si  nothing was observed\n"


def test_quiet_says_it_by_the_exit_code(folder, capfd):
    """Errors are still said: they are no verdicts."""
    found = run_here(capfd, "--spec", "si", "-q", "runs/a.txt", "runs/inner/b.txt")
    assert (found.code, found.out) == (1, "")
    found = run_here(capfd, "--spec", "si", "-q", "gone.txt")
    assert (found.code, found.out) == (2, "")
    assert "gone.txt" in found.err


def test_brief_json_says_the_verdict_in_fewer_words(folder, capfd):
    """One object for each verdict, of the same schema, without the argument and the input."""
    whole = json.loads(run_here(capfd, "-s", "si", "-o", "json", "runs/inner/b.txt").out)
    short = json.loads(run_here(capfd, "-s", "si", "-o", "json", "--brief", "runs/inner/b.txt").out)
    assert short.keys() == whole.keys()
    assert (short["violation"], short["input"], short["statistics"]) == (None, None, {})
    for key in ("history", "spec", "verdict", "reason", "anomaly", "certified", "caveats"):
        assert short[key] == whole[key]
    found = run_here(capfd, "-s", "si", "-o", "edn", "--brief", "runs/inner/b.txt")
    assert ':verdict "invalid"' in found.out
    assert ":violation nil" in found.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-q", "-o", "json"], "--quiet prints no verdicts"),
        (["--brief", "-o", "dot"], "--brief: expected --output text, json or edn"),
    ],
)
def test_short_forms_that_say_nothing_are_refused(folder, capfd, options, said):
    """A picture has no brief form, and a verdict that is not printed no format."""
    found = run_here(capfd, "--spec", "si", *options, "runs/a.txt")
    assert (found.code, said in found.err) == (2, True)


def test_elles_names(folder, capfd):
    """With or without their colons; an unknown one is refused with the nearest."""
    found = run_here(
        capfd, "--consistency-models", ":serializable,snapshot-isolation", "--brief", str(ON_CALL)
    )
    assert [line.split()[0] for line in found.out.splitlines()] == ["INVALID", "VALID", "2"]
    found = run_here(capfd, "--consistency-models", "serialisable", str(ON_CALL))
    assert (found.code, "nearest is serializable" in found.err) == (2, True)


def test_color(folder, capfd, monkeypatch):
    """On request also where the output is no terminal; the option wins over the variables."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    shown = run_here(capfd, "--spec", "si", "--color", "always", "runs/a.txt").out
    assert "\x1b[" in shown
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in run_here(capfd, "--spec", "si", "runs/a.txt").out
    plain = run_here(capfd, "--spec", "si", "--color", "never", "runs/a.txt").out
    assert "\x1b" not in plain


# --- levels ---


def test_levels_of_several(folder, capfd):
    """JSON has an object a line; the exit code says whether all satisfy a level."""
    found = run_here(capfd, "levels", "runs", "-o", "json")
    assert [json.loads(line)["history"] for line in found.out.splitlines()] == [
        "runs/a.txt",
        "runs/inner/b.txt",
    ]
    assert found.code == 0
    assert run_here(capfd, "levels", "runs", "--at-least", "pl-2").code == 0
    assert run_here(capfd, "levels", "runs", "--at-least", "si").code == 1
    assert run_here(capfd, "levels", "runs/a.txt", "--at-least", "si").code == 0
    found = run_here(capfd, "levels", "runs/a.txt", "--at-least", "sser")
    assert (found.code, "real time" in found.err) == (2, True)
    assert run_here(capfd, "levels", "runs/a.txt", "--at-least", "sii").code == 2


# --- pyproject.toml ---


@pytest.fixture
def project(folder):
    def write(text):
        (folder / "pyproject.toml").write_text(text)

    return write


@pytest.mark.slow
def test_the_project_says_what_is_meant(project, capfd, folder, monkeypatch):
    """From inner folders, too; paths are seen from the file."""
    (folder / "specs").mkdir()
    (folder / "specs" / "own.iso").write_text('include "adya.iso"\nacyclic so | wr as own\n')
    project('[tool.isocheck]\nspec = ["si", "specs/own.iso"]\ntimeout = 60\n')
    monkeypatch.chdir(folder / "runs")
    found = run_here(capfd, "--brief", "a.txt")
    assert [line.split("  ")[2] for line in found.out.splitlines()[:-1]] == [
        "si",
        "../specs/own.iso",
    ]
    found = run_here(capfd, "--brief", "--spec", "ser", "a.txt")
    assert found.out.split("  ")[2] == "ser\n"
    found = run_here(capfd, "-o", "json", "--spec", "ser", "a.txt")
    assert json.loads(found.out)["limits"]["timeout"] == 60


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sepc = 'si'", "did you mean spec?"),
        ("spec = 3", "expected a level or a file"),
        ("timeout = 'long'", "timeout: wrong value (got 'long', expected a number)"),
        ("timeout = -1", "timeout must be positive (got -1)"),
        (
            "failed-cas = 'maybe'",
            "failed-cas: wrong value (got 'maybe', expected auto, compared or nothing)",
        ),
        ("prefix = 'a'", "unknown key"),
        ("check = 3", "tool.isocheck.check: not a table"),
        ("check.thread = 3", "[tool.isocheck.check] thread: unknown key\n  hint: did you mean"),
        ("= 3", "cannot be read"),
    ],
)
def test_mistakes_in_it_are_named(project, capfd, text, said):
    """With the file and the key."""
    project(f"[tool.isocheck]\n{text}\n")
    found = run_here(capfd, "runs/a.txt")
    assert found.code == 2
    assert "pyproject.toml" in found.err
    assert said in found.err


def test_a_command_has_a_section_of_its_own(project, capfd):
    """With the options of its records, bounds included; others have their own."""
    project(
        "[tool.isocheck]\nthreads = 1\n"
        "[tool.isocheck.generate]\ntransactions = 3\nbug = ['long fork']\nlists = true\n"
        "[tool.isocheck.run]\nsessions = 0\n"
    )
    made = run_here(capfd, "generate", "made.edn", "--to", "edn")
    assert (made.code, "lists" in made.err or ":append" in Path("made.edn").read_text()) == (
        0,
        True,
    )
    assert "made.edn: 7 transactions" in made.err
    refused = run_here(capfd, "run", "memory", "--transactions", "5")
    assert refused.code == 2
    assert "[tool.isocheck.run] sessions must be at least 1 (got 0)" in refused.err
    assert run_here(capfd, "--spec", "si", "runs/a.txt").code == 0


def test_other_projects_do_not_count(project, capfd):
    """A file without the section says nothing, and then a spec must be named."""
    project("[tool.other]\nspec = 'si'\n")
    found = run_here(capfd, "runs/a.txt")
    assert (found.code, "--spec/-s SPEC is missing" in found.err) == (2, True)


def test_an_input_is_described_once(tmp_path, capfd):
    """Several levels of one history are told apart by what differs; another history begins anew."""
    for name, text in (("a", VALID), ("b", LOST_UPDATE)):
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / name) for name in "ab"]
    shown = run_here(capfd, *files, "-s", "si", "-s", "pl-1").out
    reports = [part for part in re.split(r"(?m)^(?=VALID|INVALID)", shown) if part.strip()]
    assert ["  input " in part for part in reports] == [True, False, True, False]
    assert ["levels " in part for part in reports] == [True, False, True, False]
    assert all("certified " in part for part in reports)
