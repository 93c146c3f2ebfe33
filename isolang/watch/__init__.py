"""Watching a stream of transactions: judged round by round, in bounded memory."""
