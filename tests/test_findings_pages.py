"""The pages of docs/findings: each has its evidence, and the evidence holds."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import isolang
from isolang.cli.main import main

FOLDER = Path(__file__).parents[1] / "docs" / "findings"
NAMES = sorted(page.stem for page in FOLDER.glob("*.md") if page.stem != "README")
LINES = 30  # of a reproduction, without blank ones


@pytest.mark.parametrize("name", NAMES)
def test_a_certificate_holds(name, capsys):
    """Both checkers accept the refutation of the history, by the level that the page names."""
    history = FOLDER / f"{name}.edn"
    assert main(["verify", str(FOLDER / f"{name}.certificate.json"), str(history)]) == 0
    said = capsys.readouterr().out
    assert "the refutation holds" in said
    page = (FOLDER / f"{name}.md").read_text()
    level, anomaly = re.search(r"\| violated \| `([\w-]+)`: (.*?) \|", page).groups()
    verdict = isolang.check(isolang.load_history(history), level)
    assert (verdict.outcome, verdict.violation.anomaly) == ("invalid", anomaly)
    proof = json.loads((FOLDER / f"{name}.certificate.json").read_text())
    assert proof["history"]["name"] == history.name  # not where it was on somebody's machine


@pytest.mark.parametrize("name", NAMES)
def test_a_history_is_its_smallest_part(name):
    """Without any one of its transactions it satisfies the level."""
    from isolang.history.select import sub_history

    history = isolang.load_history(FOLDER / f"{name}.edn")
    page = (FOLDER / f"{name}.md").read_text()
    level = re.search(r"\| violated \| `([\w-]+)`", page).group(1)
    for left_out in range(history.t0):
        kept = [number for number in range(history.t0) if number != left_out]
        operations = [op for number in kept for op in history.operations_of(number)]
        if any(op[0] == "w" for op in history.transaction(left_out).ops) and not any(
            op[0] == "r" for op in history.transaction(left_out).ops
        ):
            continue  # what the keys held at first
        verdict = isolang.check(sub_history(history, operations, kept), level)
        assert verdict.outcome == "valid", left_out


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_whole(name):
    """It quotes the claim with its source, names the version, and stands in the list."""
    page = (FOLDER / f"{name}.md").read_text()
    quoted = [line for line in page.splitlines() if line.startswith("> ")]
    assert any("](https://" in line for line in quoted)
    assert re.search(r"\| database \| \w+ \d", page)
    for section in ("What happens", "Why", "What could be said against it", "Report"):
        assert f"## {section}" in page
    assert f"]({name}.md)" in (FOLDER / "README.md").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_a_reproduction_is_short_and_by_itself(name):
    """Thirty lines at most, which use nothing of this package."""
    text = (FOLDER / f"{name}.py").read_text()
    assert len([line for line in text.splitlines() if line.strip()]) <= LINES
    assert "isolang" not in text
    assert "isocheck" not in text
    compile(text, name, "exec")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("postgresql")])
def test_what_needs_no_server_is_reproduced(name):
    """With the version that the page names."""
    page = (FOLDER / f"{name}.md").read_text()
    package = name.partition("-")[0]
    try:
        found = version(package)
    except PackageNotFoundError:
        found = ""
    if not re.search(rf"\| database \| \w+ {re.escape(found)} \|", page):
        pytest.skip(f"needs the version of {package} that the page names")
    done = subprocess.run(
        [sys.executable, FOLDER / f"{name}.py"], capture_output=True, text=True, check=True
    )
    assert "both committed" in done.stdout


def test_there_are_pages():
    """The tests above have something to test."""
    assert len(NAMES) >= 7
