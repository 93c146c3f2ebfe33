"""What is new in a survey."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from isolang.output.records import json_text
from isolang.run.survey.comparison import compare_surveys, load_survey
from isolang.run.survey.survey import Cell, Survey
from isolang.run.target import TargetError


def cell(level, workload, outcome, **more):
    return Cell(level=level, claims="si", workload=workload, outcome=outcome, **more)


def survey(*cells):
    return Survey(
        target="x", database="X 1", seconds=1, transactions=None, sessions=2, seed=0,
        interrupted=False, cells=cells,
    )  # fmt: skip


OLD = survey(
    cell("snapshot", "pairs", "valid"),
    cell("snapshot", "rmw", "valid", anomalies={"write skew": 2}),
    cell("weak", "rmw", "invalid", anomalies={"lost update": 3}),
)


def test_a_violation_is_new_where_the_level_was_kept():
    """Which workload shows it is chance; that the level was violated before is none."""
    new = survey(
        cell("snapshot", "pairs", "invalid", anomalies={"lost update": 1}),
        cell("weak", "pairs", "invalid", anomalies={"lost update": 1}),
    )
    found = [(one.kind, one.level) for one in compare_surveys(OLD, new)]
    assert found == [("violation", "snapshot"), ("anomaly", "snapshot")]


def test_nothing_is_new_of_the_same():
    """Counts do not matter."""
    again = survey(*(replace(one, anomalies=dict.fromkeys(one.anomalies, 9)) for one in OLD.cells))
    assert compare_surveys(OLD, again) == ()


def test_a_level_that_is_kept_now():
    """By the workloads that violated it; others say nothing of that."""
    assert [one.kind for one in compare_surveys(OLD, survey(cell("weak", "rmw", "valid")))] == [
        "kept"
    ]
    assert compare_surveys(OLD, survey(cell("weak", "pairs", "valid"))) == ()
    assert compare_surveys(OLD, survey(cell("weak", "rmw", "valid", grave=True))) == ()


def test_a_level_that_was_not_there():
    """It is said, and as a violation where it is one."""
    kinds = {
        outcome: [one.kind for one in compare_surveys(OLD, survey(cell("more", "rmw", outcome)))]
        for outcome in ("valid", "invalid", "failed")
    }
    assert kinds == {"valid": ["level"], "invalid": ["violation"], "failed": []}


def test_it_is_what_the_survey_has_printed(tmp_path):
    """And nothing else."""
    (tmp_path / "old.json").write_text(json_text(OLD))
    assert load_survey(str(tmp_path / "old.json")) == OLD
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(TargetError, match="not a survey"):
        load_survey(str(tmp_path / "no.json"))
    with pytest.raises(TargetError, match="No such file"):
        load_survey(str(tmp_path / "none.json"))


@pytest.mark.slow
def test_the_exit_code_is_of_what_is_new(tmp_path, capfd, monkeypatch):
    """A violation that is known is none of this run."""
    from support.cli import run_here

    monkeypatch.chdir(tmp_path)
    options = ["--survey", "-w", "scripted", "--level", "read committed", "--claims", "si"]
    first = run_here(capfd, "run", "memory", *options, "-o", "json")
    assert first.code == 1
    (tmp_path / "old.json").write_text(first.out)
    again = run_here(capfd, "run", "memory", *options, "--against", "old.json")
    assert again.code == 0
    assert "nothing new" in again.out
    assert run_here(capfd, "run", "memory", "--against", "old.json").code == 2
