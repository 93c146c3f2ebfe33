"""Runs the steps of a check of one history, in this process or in a child process with limits."""
