"""The old name of :mod:`isolang.simulator`, which the next release no longer has."""

from __future__ import annotations

import warnings

from isolang.simulator import *  # noqa: F403
from isolang.simulator import __all__  # noqa: F401

warnings.warn("isolang.workload is called isolang.simulator now", DeprecationWarning, stacklevel=2)
