"""Clusters: several nodes, partitions, a standby that is promoted, and faults by commands."""

from __future__ import annotations

import os
import socket
import threading
from random import Random
from types import SimpleNamespace

import pytest
from support.sampling import quick_first
from support.servers import require_server, start_target

from isolang.run.address import Address
from isolang.run.judge.judge import judge_run
from isolang.run.play.faults import check_faults
from isolang.run.play.runner import Runner
from isolang.run.servers.network import Network
from isolang.run.settings import Settings
from isolang.run.target import TargetError
from isolang.run.targets import target_named
from isolang.verdict import Valid

GONE = 2**22 + 1  # no process has such a number


def ran(target, tmp_path, **more):
    """Run a target, which is not there any more then; the run and its verdict."""
    folder = str(tmp_path)
    runner = Runner(Settings(target=target, folder=folder, to_the_end=True, watched=False, **more))
    try:
        runner.start()
        recorded = runner.run()
        return recorded, judge_run(recorded, runner.target, levels=False, smallest=False)
    finally:
        runner.close()


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("mariadb://me:p,w@a:1,b,c:3/db", [("a", 1), ("b", None), ("c", 3)]),
        ("etcd://127.0.0.1:2379,127.0.0.2:2380?x=1", [("127.0.0.1", 2379), ("127.0.0.2", 2380)]),
        ("mariadb://me:p,w@a:1/db", [("a", 1)]),
    ],
)
def test_a_url_names_several_nodes(text, nodes):
    """Hosts stand with commas between, and a comma in a password makes no node."""
    address = Address.parse(text)
    found = [address.node(i) for i in range(len(nodes))]
    assert [(one.host, one.port) for one in found] == nodes
    assert address.node(len(nodes)) == found[0]
    assert "p,w" not in str(address)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("etcd://?members=3", "etcd://?members=3"),
        ("mine.py:Mine://h/d?size=3", "mine.py:Mine://h/d?size=3"),
        ("postgresql:///db?host=/tmp/x", "postgresql:///db?host=/tmp/x"),
        (
            "postgresql://me:p,w@h/d?sslpassword=p,w&sslmode=require",
            "postgresql://me@h/d?sslmode=require",
        ),
    ],
)
def test_an_address_is_repeated_with_its_options(text, shown):
    """How a run is repeated names the same target; passwords stay out, in options too."""
    assert str(Address.parse(text)) == shown


def test_clients_are_spread_over_the_nodes():
    """Each new connection goes to the next node, what creates tables to the first."""
    target = target_named("mariadb://me@a,b,c/db")
    assert [target.place(direct=False).host for _ in range(4)] == ["a", "b", "c", "a"]
    assert target.place(direct=True).host == "a"


@pytest.fixture
def network():
    """Two nodes: this process, and a thread that answers as the other one would."""
    listener = socket.create_server(("127.0.0.1", 0))

    def echo(one):
        one.sendall(one.recv(9))

    def answer():
        while True:
            try:
                one, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=echo, args=(one,), daemon=True).start()

    threading.Thread(target=answer, daemon=True).start()
    nodes = [SimpleNamespace(process=os.getpid()), SimpleNamespace(process=GONE)]
    made = Network(nodes, [("127.0.0.1", 1), listener.getsockname()])
    yield made
    made.close()
    listener.close()


@pytest.mark.parametrize("kind", ["halves", "one-node", "one-way"])
def test_a_partition_holds_back_what_nodes_say(network, kind):
    """Nothing arrives while the network is cut, and all of it when it is healed."""
    seed = next(s for s in range(9) if "[0] " in Network.partition(network, kind, Random(s)))
    network.heal()
    with socket.create_connection(network.proxies[1].address, timeout=0.3) as one:
        network.partition(kind, Random(seed))
        one.sendall(b"hello")
        with pytest.raises(TimeoutError):
            one.recv(9)
        network.heal()
        one.settimeout(10)
        assert one.recv(9) == b"hello"


def test_a_client_is_no_node(network):
    """A partition of the nodes does not cut off who is none of them."""
    network._nodes = [SimpleNamespace(process=GONE)] * 2
    network.partition("halves", Random(0))
    with socket.create_connection(network.proxies[1].address, timeout=10) as one:
        one.sendall(b"hello")
        assert one.recv(9) == b"hello"


