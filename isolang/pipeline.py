"""From a history and a route to a verdict: the engine of the route's kind decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.engines import run_of
from isolang.engines.run import Progress
from isolang.errors import HistoryError, UnsupportedError
from isolang.limits import Spending
from isolang.options import Options
from isolang.verdict import Verdict

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.classify.route import Route
    from isolang.problem import Problem

__all__ = ["Options", "Progress", "decide"]


def decide(
    history: History,
    route: Route,
    spending: Spending,
    options: Options,
    progress: Progress = lambda phase: None,
    *,
    problem: Problem | None = None,
) -> Verdict:
    """Decide whether a history satisfies a spec.

    Args:
        history: the history.
        route: of the spec.
        spending: the clock.
        options: how to check.
        progress: called with the name of each phase as it begins.
        problem: of the history, if it was built before.

    Raises:
        HistoryError: the spec needs real time and the history has none, or the columns do not fit
            together.
    """
    if route.uses_real_time and not history.columns.has_time:
        msg = (
            f"{history.name}: spec {route.spec.name} uses real time (rt), but the history has none "
            f"({history.real_time or 'no times'}); check it against a level without rt"
        )
        raise HistoryError(msg)
    run = run_of(history, route, spending, options, progress)
    run.problem = problem
    try:
        return run.verdict()
    except TimeoutError:
        return run.unknown("timeout", f"the time ran out in phase {spending.phase}{run.hardness()}")
    except MemoryError as error:
        # A search that keeps to its own limit says so; what the system refuses comes without words.
        what = str(error) or f"the memory ran out in phase {spending.phase}"
        return run.unknown("memory", f"{what}{run.hardness()}")
    except UnsupportedError as error:
        return run.unknown("unsupported", str(error))
