"""A history as a program for people without this package."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.servers import start_target

from isolang import History, Transaction, check, load_history
from isolang.history.values import Keyword
from isolang.run.litmus.litmus import NoiseClient, litmus_of
from isolang.run.litmus.script import script_of, turn_taking_schedule
from isolang.run.targets import target_named

FINDINGS = Path(__file__).parents[3] / "docs" / "findings"
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
    assert turn_taking_schedule(litmus(SKEW)) == (0, 1, 0, 1, 0, 1)
    assert turn_taking_schedule(litmus(LISTS)) == (0, 1, 0, 1, 1)


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
    assert "/* a */ DELETE FROM isocheck_litmus WHERE k = 'x';" in said
    assert "/* a */ INSERT INTO isocheck_litmus VALUES ('x', 1);" in said


def test_a_query_says_what_it_returned_and_what_it_should_have(tmp_path):
    """SQLite returns the row that the history lacks."""
    rows = [
        Transaction([("w", "x", 12_000_000_000), ("w", "y", 5)], session="a", begin=0, end=1),
        Transaction(
            [("r", "y", 5), ("scan", ("between", "value", 9, 12_000_000_000), {})],
            session="b",
            begin=2,
            end=3,
        ),
    ]
    history = History.from_transactions(rows)
    found = check(history, "ser")
    program = litmus_of(history, found.violation)
    script = script_of(program, "python")
    assert "# T2 asked for the rows with value between 9 and 12000000000" in script
    assert "# missing: x: T1 wrote x = 12000000000, which matches, and T2 comes after T1" in script
    done = run(script, tmp_path)
    said = "b asks for the rows with v between 9 and 12000000000 (in the history no row): "
    assert said + "{'x': 12000000000}" in done.stdout, done.stderr
    typed = script_of(program, "sql")
    assert "v BIGINT" in typed
    assert "WHERE v BETWEEN 9 AND 12000000000;  -- in the history: no row" in typed
    compile(script_of(program, "psycopg"), "script", "exec")


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


@pytest.mark.server
@pytest.mark.slow
def test_a_program_drops_nothing_that_it_has_not_made(tmp_path):
    """Tables of the user's stay, whatever their names are; its own go, however it ends."""
    psycopg = pytest.importorskip("psycopg")
    server = start_target("postgres")
    where = f"host={server.server.folder} user=postgres dbname=postgres"
    scripts = sorted(FINDINGS.glob("postgresql-*.py"))
    for load in (0, 20):
        file = tmp_path / f"load{load}.py"
        history = load_history(FINDINGS / "postgresql-summarised-transactions.edn")
        file.write_text(script_of(litmus_of(history), "psycopg", load=load))
        scripts.append(file)
    try:
        with psycopg.connect(where, autocommit=True) as mine:

            def tables():
                rows = mine.execute(
                    "SELECT tablename FROM pg_tables WHERE schemaname = 'public' "
                    "AND tablename NOT LIKE 'isocheck_registers' "
                    "AND tablename NOT LIKE 'isocheck_lists'"
                )
                return {name for (name,) in rows}

            for name in ("litmus", "noise", "finding"):
                mine.execute(f"CREATE TABLE {name} (mine int)")
            before = tables()
            for script in scripts:
                done = subprocess.run(
                    [sys.executable, script, where], capture_output=True, text=True, check=False
                )
                assert (
                    "all committed" in done.stdout
                    or "both committed" in done.stdout
                    or ("SerializationFailure" in done.stderr)
                ), done.stderr
                assert tables() == before, script
            made = set()
            for script in scripts:
                made |= set(re.findall(r"CREATE TABLE (\w+)", script.read_text()))
            for name in made:
                mine.execute(f"CREATE TABLE {name} (mine int)")
            before = tables()
            for script in scripts:
                if "CREATE TABLE" not in script.read_text():
                    continue
                done = subprocess.run(
                    [sys.executable, script, where], capture_output=True, text=True, check=False
                )
                assert "already exists" in done.stderr
                assert tables() == before, script
    finally:
        server.close()


@pytest.mark.parametrize("kind", ["psycopg", "python", "sql"])
def test_no_program_drops_before_it_creates(kind):
    """What has the name already is somebody's."""
    script = script_of(litmus(SKEW), kind, load=3)
    assert "IF EXISTS" not in script
    assert script.find("DROP TABLE") in (-1, *range(script.rfind("CREATE TABLE"), len(script))) or (
        script.index("atexit.register(drop)") > script.rfind("CREATE TABLE")
    )


def test_a_program_in_sql():
    """Each line names its terminal; level and what the history shows are there."""
    script = script_of(litmus(SKEW), "sql", level="repeatable read")
    assert "/* a */ BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ;" in script
    assert "/* b */ SELECT v FROM isocheck_litmus WHERE k = 'y';  -- in the history: NULL" in script
    assert script.index("/* b */ SELECT") < script.index("/* a */ COMMIT;")


def test_the_place_of_the_load():
    """After a COMMIT while another transaction is open, and nowhere else."""
    noise = NoiseClient(target_named("memory"), "serializable", 3)
    assert noise.places(litmus(SKEW), (0, 1, 1, 1, 0, 0)) == {3}
    assert noise.places(litmus(SKEW), (0, 0, 0, 1, 1, 1)) == set()
    assert (
        NoiseClient(target_named("memory"), "serializable", 0).places(litmus(SKEW), (0, 1, 1, 1))
        == set()
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
    assert "did not produce the history" in done.err