@pytest.mark.slow
def test_a_command_is_a_fault(tmp_path):
    """It is called with ``begin`` and ``end``, as often as ``--fault-every`` says."""
    said = tmp_path / "said"
    fault = f"exec:echo >>{said}"
    recorded, _ = ran(
        "memory", tmp_path, workload="rmw", seconds=3, faults=(fault,), fault_every=0.2
    )
    lines = said.read_text().split()
    assert lines[:2] == ["begin", "end"]
    assert recorded.state.faults[fault] == len(lines) // 2 > 0
    assert b":f :exec, " in recorded.path.read_bytes()


@pytest.mark.slow
def test_a_command_that_fails_ends_the_run(tmp_path):
    """The message has what the command said."""
    fault = "exec:echo no such bridge; false"
    recorded, _ = ran(
        "memory", tmp_path, workload="rmw", seconds=9, faults=(fault,), fault_every=0.1
    )
    assert "exit code 1; no such bridge" in recorded.state.problem
    assert recorded.seconds < 8


@pytest.mark.parametrize(
    ("target", "fault", "said"),
    [
        ("postgres", "flood", "unknown fault"),
        ("postgres", "exec:", "unknown fault"),
        ("memory", "kill", "need a server that isocheck has started"),
        ("mariadb", "promote", "no standby"),
        ("postgres", "partition-halves", "no network"),
    ],
)
def test_a_fault_that_a_target_has_not_is_refused(target, fault, said):
    """Nothing is started then."""
    with pytest.raises(TargetError, match=said):
        check_faults((fault,), target_named(target))


@pytest.mark.campaign
@pytest.mark.server
@pytest.mark.slow
def test_members_that_are_parted_stay_linearizable(tmp_path):
    """The minority of etcd answers no more, and the other members elect a leader."""
    require_server("etcd")
    recorded, judged = ran(
        "etcd://?members=3", tmp_path, workload="register", seconds=5,
        faults=("partition-one-node",), fault_every=0.5,
    )  # fmt: skip
    assert recorded.state.faults["partition-one-node"] > 0
    assert isinstance(judged.verdict, Valid)
    assert "3 members" in recorded.version


@pytest.mark.server
@pytest.mark.slow
def test_promotion_loses_commits_that_are_named(tmp_path):
    """What an asynchronous standby had not got is lost when it takes over."""
    require_server("postgres")
    recorded, judged = ran(
        "postgres", tmp_path, level="repeatable read", claims="strong-si", workload="register",
        seconds=8, faults=("promote",), fault_every=1.0,
    )  # fmt: skip
    assert recorded.state.faults["promote"] > 0
    assert judged.verdict.outcome == "invalid"
    assert any("was lost by the promotion at" in one for one in judged.lost)


@pytest.mark.server
@pytest.mark.parametrize(
    ("claims", "outcome"), quick_first([("sser", "invalid"), ("ser", "valid")], rest="campaign")
)
def test_a_replica_of_redis_is_behind(tmp_path, claims, outcome):
    """Its clients read what there was: serializable, though no longer what there is."""
    require_server("redis")
    _, judged = ran(
        "redis", tmp_path, claims=claims, workload="rmw", seconds=20, standby=3, transactions=2500,
    )  # fmt: skip
    assert judged.verdict.outcome == outcome
    assert judged.verdict.certified


@pytest.mark.campaign
@pytest.mark.server
@pytest.mark.slow
def test_promotion_of_a_replica_loses_commits(tmp_path):
    """Redis answers before the replica has what was written."""
    require_server("redis")
    recorded, judged = ran(
        "redis",
        tmp_path,
        workload="rmw",
        seconds=4,
        sessions=3,
        faults=("promote",),
        fault_every=1.0,
    )
    assert recorded.state.faults["promote"] > 0
    assert judged.verdict.outcome == "invalid"
    assert any("was lost by the promotion at" in one for one in judged.lost)


@pytest.mark.campaign
@pytest.mark.server
@pytest.mark.slow
def test_galera_has_three_nodes():
    """Clients are on different nodes, and what one of them commits, the others read."""
    target = start_target("galera", keys=["x"])
    try:
        clients = [target.connect() for _ in range(3)]
        asked = [one.execute("SELECT @@wsrep_node_name", ()).fetchone() for one in clients]
        assert {name for (name,) in asked} == {"n0", "n1", "n2"}
        clients[0].raw.rollback()
        clients[0].begin("repeatable read")
        clients[0].write("x", 7)
        clients[0].commit()
        for one in clients[1:]:
            one.raw.rollback()
            one.execute("SET SESSION wsrep_sync_wait = 1", ())
            assert one.read("x") == 7
    finally:
        target.close()
