"""Measures the cost of recording, by comparing a recorder with one that records nothing.

    python benchmarks/recording.py [TARGET] [--workload NAME] [--sessions N] [--turns N]
    python benchmarks/recording.py postgres --versions

The clients of `isocheck run` use the two recorders in turn on one database, each time on new
tables. Nothing is judged meanwhile. The mute recorder begins, commits and rolls back like the other
recorder, but forgets all operations. The program prints the medians of committed transactions per
second, and of this process's processor time for each transaction. With ``--versions``, it compares
a recorder with one that also asks for the versions of rows.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from isolang.run.play.clients import Clients
from isolang.run.play.phases import run_plan_of
from isolang.run.record.recorder import Recorder
from isolang.run.settings import Settings
from isolang.run.sql import SqlTarget
from isolang.run.target import Target
from isolang.run.targets import level_named, target_named


class Mute:
    """A recorder that records nothing."""

    def transaction(
        self, session: object, connection: Any, *, plan: object, driver: Any
    ) -> Forgotten:
        """Run a transaction without recording it."""
        return Forgotten(connection, driver)


class Forgotten:
    """A transaction that is not recorded."""

    outcome = "aborted"

    def __init__(self, connection: Any, driver: Any) -> None:
        self._connection, self._driver = connection, driver

    def __enter__(self) -> Forgotten:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if error is not None:
            self._driver.rollback(self._connection)
        else:
            self._driver.commit(self._connection)

    def sending(self) -> None:
        """Do nothing."""

    def read(self, key: object, value: object) -> None:
        """Do nothing."""

    write = append = read_none_of = read


def turn(target: Target, settings: Settings, recorder: Any) -> tuple[float, float]:
    """Play once, and return the committed transactions per second and the cost of each.

    The cost is in microseconds of processor time.
    """
    plan, level = run_plan_of(settings, target), level_named(target, settings.level)
    if isinstance(target, SqlTarget):
        target.options(level=level.name)
    target.setup(plan.registers(), plan.lists())
    try:
        clients = Clients(settings, plan, target, level, recorder)
        began, used = time.monotonic(), time.process_time()
        clients.state.began = began
        clients.start()
        clients.stopped.wait(settings.seconds)
        clients.end()
        seconds, used = time.monotonic() - began, time.process_time() - used
    finally:
        target.remove()
    committed = max(1, clients.state.committed)
    return committed / seconds, 1e6 * used / committed


def main() -> None:
    """Measure both recorders, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", nargs="?", default="sqlite")
    parser.add_argument("--workload", default="mini")
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--versions", action="store_true")
    options = parser.parse_args()
    settings = Settings(
        target=options.target, workload=options.workload, sessions=options.sessions,
        seconds=options.seconds,
    )  # fmt: skip
    target = target_named(options.target)
    found: dict[str, list[tuple[float, float]]] = {"without": [], "with": []}
    try:
        target.reports_versions = options.versions  # type: ignore[attr-defined]
        target.start()
        with tempfile.TemporaryDirectory() as folder:
            for number in range(options.turns):
                if not options.versions:
                    found["without"].append(turn(target, settings, Mute()))
                else:
                    target.reports_versions = False  # type: ignore[attr-defined]
                    with Recorder(Path(folder, f"{number}-without.edn")) as recorder:
                        found["without"].append(turn(target, settings, recorder))
                    target.reports_versions = True  # type: ignore[attr-defined]
                with Recorder(Path(folder, f"{number}.edn")) as recorder:
                    found["with"].append(turn(target, settings, recorder))
    finally:
        target.close()
    rates = {name: median(rate for rate, _ in turns) for name, turns in found.items()}
    costs = {name: median(cost for _, cost in turns) for name, turns in found.items()}
    for name in found:
        print(f"{name:<8}{rates[name]:>9,.0f}/s{costs[name]:>9.1f} µs of processor a transaction")
    lost, more = 1 - rates["with"] / rates["without"], costs["with"] - costs["without"]
    print(f"{100 * (costs['with'] / costs['without'] - 1):.0f} % more processor a transaction")
    print(f"recording takes {100 * lost:.0f} % of the throughput, {more:.1f} µs a transaction")


if __name__ == "__main__":
    main()
