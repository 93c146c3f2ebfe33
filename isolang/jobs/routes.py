"""Loads specifications within the limits of a check, before any history is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from isolang.jobs.job import UnloadedSpec
from isolang.options import Options

if TYPE_CHECKING:
    from isolang.language.classify.route import Route


def load_route(spec: str, include: Sequence[str] = ()) -> Route:
    """Load a specification and choose its route.

    Raises:
        SpecError: the specification cannot be used.
    """
    from isolang.language.classify.route import route
    from isolang.language.load import load_spec

    return route(load_spec(spec, include_path=include))


def load_routes(
    specs: Sequence[str], include: Sequence[str], options: Options
) -> tuple[tuple[str, Route | UnloadedSpec], ...]:
    """Load specifications, and choose a route for each.

    Specifications are loaded before the history is read, so that a typo is reported immediately.
    Loading each of them may take as much time and memory as a verdict. If a specification exceeds
    these limits, its result is ``UnloadedSpec``.

    Raises:
        SpecError: a specification cannot be used.
    """
    return tuple((spec, _load_limited(spec, include, options)) for spec in specs)


def _load_limited(spec: str, include: Sequence[str], options: Options) -> Route | UnloadedSpec:
    from isolang.limits import default_memory, interrupt_after, memory_cap

    memory = default_memory() if options.memory is None else options.memory
    try:
        with interrupt_after(options.timeout), memory_cap(memory):
            return load_route(spec, include)
    except TimeoutError:
        return UnloadedSpec(
            "timeout: the time limit was reached while the specification was loaded"
        )
    except MemoryError:
        return UnloadedSpec(
            "memory: the memory limit was reached while the specification was loaded"
        )
