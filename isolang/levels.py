"""Judges a history by all library levels; public name of :mod:`isolang.pipeline.levels`."""

from isolang.pipeline.levels import Levels, least_clock_error, levels_of
from isolang.pipeline.levels import LevelStanding as Level

__all__ = ["Level", "Levels", "least_clock_error", "levels_of"]
