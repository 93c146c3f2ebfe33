"""The verdict on a run that has ended.

``judge`` checks its history, ``doubts`` say what keeps a valid verdict from meaning what it seems
to mean, and ``lost_commits`` names commits that a kill or a promotion of a standby has lost.
"""
