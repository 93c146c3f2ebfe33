"""Programs as clients: the protocol, and the examples in Go, Node and Java on real databases."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from isolang.run.operation import Read, Write
from isolang.run.outcome import BadAnswer
from isolang.run.play.runner import Runner
from isolang.run.play.transaction import driver_for, play
from isolang.run.record.recorder import Recorder
from isolang.run.settings import Settings
from isolang.run.target import TargetError
from isolang.run.targets import target_named
from isolang.testing.target import check_target

CLIENTS = Path(__file__).parents[3] / "examples" / "clients"

# A database of one file: SQLite through Python's module, as a program.
STEPS = """
import json, sqlite3, sys
c = sqlite3.connect(sys.argv[1], timeout=5, isolation_level=None)
c.execute("PRAGMA journal_mode=wal")
def rows(sql, *values):
    return c.execute(sql, values).rowcount > 0
def do(q):
    both = q.get("value"), q.get("key")
    match q["do"]:
        case "hello":
            return {"name": "SQLite as a program", "steps": True,
                    "levels": [["Serializable", "ser"], ["none", "pl-2"]],
                    "lacks": ["range reads", "savepoints"]}
        case "setup" | "remove":
            c.execute("DROP TABLE IF EXISTS t")
            if q["do"] == "setup":
                c.execute("CREATE TABLE t (k PRIMARY KEY, v)")
                c.executemany("INSERT INTO t VALUES (?, NULL)", [[k] for k in q["registers"]])
                c.executemany("INSERT INTO t VALUES (?, '')", [[k] for k in q["lists"]])
        case "begin": c.execute("BEGIN")
        case "read":
            row = c.execute("SELECT v FROM t WHERE k = ?", [q["key"]]).fetchone()
            if row is None: return "deleted"
            return [int(x) for x in row[0].split()] if q["list"] else row[0]
        case "write": return rows("UPDATE t SET v = ? WHERE k = ?", *both)
        case "append": return rows("UPDATE t SET v = v || ' ' || ? WHERE k = ?", *both)
        case "insert": rows("INSERT INTO t VALUES (?, ?)", q["key"], q["value"])
        case "delete": return rows("DELETE FROM t WHERE k = ?", q["key"])
        case "commit": c.execute("COMMIT")
        case "rollback": c.in_transaction and c.execute("ROLLBACK")
        case _: raise KeyError(q["do"])
for line in sys.stdin:
    q = json.loads(line)
    answer = {"id": q["id"], "type": "ok"}
    try:
        answer["value"] = do(q)
    except sqlite3.Error as error:
        if c.in_transaction: c.execute("ROLLBACK")
        answer |= {"type": "fail", "error": str(error)}
    except KeyError as error:
        answer |= {"type": "error", "error": f"not known: {error}"}
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def steps(tmp_path):
    """The target of a program that takes steps."""
    (tmp_path / "steps.py").write_text(STEPS)
    return f"exec:{sys.executable} {tmp_path}/steps.py {tmp_path}/a.db"


def test_a_program_that_takes_steps(steps):
    """It passes the self-test, and says what it can do."""
    target = target_named(steps)
    assert [(one.name, one.claims) for one in target.levels] == [
        ("serializable", "ser"),
        ("none", "pl-2"),
    ]
    assert target.lacks == {"range reads", "savepoints"}
    found = {one.name: one.outcome for one in check_target(steps, "serializable")}
    assert found["errors are classified by the transaction's outcome"] == "passed"
    assert found["a rolled-back write leaves nothing behind"] == "passed"


@pytest.mark.slow
def test_two_runs_on_one_database(steps, tmp_path):
    """Keys and values are the same in both; the set-up resets them, so neither is convicted."""
    import isolang

    for _ in range(2):
        settings = Settings(target=steps, workload="rmw", seconds=30, transactions=60, sessions=3,
                            folder=str(tmp_path), trusted=True)  # fmt: skip
        runner = Runner(settings)
        try:
            runner.start()
            run = runner.run()
        finally:
            runner.close()
        assert isolang.check(isolang.load_history(run.path), "ser").outcome == "valid"
        assert run.version == "SQLite as a program"


@pytest.mark.slow
def test_scripts_play_on_programs(steps, tmp_path):
    """One step after the other, through several processes."""
    settings = Settings(target=steps, workload="scripted", folder=str(tmp_path), trusted=True)
    runner = Runner(settings)
    try:
        runner.start()
        run = runner.run()
    finally:
        runner.close()
    assert run.state.committed > 20


