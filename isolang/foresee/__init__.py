"""Predicts violations at a weaker level, from a recorded run or from programs.

``predict`` starts from one recorded run that satisfies a level. It finds histories of the same
transactions that a weaker level allows and the stronger level forbids. The other modules start from
programs, and decide whether the weaker level allows an execution that is not serializable.
"""
