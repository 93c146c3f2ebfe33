"""Judges a run that has ended.

``judge`` checks the history of the run. ``doubts`` finds reasons why a valid verdict may mean less
than it seems to. ``lost_commits`` finds commits that were lost because a server was killed or a
standby was promoted.
"""
