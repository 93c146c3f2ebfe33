"""Provides all workloads by name.

Each workload is a class that lists the keys it needs and makes one transaction at a time from
random choices. Workloads do not depend on the database. ``docs/workloads.md`` describes the origin
of each workload, the anomalies it finds, and its parameters.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from isolang.errors import TargetError, unknown_name_details
from isolang.run.settings import Shape
from isolang.run.workloads.workload import ProgramSource, Workload

__all__ = ["NAMES", "ProgramSource", "Shape", "Workload", "workload_named"]

_HOME: Final = {
    "pairs": "pairs:Pairs",
    "insert-delete": "rows:InsertDelete",
    "append": "mixes:ListAppend",
    "register": "mixes:Registers",
    "rmw": "mixes:ReadModifyWrite",
    "mini": "mixes:Mini",
    "general": "mixes:General",
    "blindw-rm": "mixes:BlindRM",
    "blindw-rw": "mixes:BlindRW",
    "blindw-wr": "mixes:BlindWR",
    "blindw-rh": "mixes:BlindRH",
    "blindw-wh": "mixes:BlindWH",
    "blindw-w": "mixes:BlindW",
    "blindw-rw+": "mixes:BlindRanges",
    "ycsb": "mixes:Ycsb",
    "blindw-pred": "predicates:BlindPred",
    "pairs-pred": "predicates:PairsPred",
    "insert-delete-pred": "predicates:InsertDeletePred",
    "queries": "queries:Queries",
    "orders": "orders:Orders",
    "long-fork": "invariants:LongFork",
    "bank": "invariants:Bank",
    "counter": "invariants:Counter",
    "cas": "invariants:CompareAndSet",
    "smallbank": "applications:SmallBank",
    "twitter": "applications:Twitter",
    "rubis": "applications:Rubis",
    "tpcc": "applications:Tpcc",
}
NAMES: Final = tuple(_HOME)


def workload_named(name: str, shape: Shape | None = None) -> Workload:
    """Create the workload with this name.

    Raises:
        TargetError: the workload does not exist.
    """
    if name not in _HOME:
        raise TargetError(f"unknown workload {unknown_name_details(name, NAMES)}")
    module, kind = _HOME[name].split(":")
    made: Workload = getattr(import_module(f"isolang.run.workloads.{module}"), kind)(
        shape or Shape()
    )
    return made
