"""Work on one history: what a run does with it, here or in a child process under limits."""
