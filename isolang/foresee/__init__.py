"""Predictions from a run that passed, and the robustness of programs against a weaker level.

``predict`` starts from one recorded run: it finds histories of the same transactions that a weaker
level allows and a stronger one forbids. The exact theory of robustness starts from programs: it
decides whether any execution of them can be forbidden.
"""
