"""The command line, with one module for each command. Slow imports are delayed until needed."""
