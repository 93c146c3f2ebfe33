"""One module for each kind of route: a history and a route in, a verdict out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isolang.engines.run import Progress, Run
    from isolang.history.history import History
    from isolang.language.route import Route
    from isolang.limits import Spending
    from isolang.options import Options


def run_of(
    history: History, route: Route, spending: Spending, options: Options, progress: Progress
) -> Run:
    """The run that decides a route of its kind."""
    match route.kind:
        case "event graph" | "reachability" | "saturation":
            from isolang.engines.event_graph import EventGraphRun

            return EventGraphRun(history, route, spending, options, progress)
        case "relational":
            from isolang.engines.relational import RelationalRun

            return RelationalRun(history, route, spending, options, progress)
        case _:
            raise AssertionError(f"no engine for a route of kind {route.kind}")
