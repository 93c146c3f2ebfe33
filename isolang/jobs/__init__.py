"""Work on one history: the steps of a check, in this process or in a child with limits."""
