"""Prints the time of each phase of a verdict, and the engine's counts, for ``--profile``.

The JSON report has the same numbers in the fields ``seconds`` and ``statistics``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

if TYPE_CHECKING:
    from isolang.output.records import Report

_PHASES = {
    "read": "reading",
    "prepare": "pre-pass and problem",
    "solve": "solving",
    "certify": "certifying",
}
# The texts for the stages of `solve` measured by the engine, and for its counts. Other names are
# printed unchanged.
_STAGES = {
    "graph": "event graph",
    "prune": "pruning",
    "search": "search",
    "refute": "refutation",
}
_COUNTS = {
    "nodes": "nodes",
    "presolve_window": "window of assumed order",
    "presolve_rounds": "rounds of assumed order",
    "timed_rounds": "rounds of recorded times",
    "chains": "chains (clock columns)",
    "edges_known": "edges before pruning",
    "edges_after_pruning": "edges after pruning",
    "prune_passes": "pruning passes",
    "orders_forced": "version orders forced",
    "sources_eliminated": "sources eliminated",
    "rounds": "rounds of replay",
    "variables": "variables",
    "decisions": "decisions",
    "conflicts": "conflicts",
    "restarts": "restarts",
}


def profile(report: Report) -> Iterator[str]:
    """Yield the lines of the profile of one report.

    >>> from isolang.output.records import Report
    >>> from isolang.limits import Seconds
    >>> report = Report(history="h", spec="si", verdict="valid",
    ...                 seconds=Seconds(read=0.25, solve=0.5, total=0.8),
    ...                 statistics={"nodes": 12, "seconds_prune": 0.375})
    >>> for line in profile(report):
    ...     print(line)
      profile                      seconds
        reading                     0.2500   31 %
        solving                     0.5000   62 %
          pruning                   0.3750   47 %
          the rest                  0.1250   16 %
        the rest                    0.0500    6 %
        total                       0.8000
        nodes                           12
    """
    seconds, statistics = asdict(report.seconds), report.statistics
    total = seconds["total"]

    def row(indent: int, name: str, value: float) -> str:
        share = f"{100 * value / total:5.0f} %" if total else ""
        return f"{' ' * indent}{name:<{28 - indent}}{value:>10.4f}{share}"

    yield f"  {'profile':<29}seconds"
    phases = {name: seconds[name] for name in _PHASES if seconds[name]}
    for name, value in phases.items():
        yield row(4, _PHASES[name], value)
        if name == "solve":
            stages = {_stage(key): x for key, x in statistics.items() if key.startswith("seconds_")}
            yield from (row(6, stage, x) for stage, x in stages.items())
            rest = value - sum(stages.values())
            if stages and rest > 0:
                yield row(6, "the rest", rest)
    yield row(4, "the rest", max(0.0, total - sum(phases.values())))
    yield f"    {'total':<24}{total:>10.4f}"
    counts = {key: x for key, x in statistics.items() if not key.startswith("seconds_")}
    for key in sorted(counts, key=_sort_position):
        yield f"    {_COUNTS.get(key, key.replace('_', ' ')):<24}{_number(counts[key]):>10}"


def _stage(key: str) -> str:
    name = key.removeprefix("seconds_")
    return _STAGES.get(name, name.replace("_", " "))


def _sort_position(key: str) -> int:
    return list(_COUNTS).index(key) if key in _COUNTS else len(_COUNTS)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
