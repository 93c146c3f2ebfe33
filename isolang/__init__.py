"""Checks whether a database provides the isolation level it promises.

Examples:
    >>> import isolang
    >>> spec = isolang.load_spec("ser")
    >>> history = isolang.History.from_transactions([
    ...     isolang.Transaction([("r", "x", None), ("w", "y", 1)], session=1),
    ...     isolang.Transaction([("r", "y", None), ("w", "x", 1)], session=2),
    ... ])
    >>> isolang.check(history, spec).outcome
    'invalid'

Names are imported on first use, so that the command line starts fast.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if find_spec("isolang._native") is None:
    raise ImportError(
        f"isolang: its compiled core is missing (got sources alone, in {__path__[0]}); "
        "hint: a Python that starts in a checkout imports what lies there: start it elsewhere, "
        "or install the checkout with pip install -e ."
    )

from isolang.renderers import RENDERERS

if TYPE_CHECKING:
    from isolang.api import check, levels, load_history, load_spec
    from isolang.comparison.compare import Comparison, Implication, SeparatingHistory, compare
    from isolang.errors import (
        HistoryError,
        IsolangError,
        ModelError,
        SpecError,
        UnsupportedError,
        WorkerError,
    )
    from isolang.foresee.predict import predict
    from isolang.foresee.predicted import Prediction, Predictions
    from isolang.foresee.robustness import Robustness, robust
    from isolang.history import UNKNOWN, History, Keyword, Transaction, save_history
    from isolang.many import Checked, check_many
    from isolang.models.linearize import linearize
    from isolang.models.model import Model
    from isolang.models.operation import Operation
    from isolang.models.read import load_operations
    from isolang.pipeline.levels import Levels, LevelStanding
    from isolang.programs.outcomes import Outcome, OutcomeTable, outcomes
    from isolang.run.record.recorder import Recorder
    from isolang.testing.assertion import IsolationError, UndecidedError, assert_level
    from isolang.verdict import Invalid, Unknown, Valid, Verdict

__all__ = [
    "UNKNOWN",
    "Checked",
    "Comparison",
    "History",
    "HistoryError",
    "Implication",
    "Invalid",
    "IsolangError",
    "IsolationError",
    "Keyword",
    "LevelStanding",
    "Levels",
    "Model",
    "ModelError",
    "Operation",
    "Outcome",
    "OutcomeTable",
    "Prediction",
    "Predictions",
    "Recorder",
    "Robustness",
    "SeparatingHistory",
    "SpecError",
    "Transaction",
    "UndecidedError",
    "Unknown",
    "UnsupportedError",
    "Valid",
    "Verdict",
    "WorkerError",
    "assert_level",
    "check",
    "check_many",
    "compare",
    "levels",
    "linearize",
    "load_history",
    "load_operations",
    "load_spec",
    "outcomes",
    "predict",
    "robust",
    "save_history",
]

_HOME = {
    "check": "isolang.api",
    "levels": "isolang.api",
    "load_history": "isolang.api",
    "load_spec": "isolang.api",
    "compare": "isolang.comparison.compare",
    "Comparison": "isolang.comparison.compare",
    "Implication": "isolang.comparison.compare",
    "SeparatingHistory": "isolang.comparison.compare",
    "Checked": "isolang.many",
    "check_many": "isolang.many",
    "predict": "isolang.foresee.predict",
    "Prediction": "isolang.foresee.predicted",
    "Predictions": "isolang.foresee.predicted",
    "robust": "isolang.foresee.robustness",
    "Robustness": "isolang.foresee.robustness",
    "HistoryError": "isolang.errors",
    "IsolangError": "isolang.errors",
    "ModelError": "isolang.errors",
    "SpecError": "isolang.errors",
    "UnsupportedError": "isolang.errors",
    "WorkerError": "isolang.errors",
    "UNKNOWN": "isolang.history",
    "History": "isolang.history",
    "Keyword": "isolang.history",
    "Recorder": "isolang.run.record.recorder",
    "Transaction": "isolang.history",
    "save_history": "isolang.history",
    "linearize": "isolang.models.linearize",
    "Model": "isolang.models.model",
    "Operation": "isolang.models.operation",
    "load_operations": "isolang.models.read",
    "Levels": "isolang.pipeline.levels",
    "LevelStanding": "isolang.pipeline.levels",
    "outcomes": "isolang.programs.outcomes",
    "Outcome": "isolang.programs.outcomes",
    "OutcomeTable": "isolang.programs.outcomes",
    "IsolationError": "isolang.testing.assertion",
    "UndecidedError": "isolang.testing.assertion",
    "assert_level": "isolang.testing.assertion",
    "Invalid": "isolang.verdict",
    "Unknown": "isolang.verdict",
    "Valid": "isolang.verdict",
    "Verdict": "isolang.verdict",
}


def _text(verdict: Verdict) -> str:
    from isolang.output.text import text_of

    return text_of(verdict)


def _page(verdict: Verdict) -> str:
    from isolang.report import page

    return page(verdict)


RENDERERS["text"], RENDERERS["page"] = _text, _page


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
