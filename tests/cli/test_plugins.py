"""Encodings and solvers of one's own, on the command line and in the processes that it starts."""

from __future__ import annotations

import pytest
from support.cli import run_there
from support.paths import ROOT

TINY = ROOT / "examples" / "tiny_encoding.py"
VALID = "r(0,0,1,1)\nw(0,1,1,1)\nr(0,1,2,2)\nw(0,2,2,2)\n"
SKEW = "r(0,0,1,1)\nw(1,1,1,1)\nr(1,0,2,2)\nw(0,2,2,2)\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "valid.txt").write_text(VALID)
    (tmp_path / "skew.txt").write_text(SKEW)
    return tmp_path


def compared(*arguments):
    run = run_there(
        "solvers", "-s", "ser", "-o", "json", "--only", "partial_order/native", "--only",
        "event-graph", "--prune", "none", *arguments,
    )  # fmt: skip
    return run, {row["encoding"]: row["verdict"] for row in run.reports()}


@pytest.mark.slow
def test_an_encoding_of_a_file_is_compared_and_used(folder):
    """The processes that run the pairs have it, too."""
    run, verdicts = compared("--plugin", TINY, "skew.txt")
    assert (run.code, verdicts) == (0, {"event-graph": "invalid", "partial_order": "invalid"})
    run = run_there(
        "check", "-s", "ser", "-o", "json", "--encoding", "partial_order", "--plugin", TINY,
        "--prune", "none", "valid.txt",
    )  # fmt: skip
    (report,) = run.reports()
    assert (report["verdict"], report["encoding"]) == ("valid", "partial_order")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong", "history", "said"),
    [
        # What is not transitive lets a cycle of three pass, and a loop is no pair then.
        (
            "builder.clauses(-guard, before[tails, heads])",
            "builder.clauses(-guard[:0], before[tails, heads][:0])",
            "skew.txt",
            "partial_order/native is wrong: ",
        ),
        # No edge may be there at all.
        (
            "builder.clauses(-guard, before[tails, heads])",
            "builder.clauses(-guard)",
            "valid.txt",
            "disagreement: valid by event-graph/native/fixpoint; invalid by partial_order/native",
        ),
    ],
)
def test_a_wrong_encoding_is_caught(folder, right, wrong, history, said):
    """By its own model, which is no order; or by the others."""
    text = TINY.read_text()
    assert right in text
    (folder / "wrong.py").write_text(text.replace(right, wrong))
    run, _ = compared("--plugin", "wrong.py", history)
    assert run.code == 4
    assert said in run.err


ENTRY_POINTS = """\
[isolang.encodings]
mine = mine:ENCODING
[isolang.solvers]
lazy = mine:SOLVER
"""
MINE = """
from isolang.encodings.registry import ENCODINGS, Encoding
from isolang.solvers.registry import SOLVERS, Solver

there = ENCODINGS["one_variable"]
ENCODING = Encoding(name="mine", makers=there.makers, source="a package")
SOLVER = Solver(name="lazy", module="isolang.solvers.native", theories=("acyclicity",))
"""


@pytest.mark.slow
def test_what_another_package_installed_is_there(folder):
    """By entry points of two groups; of files on the path of Python, installed or not."""
    site = folder / "site"
    (site / "mine-1.dist-info").mkdir(parents=True)
    (site / "mine-1.dist-info" / "METADATA").write_text("Name: mine\nVersion: 1\n")
    (site / "mine-1.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    (site / "mine.py").write_text(MINE)
    (folder / "plugin.py").write_text(f"import sys; sys.path.insert(0, {str(site)!r})\n{MINE}\n"
                                      'ENCODINGS["own"] = Encoding(name="own", '
                                      'makers=there.makers, source="a file")\n')  # fmt: skip
    run = run_there(
        "solvers", "-s", "ser", "-o", "json", "--only", "mine/lazy", "--only", "own/lazy",
        "--plugin", "plugin.py", "valid.txt",
    )  # fmt: skip
    assert run.code == 0, run.err
    pairs = {(row["encoding"], row["solver"]): row["verdict"] for row in run.reports()}
    assert pairs == {("mine", "lazy"): "valid", ("own", "lazy"): "valid"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "not a plugin (expected a Python file, FILE.py)"),
        ("x = 1\n", "adds no encoding and no solver; hint: `ENCODINGS"),
        ("1 / 0\n", "cannot load the plugin (ZeroDivisionError: division by zero)"),
        (
            "from isolang.encodings.registry import ENCODINGS\nENCODINGS['monosat'] = 1\n",
            "another entry of encodings already has the name monosat",
        ),
        (
            "from isolang.solvers.registry import SOLVERS\nSOLVERS['mine'] = 1\n",
            "no Solver of the name mine (got 1)",
        ),
    ],
)
def test_a_plugin_that_is_none_is_a_mistake(folder, text, said):
    if text is not None:
        (folder / "p.py").write_text(text)
    run = run_there("solvers", "-s", "ser", "--plugin", "p.py", "valid.txt")
    assert run.code == 2
    assert said in run.err
