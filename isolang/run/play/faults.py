"""Injects faults at random times into servers started by isocheck."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final, cast

from isolang.errors import message_in_one_line
from isolang.run.play.blame import PROGRAMMING_ERRORS
from isolang.run.target import (
    StartsCluster,
    StartsServer,
    SupportsBackups,
    SupportsMaintenance,
    SupportsPromotion,
    Target,
    TargetError,
)

if TYPE_CHECKING:
    from isolang.run.record.recorder import Recorder
    from isolang.run.servers.network import Network, Partition
    from isolang.run.servers.server import Server

_NODE_FAULTS: Final = ("kill", "pause", "disconnect", "slow")
_NETWORK_FAULTS: Final = ("partition-halves", "partition-one-node", "partition-one-way")
FAULTS: Final = (*_NODE_FAULTS, *_NETWORK_FAULTS, "promote", "maintenance")
"""The names of the faults.

``kill`` sends SIGKILL to all processes of the server, and restarts it. ``pause`` sends SIGSTOP, and
resumes the server after a while. ``disconnect`` closes all connections. ``slow`` delays all
messages. In a cluster, ``kill``, ``pause`` and ``slow`` affect a random node. During a
``partition-…``, some nodes cannot reach each other for a while. ``promote`` disconnects the
standby, kills the primary, and promotes the standby. ``maintenance`` performs one of the target's
chores, such as VACUUM, or copies its tables. In addition, the fault ``exec:COMMAND`` runs a user's
command.
"""

_EXEC_PREFIX: Final = "exec:"
_INTERVAL_S: Final = (0.5, 3.0)  # seconds from the end of a fault to the next fault
_DURATION_S: Final = (0.1, 1.5)  # how many seconds a pause or a slow network lasts
_PARTITION_S: Final = (1.5, 4.0)  # how many seconds a partition lasts, for nodes to notice
_LAG_S: Final = (0.2, 0.6)  # how many seconds a standby lags before its promotion
_UNDO_TIMEOUT_S: Final = 6.0  # the time limit for undoing the last fault
_DELAY_S: Final = (0.005, 0.1)  # by how many seconds ``slow`` delays each message
_COMMAND_TIMEOUT_S: Final = 20.0  # the time limit for a user's command


class Nemesis:
    """A thread that injects one fault after another, and records when each fault begins and ends.

    Attributes:
        done: for each fault, by name, how often it has been injected.
        busy: whether a fault is in effect or is being undone.
    """

    def __init__(
        self,
        faults: tuple[str, ...],
        *,
        target: Target,
        recorder: Recorder,
        seed: int,
        every: float | None,
        restarted: Callable[[], None],
        back_up: Callable[[str], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """Start the thread that injects the faults.

        Args:
            every: the number of seconds from the end of a fault to the next fault; ``None`` for a
                random time of 0.5 to 3 seconds.
        """
        self.done: dict[str, int] = dict.fromkeys(faults, 0)
        self.busy = False
        self._target, self._recorder = target, recorder
        self._random = Random(f"{seed}/nemesis")
        self._interval = _INTERVAL_S if every is None else (every, every)
        self._restarted, self._failed, self._back_up = restarted, failed, back_up
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop injecting faults, and wait until the last fault has been undone."""
        self._end.set()
        self._thread.join(_UNDO_TIMEOUT_S)

    def _run(self) -> None:
        try:
            while not self._end.wait(self._random.uniform(*self._interval)):
                fault = self._random.choice(list(self.done))
                self.busy = True
                name, _, command = fault.partition(":")
                if name == "maintenance":
                    command = self._random.choice(maintenance_names(self._target))
                self._recorder.note("cut-off" if name == "promote" else name, command)
                self._inject(name, command)
                self._recorder.note(f"{name}-is-over", command)
                self.done[fault] += 1
                if name in ("kill", "promote"):
                    self._restarted()
                self.busy = False
        except BaseException as error:
            self._failed(error)

    def _inject(self, name: str, command: str) -> None:
        if name.startswith("partition-"):
            self._partition(cast("Partition", name.removeprefix("partition-")))
        else:
            getattr(self, f"_{name}")(*([command] if command else []))

    def _server(self) -> Server:
        """Return a random node of the cluster, or the only server if isocheck started just one."""
        servers = started_servers(self._target)
        return self._random.choice(servers) if len(servers) > 1 else servers[0]

    def _kill(self) -> None:
        server = self._server()
        server.control("kill")
        server.control("start")

    def _pause(self) -> None:
        server = self._server()
        server.control("pause")
        self._wait(_DURATION_S)
        server.control("resume")

    def _disconnect(self) -> None:
        for server in started_servers(self._target):
            server.cut_connections()

    def _slow(self) -> None:
        proxy = self._server().proxy
        proxy.delay = self._random.uniform(*_DELAY_S)
        self._wait(_DURATION_S)
        proxy.delay = 0.0

    def _partition(self, kind: Partition) -> None:
        network = cluster_network(self._target)
        assert network is not None
        self._recorder.note("partition", network.partition(kind, self._random))
        self._wait(_PARTITION_S)
        network.heal()

    def _promote(self) -> None:
        assert isinstance(self._target, SupportsPromotion)
        self._target.promote(self._lag)

    def _lag(self) -> None:
        """Keep the primary running for a while, so that the disconnected standby lags behind it."""
        self._wait(_LAG_S)
        self._recorder.note("promote")

    def _maintenance(self, chore: str) -> None:
        try:
            if isinstance(self._target, SupportsBackups) and chore in self._target.backups:
                self._back_up(chore)
            elif isinstance(self._target, SupportsMaintenance):
                self._target.maintain(chore)
        except PROGRAMMING_ERRORS:
            raise
        except Exception as error:  # the database may refuse a chore, for example because of a lock
            self._recorder.note("maintenance-was-refused", message_in_one_line(error)[:200])

    def _exec(self, command: str) -> None:
        self._run_command(command, "begin")
        self._wait(_DURATION_S)
        self._run_command(command, "end")

    def _run_command(self, command: str, when: str) -> None:
        """Run the user's command with ``begin`` or ``end`` as an additional argument."""
        try:
            done = subprocess.run(
                f"{command} {when}",
                shell=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=_COMMAND_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            raise TargetError(f"--fault exec: {command} {when} did not end within 20 s") from None
        if done.returncode:
            message = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
            msg = f"{command} {when} failed (exit code {done.returncode}; {message[-1]})"
            raise TargetError(f"--fault exec: {msg}")

    def _wait(self, how_long: tuple[float, float]) -> None:
        self._end.wait(self._random.uniform(*how_long))


def maintenance_names(target: Target) -> tuple[str, ...]:
    """Return the names of the chores and backups declared by the target's adapter."""
    chores = tuple(target.chores) if isinstance(target, SupportsMaintenance) else ()
    return (*chores, *(target.backups if isinstance(target, SupportsBackups) else ()))


def started_servers(target: Target) -> tuple[Server, ...]:
    """Return the servers started by isocheck for a target: a single one, or all cluster nodes."""
    if isinstance(target, StartsCluster) and target.cluster is not None:
        return target.cluster.nodes
    assert isinstance(target, StartsServer)
    assert target.server is not None
    return (target.server,)


def cluster_network(target: Target) -> Network | None:
    """Return the network between the nodes of a target's cluster; ``None`` without a cluster."""
    if isinstance(target, StartsCluster) and target.cluster is not None:
        return target.cluster.network
    return None


def check_faults(faults: tuple[str, ...], target: Target) -> None:
    """Check that a target supports the faults, and prepare the target for them.

    Raises:
        TargetError: a fault is unknown, or the target does not support it.
    """
    own = not target.address.host  # isocheck starts the server
    for fault in faults:
        if fault.startswith(_EXEC_PREFIX) and fault != _EXEC_PREFIX:
            continue
        if fault not in FAULTS:
            expected = f"one of {', '.join(FAULTS)}, exec:COMMAND"
            raise TargetError(f"unknown fault (got {fault!r}, expected {expected})")
        if fault == "maintenance":
            if not maintenance_names(target):
                raise TargetError(f"{target.name}: the adapter declares no maintenance chores")
            continue
        if not isinstance(target, StartsServer) or not own:
            hint = "leave out the address: isocheck run postgres --fault kill"
            raise TargetError(
                f"{target.name}: faults need a server that isocheck has started; {hint}"
            )
        if fault in _NETWORK_FAULTS and not (
            isinstance(target, StartsCluster) and target.partitions
        ):
            hint = "isocheck run 'etcd://?members=3' has nodes that a fault can separate"
            raise TargetError(f"{target.name}: this target has no network between nodes; {hint}")
        if fault == "promote":
            if not isinstance(target, SupportsPromotion):
                hint = "postgres and redis have one: isocheck run postgres --fault promote"
                raise TargetError(f"{target.name}: this target has no standby to promote; {hint}")
            target.standby = True
        target.proxied = True
    target.tokens = any(fault != "maintenance" for fault in faults)
