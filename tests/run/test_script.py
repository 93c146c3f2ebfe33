"""A history as a program for people without this package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from isolang import History, Transaction, load_history
from isolang.history.values import Keyword
from isolang.run.litmus import Noise, litmus_of
from isolang.run.script import in_turn, script_of
from isolang.run.targets import target_named

FINDINGS = Path(__file__).parents[2] / "docs" / "findings"
SKEW = [
    Transaction([("r", "x", None), ("w", "y", 1)], session="a"),
    Transaction([("r", "y", None), ("w", "x", 2)], session="b"),
]
LISTS = [
    Transaction([("append", "l", 1)], session="a"),
    Transaction([("r", "l", [1]), ("append", "l", 2)], session="b"),
]


def litmus(transactions):
    return litmus_of(History.from_transactions(transactions))


def run(script, tmp_path):
    file = tmp_path / "script.py"
    file.write_text(script)
    return subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)


def test_sessions_take_turns_as_far_as_the_history_allows():
    """Steps alternate; a read comes after the write that it returns."""
    assert in_turn(litmus(SKEW)) == (0, 1, 0, 1, 0, 1)
    assert in_turn(litmus(LISTS)) == (0, 1, 0, 1, 1)


@pytest.mark.parametrize("module", ["sqlite3", "duckdb"])
def test_a_program_in_python_runs(tmp_path, module):
    """DuckDB shows write skew; SQLite, which allows one writer, refuses the second one."""
    pytest.importorskip(module)
    done = run(script_of(litmus(SKEW), "python", module=module), tmp_path)
    assert "a reads x (in the history NULL): None" in done.stdout
    assert ("all committed: [" in done.stdout) == (module == "duckdb"), done.stderr
    assert ("database is locked" in done.stderr) == (module == "sqlite3")


def test_lists_are_texts(tmp_path):
    """An append joins; a read shows the elements."""
    order = (0, 0, 1, 1, 1)
    done = run(script_of(litmus(LISTS), "python", schedule=order), tmp_path)
    assert "b reads l (in the history 1):  1" in done.stdout, done.stderr
    assert "all committed: [('l', ' 1 2')]" in done.stdout


def test_rows_come_and_go(tmp_path):
    """What deletes is a DELETE, and what writes a row that was not there an INSERT."""
    gone = Keyword("deleted")
    rows = [
        Transaction([("w", "x", gone)], session="a"),
        Transaction([("r", "x", gone), ("w", "x", 1)], session="a"),
    ]
    done = run(script_of(litmus(rows), "python"), tmp_path)
    assert "a reads x (in the history no row): no row" in done.stdout, done.stderr
    assert "all committed: [('x', 1)]" in done.stdout
    said = script_of(litmus(rows), "sql")
    assert "/* a */ DELETE FROM litmus WHERE k = 'x';" in said
    assert "/* a */ INSERT INTO litmus VALUES ('x', 1);" in said


def test_the_recorded_order_and_the_load():
    """Bob's COMMIT lies within Alice's transaction, where the transactions of others come."""
    history = load_history(FINDINGS / "postgresql-summarised-transactions.edn")
    script = script_of(litmus_of(history), "psycopg", load=2000)
    lines = script.splitlines()
    assert lines.index("c.commit()") + 1 == lines.index("for number in range(2000):")
    assert lines.index("write(b, 'x', 0)") > lines.index("    others.commit()")
    assert "IsolationLevel.SERIALIZABLE" in script
    assert len([line for line in lines if line.strip()]) <= 32
    compile(script, "script", "exec")


def test_a_program_in_sql():
    """Each line names its terminal; level and what the history shows are there."""
    script = script_of(litmus(SKEW), "sql", level="repeatable read")
    assert "/* a */ BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ;" in script
    assert "/* b */ SELECT v FROM litmus WHERE k = 'y';  -- in the history: NULL" in script
    assert script.index("/* b */ SELECT") < script.index("/* a */ COMMIT;")


def test_the_place_of_the_load():
    """After a COMMIT while another transaction is open, and nowhere else."""
    noise = Noise(target_named("memory"), "serializable", 3)
    assert noise.places(litmus(SKEW), (0, 1, 1, 1, 0, 0)) == {3}
    assert noise.places(litmus(SKEW), (0, 0, 0, 1, 1, 1)) == set()
    assert (
        Noise(target_named("memory"), "serializable", 0).places(litmus(SKEW), (0, 1, 1, 1)) == set()
    )


def test_the_load_is_played(capfd, tmp_path, monkeypatch):
    """By a client of its own, in each interleaving."""
    from support.cli import run_here

    from isolang.run.targets.memory import MemoryClient

    played = []
    write = MemoryClient.write

    def counted(self, key, value):
        played.append(key)
        return write(self, key, value)

    monkeypatch.setattr(MemoryClient, "write", counted)
    monkeypatch.chdir(tmp_path)
    level = ["--level", "snapshot", "--interleavings", "20", "--seconds", "60"]
    done = run_here(capfd, "litmus", "si", "ser", "--run", "memory", *level, "--load", "7")
    assert done.code == 1
    assert played.count("noise") >= 7
    assert played.count("noise") % 7 == 0


def test_what_was_not_seen_is_no_script(capfd, tmp_path, monkeypatch):
    """The order of a script is one in which the database has shown the history."""
    from support.cli import run_here

    monkeypatch.chdir(tmp_path)
    seen = run_here(
        capfd, "litmus", "si", "ser", "--run", "memory", "--level", "snapshot", "--script", "sql"
    )
    assert (seen.code, seen.out.count("COMMIT")) == (0, 2)
    done = run_here(capfd, "litmus", "si", "ser", "--run", "memory", "--script", "sql")
    assert done.code == 2
    assert "did not show the history" in done.err
