"""The command line: one file per command; nothing heavy is imported before it is needed."""
