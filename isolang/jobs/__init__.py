"""Checks one history at a time, in this process or in a child process with limits."""
