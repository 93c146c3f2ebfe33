"""One module for each kind of route: a history and a route in, a verdict out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isolang.engines.run import Progress, Run
    from isolang.history.history import History
    from isolang.language.classify.route import Route
    from isolang.limits import Spending
    from isolang.options import Options


def run_of(
    history: History, route: Route, spending: Spending, options: Options, progress: Progress
) -> Run:
    """The run that decides a route: of its kind, or of the encoding that the user asked for.

    Raises:
        SolverError: there is no such pair, or it does not apply to the specification.
    """
    from isolang.solvers.registry import choose_pair, starts_from_polygraph

    pair, why = choose_pair(options.encoding, options.solver, options.prune, route=route)
    if pair.is_engine or starts_from_polygraph(pair.encoding):
        from isolang.engines.event_graph import EventGraphRun

        return EventGraphRun(history, route, spending, options, progress)
    from isolang.engines.relational import RelationalRun
    from isolang.language.classify.relational import Relational, relational
    from isolang.solvers.pair import written_spec

    if not isinstance(route, Relational):
        route = relational(written_spec(route), route.reasons)
    run = RelationalRun(history, route, spending, options, progress)
    run.pair, run.choice = pair, why
    return run
