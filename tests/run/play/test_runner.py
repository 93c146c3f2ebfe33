"""Whole runs against real databases: SQLite, DuckDB, and PostgreSQL started for the test."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from cli.test_schema import satisfies
from support.cli import ENVIRONMENT, run_here
from support.runs import run, short_run_settings
from support.sampling import quick_first
from support.servers import require_server, start_target

import isolang
from isolang.errors import IsolangError
from isolang.run.operation import Read, Wait
from isolang.run.play import runner
from isolang.run.play.runner import Runner
from isolang.run.settings import Settings
from isolang.run.target import TargetError
from isolang.run.targets import target_named
from isolang.run.workloads import NAMES, ProgramSource, Shape, workload_named
from isolang.run.workloads.queries import Queries


@pytest.mark.slow
@pytest.mark.parametrize("workload", quick_first(NAMES, 6, rest="campaign"))
def test_every_workload_on_a_correct_database(tmp_path, workload):
    """The simulated database keeps strict serializability, whatever is played on it."""
    shape = Shape(keys=workload_named(workload).keys // 10 + 1, long=0.2, span=20)
    judged = run(tmp_path, "memory", workload=workload, shape=shape, **short_run_settings())
    assert judged.verdict.outcome == "valid", judged.verdict
    assert judged.verdict.certified
    assert judged.recorded.state.committed > 0


@pytest.mark.slow
def test_a_recorded_history_says_how_to_run_it_again(tmp_path):
    """Its second line is the command, with what was not as by default, and without a password."""
    options = short_run_settings(40) | {"workload": "rmw", "seed": 3, "shape": Shape(keys=5)}
    judged = run(tmp_path, "memory", **options)
    second = judged.recorded.path.read_text().splitlines()[1]
    assert second == (
        f"; isocheck run memory --seed 3 --workload rmw --save {tmp_path} --seconds 60.0 "
        "--transactions 40 --sessions 4 --keys 5"
    )
    runner = Runner(Settings(target="postgresql://me:secret@127.0.0.1:1/db"))
    runner.version = "PostgreSQL"
    assert "isocheck run postgresql" in runner._header()
    assert "secret" not in runner._header()


@pytest.mark.parametrize("workload", NAMES)
def test_equal_seeds_give_equal_transactions(workload):
    """A workload is a function of the seed, the client, and what it is told."""

    def made():
        one = workload_named(workload, Shape(keys=30))
        source = ProgramSource(7, 3, iter(range(10**9)))
        programs = [one.program(source) for _ in range(20)]
        return [p if isinstance(p, tuple) else next(p) for p in programs]

    assert made() == made()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "claims", "outcome"),
    [("snapshot", "", "valid"), ("snapshot", "ser", "invalid"), ("read committed", "", "valid")],
)
def test_a_weaker_level_is_told_from_a_stronger_one(tmp_path, level, claims, outcome):
    """Write skew under snapshot isolation is found by `ser`, and allowed by what it claims."""
    shape = Shape(keys=200, long=0.5, span=3)
    judged = run(
        tmp_path,
        "memory",
        level=level,
        claims=claims,
        workload="pairs",
        shape=shape,
        **short_run_settings(4000),
    )
    assert judged.verdict.outcome == outcome


@pytest.mark.slow
def test_duckdb_loses_an_update_beside_a_delete(tmp_path):
    """Documented snapshot isolation; found, certified, saved, and shown with its SQL."""
    judged = run(tmp_path, "duckdb", workload="insert-delete", **short_run_settings(3000))
    if judged.verdict.outcome == "valid":
        pytest.skip("this version of DuckDB does not lose it")
    assert judged.verdict.certified
    assert isolang.check(isolang.load_history(judged.minimal), "si").outcome == "invalid"
    assert judged.certificate.exists()
    statements = [one for sent in judged.statements.values() for one in sent]
    assert any(one.startswith("DELETE FROM isocheck_registers") for one in statements)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["serializable", "journal", "immediate"])
def test_sqlite_is_strictly_serializable(tmp_path, level):
    """No false alarm, with the write-ahead log as with the rollback journal."""
    judged = run(tmp_path, "sqlite", level=level, workload="rmw", **short_run_settings(1000))
    assert judged.verdict.outcome == "valid", judged.verdict


@pytest.mark.slow
def test_python_loses_updates_of_sqlite_by_default(tmp_path):
    """Its default isolation handling opens no transaction for a SELECT."""
    judged = run(tmp_path, "sqlite", level="python", workload="counter", **short_run_settings(4000))
    assert judged.verdict.outcome == "invalid"
    assert judged.verdict.violation.anomaly.startswith("lost update")


@pytest.mark.server
@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "claims", "outcome", "transactions"),
    [
        ("read committed", "", "valid", 800),
        ("repeatable read", "", "valid", 800),
        ("repeatable read", "ser", "invalid", 2000),
    ],
)
def test_postgres(tmp_path, level, claims, outcome, transactions):
    """The levels of the embedded server give what they claim, and not more."""
    pytest.importorskip("psycopg")
    shape = Shape(keys=20, long=0.5, span=20)
    judged = run(
        tmp_path, "postgres", level=level, claims=claims, workload="pairs", shape=shape,
        **short_run_settings(transactions),
    )  # fmt: skip
    assert judged.verdict.outcome == outcome, judged.verdict


@pytest.mark.slow
def test_a_run_on_the_command_line(tmp_path):
    """It ends with one report, as the schema has it, whose history `check` agrees about."""
    command = [sys.executable, "-P", "-m", "isolang.cli.main"]
    options = ["--seconds", "60", "--transactions", "500", "--output", "json", "--save"]
    done = subprocess.run(
        [*command, "run", "sqlite", *options, str(tmp_path)],
        capture_output=True, text=True, check=False, env=ENVIRONMENT,
    )  # fmt: skip
    report = satisfies("run", json.loads(done.stdout))
    assert (done.returncode, report["verdict"]) == (0, "valid"), done.stderr
    assert report["workload"] == "auto"
    assert report["seed"] == 0
    assert isolang.check(isolang.load_history(report["history"]), "sser").outcome == "valid"


@pytest.mark.slow
def test_where_nothing_commits_nothing_is_judged(tmp_path, capfd):
    """A program that ends at once is no database that keeps its promise."""
    (tmp_path / "ends.py").write_text(
        "import json, sys\nfor line in sys.stdin:\n    q = json.loads(line)\n"
        "    q['do'] == 'transact' and sys.exit()\n"
        "    print(json.dumps({'id': q['id'], 'type': 'ok', 'value': {'name': ''}}), flush=True)\n"
    )
    done = run_here(
        capfd, "run", f"exec:{sys.executable} {tmp_path}/ends.py", "--workload", "mini",
        "--transactions", "20", "--seconds", "60", "--save", str(tmp_path), "--trusted",
    )  # fmt: skip
    assert done.code == 2
    assert "no transaction committed" in done.err
    assert "the program ended without an answer" in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "oracle"}, "unknown target"),
        ({"target": "postgrs"}, "did you mean 'postgres'"),
        ({"target": "sqlite", "level": "snapshot"}, "unknown level"),
        ({"target": "sqlite", "workload": "append2"}, "did you mean 'append'"),
        ({"target": "redis", "workload": "blindw-rw+"}, "needs range reads"),
        ({"target": "postgresql:/host"}, "not a valid URL"),
        ({"target": "postgresql://host:port/db"}, "not a valid URL"),
    ],
)
def test_what_cannot_be_run_is_said_in_a_line(options, message):
    """Before anything is started."""
    with pytest.raises(TargetError, match=message) as caught:
        Runner(Settings(**options))
    assert "\n" not in str(caught.value)


def test_a_claim_that_is_no_level_is_said_before_anything_is_started():
    with pytest.raises(IsolangError, match="did you mean `serializable`"):
        Runner(Settings(target="sqlite", claims="serialisable"))


def test_no_password_is_shown():
    """The address as text, in messages and reports, has none."""
    runner = Runner(Settings(target="postgresql://me:secret@127.0.0.1:1/db"))
    with pytest.raises(TargetError, match="cannot connect") as caught:
        runner.start()
    assert "secret" not in str(caught.value)
    assert "me@127.0.0.1" in str(caught.value)


def test_a_table_that_is_there_is_left_alone(tmp_path):
    """The run is refused, and the table keeps its rows."""
    import sqlite3

    file = tmp_path / "mine.db"
    with sqlite3.connect(file) as connection:
        connection.execute("create table isocheck_registers (mine)")
        connection.execute("insert into isocheck_registers values (1)")
    runner = Runner(Settings(target=f"sqlite:///{file}", folder=str(tmp_path)))
    with pytest.raises(TargetError, match="--table-prefix"):
        runner.start()
    runner.close()
    with sqlite3.connect(file) as connection:
        assert connection.execute("select * from isocheck_registers").fetchall() == [(1,)]
        tables = connection.execute("select name from sqlite_master").fetchall()
    assert tables == [("isocheck_registers",)]


@pytest.mark.slow
def test_a_run_removes_its_tables(tmp_path):
    """What it has created, and nothing else."""
    import sqlite3

    file = tmp_path / "mine.db"
    with sqlite3.connect(file) as connection:
        connection.execute("create table mine (x)")
    run(tmp_path, f"sqlite:///{file}", workload="mini", **short_run_settings(50))
    with sqlite3.connect(file) as connection:
        assert connection.execute("select name from sqlite_master").fetchall() == [("mine",)]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_rate_is_kept(tmp_path, processes):
    """All clients together begin so many transactions a second, and no more."""
    judged = run(
        tmp_path, "sqlite", workload="mini", rate=40.0, seconds=1.5, sessions=4,
        processes=processes, watched=False,
    )  # fmt: skip
    recorded = judged.recorded  # a slow machine notices late that the time is up
    assert 10 < recorded.state.total() <= 40 * recorded.seconds + 4


def test_transactions_that_wait_for_each_other_go_on(tmp_path, monkeypatch):
    """Where every open transaction waits for others to end, one of them does not wait."""
    waiting = (Read("x"), Wait(5), Read("x"))
    monkeypatch.setattr(Queries, "program", lambda self, source: waiting)
    settings = Settings(
        target="memory", workload="queries", folder=str(tmp_path), seconds=20, transactions=30,
        sessions=3, watched=False,
    )  # fmt: skip
    played = runner.run(settings)
    assert played.state.total() >= 30


@pytest.mark.server
@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "options", "outcome"),
    quick_first(
        [
            ("mariadb", {"workload": "rmw", "level": "serializable"}, "valid"),
            ("redis", {"workload": "rmw"}, "valid"),
            ("redis", {"workload": "append", "level": "multi"}, "valid"),
            ("redis", {"workload": "counter", "level": "multi", "claims": "si"}, "invalid"),
            ("etcd", {"workload": "cas"}, "valid"),
            ("mariadb", {"workload": "rmw", "claims": "pl-2"}, "valid"),
            ("redis", {"workload": "append"}, "valid"),
            ("redis", {"workload": "cas"}, "valid"),
            ("etcd", {"workload": "rmw"}, "valid"),
            ("etcd", {"workload": "insert-delete"}, "valid"),
            ("etcd", {"workload": "mini", "level": "serializable"}, "valid"),
        ],
        5,
        rest="campaign",
    ),
)
def test_servers_give_what_they_claim(tmp_path, target, options, outcome):
    """No false alarm on what is documented, and what is not claimed is seen to be missing."""
    require_server(target)
    judged = run(tmp_path, target, **options, **short_run_settings(400))
    assert judged.verdict.outcome == outcome, judged.verdict
    assert judged.verdict.certified


@pytest.mark.server
@pytest.mark.slow
def test_mariadb_loses_updates_under_repeatable_read(tmp_path):
    """Where snapshots are not kept; newer versions do by default, so they are told not to."""
    version = start_target("mariadb")
    try:
        knows = (
            version.admin()
            .execute("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'", ())
            .fetchone()
        )
    finally:
        version.close()
    target = "mariadb://?innodb_snapshot_isolation=OFF" if knows else "mariadb"
    judged = run(tmp_path, target, workload="counter", **short_run_settings(2000))
    assert judged.verdict.outcome == "invalid"
    assert judged.verdict.violation.anomaly.startswith("lost update")


@pytest.mark.server
@pytest.mark.slow
def test_a_standby_reads_what_is_old(tmp_path):
    """Its clients are sessions of their own; what they read is a snapshot, though an old one."""
    pytest.importorskip("psycopg")
    shape = Shape(keys=20)
    judged = run(
        tmp_path, "postgres", level="repeatable read", claims="pl-2", workload="rmw", standby=2,
        shape=shape, **short_run_settings(800),
    )  # fmt: skip
    assert judged.verdict.outcome == "valid"
    text = judged.recorded.path.read_text()
    assert "2 sessions on a standby" in text
    sessions = {t.session for t in isolang.load_history(judged.recorded.path).transactions()}
    assert len(sessions) >= 6


@pytest.mark.server
@pytest.mark.slow
def test_a_standby_refuses_writes(tmp_path):
    """The connection goes to another server than the primary one."""
    pytest.importorskip("psycopg")
    target = target_named("postgres")
    target.standby = True
    try:
        target.start()
        target.setup(["x"], [])
        client = target.connect_standby()
        client.begin("serializable")
        assert client.read("x") is None
        with pytest.raises(Exception, match="read-only transaction"):
            client.write("x", 1)
        client.rollback()
        client.close()
    finally:
        target.close()


@pytest.mark.slow
@pytest.mark.parametrize("update", ["update", "row", "upsert", "insert", "any"])
@pytest.mark.parametrize("access", quick_first(["index", "scan"], rest="campaign"))
def test_rows_are_found_and_written_in_every_way(tmp_path, access, update):
    """SQLite is strictly serializable by each; what is undone by a savepoint is never seen."""
    judged = run(
        tmp_path, "sqlite", access=access, update=update, savepoints=0.5, workload="rmw",
        **short_run_settings(300),
    )  # fmt: skip
    assert judged.verdict.outcome == "valid", judged.verdict


def test_what_is_undone_is_done_and_undone(tmp_path):
    """A database that forgets to undo is caught: the value was written by nobody."""
    from isolang.run.operation import UndoneWrite, Write
    from isolang.run.play.transaction import driver_for, play
    from isolang.run.record.recorder import Recorder

    target = target_named("sqlite")
    try:
        target.start()
        target.setup(["x"], [])
        outcomes = []
        for forgets in (False, True):
            client = target.connect()
            if forgets:
                client.rollback_to_savepoint = lambda: None
            with Recorder(tmp_path / f"{forgets}.edn") as recorder:
                for program in ((UndoneWrite(Write("x", 1)),), (Read("x"),)):
                    play(
                        program, recorder=recorder, session=0, client=client,
                        driver=driver_for(target), level="serializable",
                    )  # fmt: skip
                outcomes.append(isolang.check(recorder.history(), "pl-2").outcome)
            client.close()
    finally:
        target.close()
    assert outcomes == ["valid", "invalid"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "sqlite", "standby": 1}, "isocheck cannot start a standby for this target"),
        ({"target": "duckdb", "savepoints": 0.5}, "no savepoints"),
    ],
)
def test_what_a_database_has_not(options, message):
    with pytest.raises(TargetError, match=message):
        Runner(Settings(**options))


@pytest.mark.slow
def test_effectiveness_counts_trials(tmp_path, capfd):
    """Trials of one workload find a lost update, each at a place of its own; the best is first."""
    done = run_here(
        capfd, "run", "memory", "--level", "read committed", "--claims", "si", "--workload",
        "long-fork,counter", "--effectiveness", "4s", "--transactions", "2000", "--output", "json",
        "--save", str(tmp_path),
    )  # fmt: skip
    found = satisfies("run-effectiveness", json.loads(done.out))
    best, *_ = found["rows"]
    assert {row["workload"] for row in found["rows"]} == {"counter", "long-fork"}
    assert done.code == 1
    assert best["violations"] > 0
    assert best["first"] >= 1
    assert sum(best["anomalies"].values()) == best["violations"] <= best["trials"]


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["mini", "pairs"])
def test_clients_in_several_processes(tmp_path, workload):
    """They write one history, in one order, of values that are still unique."""
    shape = Shape(keys=100, long=0.2, span=20)
    judged = run(
        tmp_path, "sqlite", processes=2, workload=workload, shape=shape, **short_run_settings(2000)
    )
    assert judged.verdict.outcome == "valid", judged.verdict
    history = judged.verdict.history
    transactions = list(history.transactions())
    assert judged.recorded.state.total() == len(transactions)
    assert len({t.session for t in transactions}) == 4
    written = [op[2] for t in transactions for op in t.ops if op[0] == "w"]
    assert len(written) == len(set(written))


def test_an_error_of_a_process_ends_the_run(tmp_path):
    """As one of a thread does, in a line."""
    # It depends on the machine whether the program's line comes before the request.
    why = (
        "no answer to hello: (not an answer|the program wrote an answer that no request asked for)"
    )
    with pytest.raises(TargetError, match=why):
        run(
            tmp_path,
            "exec:echo hello",
            processes=2,
            workload="mini",
            trusted=True,
            **short_run_settings(),
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "duckdb"}, "the database lives in one process"),
        (
            {"target": "redis", "faults": ("kill",)},
            "faults cannot reach clients in other processes",
        ),
    ],
)
def test_what_several_processes_cannot_do(options, message):
    with pytest.raises(TargetError, match=message):
        Runner(Settings(**options, processes=2))
