"""A verdict outlives what cannot be saved or printed: full disks and folders that are none."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import ENVIRONMENT, run_here
from support.sampling import quick_first

from isolang.certify import certificate
from isolang.errors import HistoryError
from isolang.watch import chain

FULL = "/dev/full"
WRITE_SKEW = """\
{:type :invoke, :process 0, :f :txn, :value [[:r :x nil] [:w :y 1]], :index 0}
{:type :invoke, :process 1, :f :txn, :value [[:r :y nil] [:w :x 2]], :index 1}
{:type :ok, :process 0, :f :txn, :value [[:r :x nil] [:w :y 1]], :index 2}
{:type :ok, :process 1, :f :txn, :value [[:r :y nil] [:w :x 2]], :index 3}
"""


@pytest.fixture
def skew(tmp_path):
    file = tmp_path / "skew.edn"
    file.write_text(WRITE_SKEW)
    return file


@pytest.fixture
def no_room(monkeypatch):
    """No certificate can be written."""

    def written(path, text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(certificate, "_written", written)


@pytest.mark.parametrize("form", [[], ["-q"], ["--brief"], ["-o", "json"], ["-o", "junit"]])
def test_a_check_that_cannot_save(capfd, tmp_path, skew, no_room, form):
    """The exit code is the verdict's; the standard error output says what is missing, once."""
    (tmp_path / "file").touch()
    done = run_here(
        capfd, "check", "-s", "ser", skew, *form, "--certificate", tmp_path / "c",
        "--html", tmp_path / "file" / "page.html", "--minimal", tmp_path / "part.edn",
    )  # fmt: skip
    assert done.code == 1
    assert ("-q" in form) == (done.out == "")
    first, second = done.err.splitlines()
    assert "not saved:" in first
    assert "cannot write the certificate" in first
    assert "cannot write the page" in second
    assert (tmp_path / "part.edn").exists()  # one failure keeps nothing else from being saved
    if "json" in form:
        (report,) = done.reports()
        assert (report["verdict"], len(report["unsaved"])) == ("invalid", 2)
        assert report["unsaved"] == report["warnings"]


@pytest.mark.slow
@pytest.mark.skipif(not Path(FULL).exists(), reason="needs /dev/full")
@pytest.mark.parametrize("form", quick_first(["text", "json", "junit", "sarif", "dot"]))
@pytest.mark.parametrize(("level", "code"), [("ser", 1), ("si", 2)])
def test_a_check_that_cannot_print(skew, form, level, code):
    """An invalid history stays that; a valid one was not told to anybody."""
    with open(FULL, "w") as full:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "isolang.cli.main", "-s", level, skew, "-o", form],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=ENVIRONMENT,
        )  # fmt: skip
    assert done.returncode == code
    assert done.stderr == "isocheck: cannot print: No space left on device\n"


@pytest.mark.slow
@pytest.mark.parametrize("form", [[], ["-q"], ["--brief"], ["-o", "json"], ["-o", "sarif"]])
def test_a_run_that_cannot_save(capfd, tmp_path, monkeypatch, no_room, form):
    """An accused database is accused, though there is no room for the certificate."""

    def full(part, target, **options):
        try:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise HistoryError(f"{target}: cannot write the file: {error.strerror}") from error

    monkeypatch.setattr("isolang.history.writers.write_history", full)
    (tmp_path / "file").touch()
    page = [] if form == ["-q"] else ["--html", tmp_path / "file" / "page.html"]
    done = run_here(
        capfd, "run", "memory", "--level", "read committed", "--claims", "ser", "--workload",
        "scripted", "--save", tmp_path, *form, *page,
    )  # fmt: skip
    assert done.code == 1, done.err
    said = [line for line in done.err.splitlines() if "not saved:" in line]
    assert "cannot save the certificate" in said[0]
    assert "cannot save the smallest part" in said[1]
    assert len(said) == 2 + bool(page)
    if "json" in form:
        assert len(json.loads(done.out)["unsaved"]) == 3
    elif form == []:
        assert done.out.startswith("INVALID")


def test_a_watch_that_cannot_save(capfd, tmp_path, skew, no_room, monkeypatch):
    """Neither the page, nor the end of the chain, nor the certificate keeps it from accusing."""

    def end(self, outcome, note):
        raise HistoryError("chain: cannot write the file (No space left on device)")

    monkeypatch.setattr(chain.Chain, "end", end)
    (tmp_path / "file").touch()
    done = run_here(
        capfd, "watch", "-s", "ser", skew, "--until-idle", "0", "--state", tmp_path / "state",
        "--html", tmp_path / "file" / "page.html",
    )  # fmt: skip
    assert done.code == 1, done.err
    assert done.out.startswith("INVALID")
    assert "the chain lacks its end" in done.out
    assert "cannot save the violation" in done.err
    assert "cannot save the page" in done.err


def test_a_watch_without_its_chain_proves_nothing(capfd, tmp_path, skew, monkeypatch):
    """Nothing but a whole chain says that a log is valid."""

    def end(self, outcome, note):
        raise HistoryError("chain: cannot write the file (No space left on device)")

    monkeypatch.setattr(chain.Chain, "end", end)
    done = run_here(
        capfd, "watch", "-s", "si", skew, "--until-idle", "0", "--state", tmp_path / "state"
    )
    assert (done.code, done.out) == (2, "")
