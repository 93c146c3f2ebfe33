"""Independent proof checkers, which share nothing with the engine but a history's columns."""
