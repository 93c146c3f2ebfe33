"""Names the stages of pruning, which :mod:`isolang.problem.polygraph` describes."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

Prune: TypeAlias = Literal["none", "known", "fixpoint"]
PRUNE: Final[tuple[Prune, ...]] = ("none", "known", "fixpoint")
