"""`docs/course.md`: each step forbids its history, and the step before it does not."""

from __future__ import annotations

import re

import pytest
from support.cli import run_here
from support.paths import ROOT

PAGE = (ROOT / "docs" / "course.md").read_text(encoding="utf-8")
STEPS = PAGE.split("\n## ")[1:]


def block(step, kind):
    (found,) = re.findall(rf"```{kind}\n(.*?)```", step, re.DOTALL)
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files that the page says to save."""
    for number, step in enumerate(STEPS, 1):
        (tmp_path / f"step{number}.iso").write_text(block(step, "iso"))
        (tmp_path / f"step{number}.edn").write_text(block(step, "edn"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_there_are_ten_steps():
    assert [step.split(".")[0] for step in STEPS] == [str(n) for n in range(1, 11)]


@pytest.mark.parametrize("number", range(1, 11))
def test_a_step_forbids_its_history_and_the_one_before_does_not(folder, capfd, number):
    (command,) = re.findall(r"^\$ isocheck (.*)$", STEPS[number - 1], re.MULTILINE)
    run = run_here(capfd, *command.split())
    assert run.code == 1, run.out + run.err
    assert "certified: yes" in " ".join(run.out.split()) or "INVALID" in run.out
    # The ninth says what the eighth says.
    if number not in (1, 9):
        assert run_here(capfd, "--spec", f"step{number - 1}.iso", f"step{number}.edn").code == 0


@pytest.mark.slow
def test_the_commands_in_the_text_say_what_it_says(folder, capfd):
    assert "are equal" in run_here(capfd, "spec", "compare", "step8.iso", "step9.iso").out
    run = run_here(capfd, "spec", "place", "step10.iso")
    assert "step10 is weaker than ser, and stronger than" in run.out
    run = run_here(capfd, "spec", "try", "step1.iso", "--history", "step1.edn", "--once")
    assert run.code == 0
    assert "place        step1 is weaker than" in run.out
    assert "invalid      step1.edn" in run.out