WHOLE = """
import json, sys
for line in sys.stdin:
    q = json.loads(line)
    value = {"name": "whole"}
    if q["do"] == "transact":
        value = [7 if one["do"] == "read" else None for one in q["operations"]]
    kind = sys.argv[1] if q["do"] == "transact" else "ok"
    print(json.dumps({"id": q["id"], "type": kind, "value": value, "error": "why"}), flush=True)
"""


@pytest.mark.parametrize(
    ("kind", "status"), [("ok", "committed"), ("fail", "aborted"), ("info", "maybe")]
)
def test_a_program_says_how_it_went(tmp_path, kind, status):
    """Each kind of answer to a whole transaction is recorded as what it says."""
    (tmp_path / "whole.py").write_text(WHOLE)
    target = target_named(f"exec:{sys.executable} {tmp_path}/whole.py {kind}")
    client = target.connect()
    with Recorder(tmp_path / "h.edn") as recorder:
        outcome, error = play(
            (Write("x", 1), Read("x")),
            recorder=recorder,
            session=0,
            client=client,
            driver=driver_for(target),
            level="default",
        )
        (only,) = recorder.history().transactions()
    client.close()
    assert (outcome, only.status) == (status, status)
    assert only.ops[0] == ("w", "x", 1)
    if kind == "ok":
        assert only.ops[1] == ("r", "x", 7)
    else:
        assert str(error) == "why"


def test_what_a_program_cannot_do_ends_the_run(tmp_path):
    """With what it says."""
    (tmp_path / "whole.py").write_text(WHOLE)
    client = target_named(f"exec:{sys.executable} {tmp_path}/whole.py error").connect()
    with pytest.raises(TargetError, match="the program cannot transact: why"):
        client.transact("default", [("r", "x", None)])
    client.close()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ('{"id": 1, "type": "ok", "value": {}}', 'hello: expected {"name"'),
        ('{"id": 1, "type": "ok", "value": {"name": "x", "levels": {}}}', "levels: expected"),
        ('{"id": 1, "type": "ok", "value": {"name": "x", "lacks": ["all"]}}', "lacks: expected"),
        ('{"id": 1, "type": "error", "error": "no"}', "the program cannot hello: no"),
        ("hello", "not an answer"),
    ],
)
def test_what_is_no_hello(answer, message):
    """It is said before anything is recorded."""
    target = target_named(f"exec:read line; echo '{answer}'; cat")
    with pytest.raises(TargetError) as error:
        target.start()
    assert message in str(error.value)


def test_an_answer_to_another_request():
    """Nothing can be asked any more: whose the next one is, is not known."""
    client = target_named('exec:read x; echo \'{"id": 3, "type": "ok"}\'').connect()
    with pytest.raises(BadAnswer, match="the program answered another request"):
        client.transact("default", [("w", "x", 1)])
    assert not client.usable()
    client.close()


def test_the_client_in_go(tmp_path):
    """Etcd through its gateway keeps strict serializability in the self-test."""
    if not (shutil.which("go") and shutil.which("etcd")):
        pytest.skip("needs go and etcd")
    program = tmp_path / "etcd-client"
    environment = os.environ | {"GOCACHE": str(tmp_path / "cache"), "GO111MODULE": "off"}
    subprocess.run(
        ["go", "build", "-o", program, *CLIENTS.glob("go/*.go")], check=True, env=environment
    )
    etcd = target_named("etcd")
    try:
        etcd.start()
        ((host, port),) = etcd.where
        check_target(f"exec:{program} http://{host}:{port}")
    finally:
        etcd.close()


@pytest.mark.slow
def test_the_client_in_java(tmp_path):
    """H2 through JDBC, at each level."""
    jar = Path("/usr/share/java/h2.jar")
    if not (shutil.which("javac") and jar.exists()):
        pytest.skip("needs javac and Debian's libh2-java")
    subprocess.run(["javac", "-d", tmp_path, *CLIENTS.glob("java/*.java")], check=True)
    url = f"jdbc:h2:{tmp_path}/test;AUTO_SERVER=TRUE"
    check_target(f"exec:java -cp {jar}:{tmp_path} Jdbc '{url}'", "serializable")


def test_the_client_in_node():
    """Its syntax is right; that it runs needs a package of Node's."""
    if not shutil.which("node"):
        pytest.skip("needs node")
    for client in ("postgres.mjs", "surrealdb.mjs"):
        subprocess.run(["node", "--check", CLIENTS / client], check=True)


def test_clients_are_short():
    """Sixty lines each, and where there are two, one is the protocol for those of others."""
    for file in CLIENTS.rglob("*.*"):
        assert len(file.read_text().splitlines()) <= 60, file
