"""What runs on GitHub does what it says: the action, step by step, as a runner would do it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.paths import ROOT

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def scripts(node):
    """Every shell script in a workflow."""
    if isinstance(node, dict):
        yield from (text for name, text in node.items() if name == "run")
        node = list(node.values())
    if isinstance(node, list):
        for inner in node:
            yield from scripts(inner)


@pytest.mark.parametrize("file", [ROOT / "action.yml", *WORKFLOWS], ids=lambda file: file.name)
def test_scripts_are_shell(file):
    """Each can be parsed, with GitHub's expressions as words."""
    for script in scripts(yaml.safe_load(file.read_text())):
        text = script.replace("${{", "x").replace("}}", "x")
        assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0


@pytest.mark.parametrize(("spec", "code"), [("si", 0), ("si ser", 1)])
def test_the_action_judges_and_keeps_the_evidence(tmp_path, spec, code):
    """The job fails on a violation; the summary says why; each verdict has page and certificate."""
    program = tmp_path / "isocheck" / "bin" / "isocheck"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m isolang.cli.main "$@"\n')
    program.chmod(0o755)
    judge = next(step for step in ACTION["runs"]["steps"] if "$HISTORY" in step.get("run", ""))
    environment = os.environ | {
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "SPEC": spec,
        "OPTIONS": "--timeout 60",
        "HISTORY": str(ROOT / "examples" / "on-call.edn"),
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", judge["run"]],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    summary = (tmp_path / "summary.md").read_text()
    assert summary == done.stdout
    assert ("```mermaid" in summary) == (code == 1)
    kept = sorted(Path(f).suffix for f in os.listdir(tmp_path / "isocheck-evidence"))
    levels = len(spec.split())
    assert kept == [".html"] * levels + [".json"] * levels + [".md"]


def test_every_input_of_the_action_is_used_and_documented():
    """In a step, and in the table of docs/ci.md."""
    steps = str(ACTION["runs"])
    page = (ROOT / "docs" / "ci.md").read_text()
    for name in ACTION["inputs"]:
        assert f"inputs.{name}" in steps
        assert f"\n| `{name}` |" in page
