"""``isocheck`` without check: help, version, convert, stats."""

import json
import subprocess
import sys

import pytest
from support.cli import ENVIRONMENT, LOST_UPDATE, VALID, run_here


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["-h"], ["check", "--help"], ["verify", "--help"], ["convert", "--help"],
     ["stats", "--help"]],
)  # fmt: skip
def test_help(capfd, arguments):
    """Every command explains itself."""
    run = run_here(capfd, *arguments)
    assert run.code == 0
    assert "Usage: isocheck" in run.out


def test_no_arguments_show_the_help(capfd):
    """As an error: nothing was done."""
    run = run_here(capfd)
    assert run.code == 2
    assert "Usage: isocheck" in run.out + run.err


def test_help_imports_nothing_heavy():
    """So that it is there at once."""
    code = (
        "import sys; from isolang.cli.main import main; main(['--help']);"
        "print([m for m in ('numpy', 'lark', 'isolang._native', 'pydantic', 'networkx') "
        "if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT,
    )
    assert done.stderr.strip() == "[]"


def test_version(capfd):
    """The package's version, or that it is not installed."""
    run = run_here(capfd, "--version")
    assert run.code == 0
    assert run.out.startswith("isocheck ")


@pytest.mark.parametrize("to", ["edn", "dbcop", "plume"])
def test_convert_round_trip(tmp_path, capfd, to):
    """Whatever it is converted to, the verdict stays."""
    source, target = tmp_path / "a.txt", tmp_path / "b"
    source.write_text(LOST_UPDATE)
    # Plume and bincode have no real time; EDN gives it to every history.
    assert run_here(capfd, "convert", source, target, "--to", to).code == 0
    (report,) = run_here(capfd, "-s", "si", "-o", "json", target).reports()
    assert (report["anomaly"], report["transactions"]) == ("lost update", 2)


def test_convert_says_what_is_lost(tmp_path, capfd):
    """Nothing is dropped silently."""
    source = tmp_path / "a.edn"
    source.write_text(
        '{:type :invoke, :process 0, :f :txn, :value [[:w "k" 1]]}\n'
        '{:type :ok, :process 0, :f :txn, :value [[:w "k" 1]]}\n'
    )
    target = tmp_path / "b.txt"
    run = run_here(capfd, "convert", source, target, "--to", "plume")
    assert run.code == 2
    assert "real" in run.err
    assert not target.exists()
    run = run_here(
        capfd, "convert", source, target, "--to", "plume", "--renumber", "--drop", "real-time"
    )
    assert run.code == 0, run.err
    assert "real" in run.err
    assert run_here(capfd, "convert", source, target, "--to", "nosuch").code == 2


def test_convert_to_standard_output(tmp_path, capfd):
    """``-`` is the standard output; what is said about it goes to stderr."""
    source = tmp_path / "a.txt"
    source.write_text(VALID)
    run = run_here(capfd, "convert", source, "-", "--to", "edn")
    assert run.code == 0
    assert run.out.startswith("{")
    assert "2 transactions" in run.err


def test_stats(tmp_path, capfd):
    """Text for people, JSON for programs."""
    source = tmp_path / "a.txt"
    source.write_text(LOST_UPDATE)
    text = run_here(capfd, "stats", source)
    assert text.code == 0
    assert "read-modify-write 100%" in text.out
    figures = json.loads(run_here(capfd, "stats", "--output", "json", source).out)
    assert (figures["transactions"], figures["operations"], figures["keys"]) == (2, 4, 1)
    assert run_here(capfd, "stats", tmp_path / "missing").code == 2


def test_stats_says_which_checks_could_be_violated(tmp_path, capfd):
    """A lost update needs two writers of a key; a level is asked for by its name."""
    lost, apart = tmp_path / "lost.txt", tmp_path / "apart.txt"
    lost.write_text(LOST_UPDATE)
    apart.write_text("r(0,0,1,1)\nw(0,1,1,1)\nr(1,0,2,2)\nw(1,2,2,2)\n")
    text = run_here(capfd, "stats", "--spec", "pl-cs", apart)
    assert (
        "check G-cursor   cannot be violated: no key is written by two transactions; "
        "no transaction read by key a version" in text.out
    )
    assert "; no key is written by two transactions\n" in text.out
    for history, possible in ((lost, True), (apart, False)):
        run = run_here(capfd, "stats", "-s", "si", "-o", "json", history)
        (check,) = json.loads(run.out)["checks"]
        assert (check["check"], check["possible"]) == ("SI", possible)
    assert run_here(capfd, "stats", "-s", "sii", lost).code == 2


def test_verify_needs_a_certificate(tmp_path, capfd):
    """Other files are refused with a hint."""
    source = tmp_path / "a.txt"
    source.write_text(VALID)
    run = run_here(capfd, "verify", source, source)
    assert run.code == 2
    assert run.err.startswith("isocheck: ")


def test_verify_uses_the_certificate_s_own_spec(tmp_path, capfd, monkeypatch):
    """A spec of one's own is verified from the certificate alone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text(LOST_UPDATE)
    (tmp_path / "own.iso").write_text('spec own\ninclude "adya.iso"\nacyclic so | rw as mine\n')
    (report,) = run_here(
        capfd, "-s", "own.iso", "-o", "json", "--certificate", "c", "a.txt"
    ).reports()
    (tmp_path / "own.iso").unlink()
    run = run_here(capfd, "verify", report["certificate"], "a.txt")
    assert run.code == 0, run.err
    assert "invalid under own" in run.out


def test_the_package_is_a_command():
    """``python -m isolang`` is ``isocheck``."""
    run = subprocess.run(
        [sys.executable, "-P", "-m", "isolang", "--version"],
        capture_output=True, text=True, check=True, env=ENVIRONMENT,
    )  # fmt: skip
    assert run.stdout.startswith("isocheck ")


@pytest.mark.parametrize("name", ["lint", "compare", "place", "show", "explain", "format"])
def test_a_command_of_spec_without_spec_is_pointed_to(tmp_path, monkeypatch, capfd, name):
    """It would be taken for a history, unless there is one of this name."""
    monkeypatch.chdir(tmp_path)
    run = run_here(capfd, name, "my file.iso", "si")
    assert run.code == 2
    assert f"isocheck: {name} is a command of isocheck spec" in run.err
    assert f"hint: isocheck spec {name} 'my file.iso' si" in run.err
    (tmp_path / name).write_text(VALID)
    assert run_here(capfd, "-s", "si", name).code == 0
    assert run_here(capfd, name, "-s", "si").code == 0
