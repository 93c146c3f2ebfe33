"""Faults: what is recorded agrees with what the server holds, and lost commits are found."""

from __future__ import annotations

import contextlib
import itertools

import pytest
from support.servers import start_target, value_on_server

import isolang
from isolang.run.operation import Read, Write
from isolang.run.play.runner import Runner
from isolang.run.play.transaction import driver_for, play
from isolang.run.record.recorder import Recorder
from isolang.run.settings import Settings
from isolang.run.target import TargetError
from isolang.run.workloads import Shape

SERVERS = ("postgres", "mariadb", "redis", "etcd")


@pytest.fixture(scope="module", params=SERVERS)
def target(request):
    """A server behind a proxy, with a row for each case below."""
    one = start_target(request.param, keys=[f"k{i}" for i in range(20)], tokens=True, proxied=True)
    yield one
    one.close()


KEYS = {}


def fresh(target):
    """A key that no test has used."""
    return f"k{next(KEYS.setdefault(id(target), itertools.count()))}"


def losing(target, call, direction):
    """The call, during which the next thing that is sent in a direction is lost."""

    def lossy(*arguments):
        with target.server.proxy.lose_message(direction):
            return call(*arguments)

    return lossy


def at_commit(client, wrap):
    """Wrap what sends COMMIT, and nothing before it."""
    if hasattr(client, "_commit"):
        client._commit = wrap(client._commit)
        return
    name = "ask" if hasattr(client.raw, "ask") else "call"
    plain = getattr(client.raw, name)
    lossy = wrap(plain)

    def sent(*said):
        commits = said[0] == ["MULTI"] or said[0] == "kv/txn"
        return (lossy if commits else plain)(*said)

    setattr(client.raw, name, sent)


def wrote(target, tmp_path, client, key, program=None):
    """Play a program, by default a read and a write; give what was recorded of it."""
    with Recorder(tmp_path / "h.edn") as recorder:
        outcome, _ = play(
            program or (Read(key), Write(key, 1)),
            recorder=recorder,
            session=0,
            client=client,
            driver=driver_for(target),
            level=target.levels[0].name,
        )
        (only,) = recorder.history().transactions()
    assert outcome == only.status
    with contextlib.suppress(Exception):  # it has ended
        client.close()
    return only.status


@pytest.mark.server
@pytest.mark.parametrize("direction", ["requests", "answers"])
def test_a_connection_that_is_lost_before_commit(target, tmp_path, direction):
    """Whether the statement came to the server or not: nothing was applied."""
    key, client = fresh(target), target.connect()
    client.read = losing(target, client.read, direction)
    assert wrote(target, tmp_path, client, key) == "aborted"
    assert value_on_server(target, key) is None


@pytest.mark.server
@pytest.mark.parametrize("direction", ["requests", "answers"])
def test_a_connection_that_is_lost_after_a_write(target, tmp_path, direction):
    """The server has the write, and rolls it back."""
    key, client = fresh(target), target.connect()
    client.read = losing(target, client.read, direction)
    program = (Write(key, 1), Read(fresh(target)))
    assert wrote(target, tmp_path, client, key, program) == "aborted"
    assert value_on_server(target, key) is None


@pytest.mark.server
def test_a_commit_that_never_came(target, tmp_path):
    """The client cannot tell; the token can: aborted, for good."""
    key, client = fresh(target), target.connect()
    at_commit(client, lambda call: losing(target, call, "requests"))
    assert wrote(target, tmp_path, client, key) == "aborted"
    assert value_on_server(target, key) is None


@pytest.mark.server
def test_an_answer_to_commit_that_is_lost(target, tmp_path):
    """The client cannot tell; the token can: committed."""
    key, client = fresh(target), target.connect()
    at_commit(client, lambda call: losing(target, call, "answers"))
    assert wrote(target, tmp_path, client, key) == "committed"
    assert value_on_server(target, key) == 1


@pytest.mark.server
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_server_that_is_killed_at_commit(target, tmp_path, when):
    """The token outlives the restart, as the transaction does: the outcome is what is held."""
    key, client = fresh(target), target.connect()

    def crash(call):
        def crashing(*arguments):
            if when == "after":
                call(*arguments)
            target.server.control("kill")
            target.server.control("start")
            if when == "before":
                call(*arguments)
            raise OSError("the answer is lost")

        return crashing

    at_commit(client, crash)
    status = wrote(target, tmp_path, client, key)
    assert (status, value_on_server(target, key)) == (
        ("committed", 1) if when == "after" else ("aborted", None)
    )


@pytest.mark.server
def test_without_a_token_it_stays_unknown(tmp_path):
    """MariaDB keeps no record of transactions that can be asked for."""
    target = start_target("mariadb", keys=["k"], proxied=True)
    try:
        client = target.connect()
        at_commit(client, lambda call: losing(target, call, "answers"))
        assert wrote(target, tmp_path, client, "k") == "maybe"
        assert value_on_server(target, "k") == 1
    finally:
        target.close()


@pytest.mark.server
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_commit_that_a_crash_loses(tmp_path, asynchronous):
    """It was acknowledged, and is not read back: strong SI is violated, SER alone need not be."""
    options = "?synchronous_commit=off&wal_writer_delay=10000" if asynchronous else ""
    target = start_target(f"postgres://{options}", keys=["x"])
    try:
        with Recorder(tmp_path / "h.edn") as recorder:

            def transact(session, *program):
                return play(
                    program,
                    recorder=recorder,
                    session=session,
                    client=target.connect(),
                    driver=driver_for(target),
                    level="serializable",
                )

            assert transact("writes", Write("x", 1)) == ("committed", None)
            target.server.control("kill")
            target.server.control("start")
            assert transact("reads", Read("x")) == ("committed", None)
            history = recorder.history()
        lost = value_on_server(target, "x") is None
    finally:
        target.close()
    assert asynchronous or not lost
    for level in ("strong-si", "sser"):
        assert isolang.check(history, level).outcome == ("invalid" if lost else "valid")
    assert isolang.check(history, "ser").outcome == "valid"


@pytest.mark.campaign
@pytest.mark.server
@pytest.mark.slow
def test_a_run_with_faults(tmp_path):
    """Each is in the history when it begins and ends; after a kill every key is read back."""
    runner = Runner(
        Settings(
            target="postgres", level="serializable", claims="strong-si", workload="rmw",
            shape=Shape(keys=150), faults=("kill",), seconds=10.0, sessions=4, folder=str(tmp_path),
        )
    )  # fmt: skip
    try:
        runner.start()
        recorded = runner.run()
    finally:
        runner.close()
    lines = recorded.path.read_text().splitlines()
    kills = [line for line in lines if ":process :nemesis" in line]
    assert recorded.state.faults["kill"] == len(kills) // 2 > 0
    after = "\n".join(lines[lines.index(kills[1]) :])
    assert all(f'[:r "x{i:03}"' in after for i in range(150))
    history = isolang.load_history(recorded.path)
    assert isolang.check(history, "strong-si").outcome == "valid"


@pytest.mark.parametrize(
    ("target", "faults", "message"),
    [
        ("sqlite", ("kill",), "faults need a server that isocheck has started"),
        (
            "postgresql://me@127.0.0.1/db",
            ("kill",),
            "faults need a server that isocheck has started",
        ),
        ("postgres", ("flood",), "unknown fault"),
    ],
)
def test_faults_that_cannot_be_done(target, faults, message):
    with pytest.raises(TargetError, match=message):
        Runner(Settings(target=target, faults=faults))
