"""A survey says of every level and workload what held, and how often what did not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.test_schema import satisfies
from support.cli import run_here

import isolang
from isolang import History, Transaction
from isolang.run.survey.survey import count_anomalies


def reading_and_writing(session, *keys, value):
    """A transaction that reads keys as they were loaded and writes the last one."""
    reads = [("r", key, None) for key in keys]
    return Transaction([*reads, ("w", keys[-1], value)], session=session)


def test_anomalies_are_counted_each_once():
    """Two lost updates on two keys and a write skew on two others are three, by their names."""
    history = History.from_transactions(
        [
            *(reading_and_writing(s, "x", value=i) for i, s in enumerate("ab", 1)),
            *(reading_and_writing(s, "y", value=i) for i, s in enumerate("cd", 1)),
            reading_and_writing("e", "p", "q", value=1),
            reading_and_writing("f", "q", "p", value=1),
        ]
    )
    counted, everything = count_anomalies(history)
    assert counted == {"lost update": 2, "write skew": 1}
    assert everything


def test_what_is_valid_has_no_anomalies():
    history = History.from_transactions([reading_and_writing("a", "x", value=1)])
    assert count_anomalies(history) == ({}, True)


@pytest.fixture
def surveyed(tmp_path, capfd):
    """A survey of the simulated database: its object and its page."""
    page = tmp_path / "pages" / "index.html"
    run = run_here(
        capfd, "run", "memory", "--survey", "--workload", "scripted,rmw", "--seconds", "60",
        "--transactions", "300", "--save", str(tmp_path / "saved"), "--html", str(page),
        "--output", "json",
    )  # fmt: skip
    return json.loads(run.out), page


@pytest.mark.slow
def test_every_cell_is_backed_by_files(surveyed):
    """History and certificate of each can be judged again, and say the same."""
    found, page = surveyed
    satisfies("run-survey", found)
    cells = {(cell["level"], cell["workload"]): cell for cell in found["cells"]}
    assert len(cells) == 8
    assert cells["serializable", "scripted"]["anomalies"] == {}
    assert "lost update" in cells["read committed", "scripted"]["anomalies"]
    for cell in cells.values():
        assert cell["outcome"] == "valid"
        assert Path(cell["certificate"]).exists()
        verdict = isolang.check(isolang.load_history(cell["history"]), cell["claims"])
        assert verdict.outcome == cell["outcome"]
        assert f'href="../saved/{cell["page"]}"' in page.read_text()
        assert (page.parent / "../saved" / cell["page"]).exists()


def test_what_a_database_cannot_do_is_said(tmp_path, capfd):
    """A cell that was not played has its reason, and no outcome of a check."""
    run = run_here(
        capfd, "run", "exec:true", "--survey", "--workload", "bank", "--save", str(tmp_path),
        "--output", "json",
    )  # fmt: skip
    (cell,) = json.loads(run.out)["cells"]
    assert cell["outcome"] == "not played"
    assert "needs conversations" in cell["reason"]
    assert run.code == 0


def test_a_mistyped_workload_is_said_before_anything_is_started(tmp_path, capfd):
    run = run_here(capfd, "run", "memory", "--survey", "--workload", "rmw,appendd")
    assert run.code == 2
    assert "did you mean 'append'" in run.err
