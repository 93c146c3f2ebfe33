"""The ways in: how the libraries of a test's process reach the observer.

A watch starts the proxy of :mod:`isolang.observe` inside the process, and moves a library's
``connect`` to it. A hook before each statement notes the caller, so that the history names lines.
"""
