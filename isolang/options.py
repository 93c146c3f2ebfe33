"""How to check: what a user can choose that changes no verdict."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from isolang.processors import processors

_PER_THREAD: Final = 100  # megabytes of a limit: its stack counts


class Options(Struct, frozen=True, kw_only=True):
    """How to check.

    Attributes:
        certify: have an independent checker accept the verdict.
        memory: megabytes for all phases; the searches, which keep what they learn, end before
            they hold half of it. ``None`` for no limit but theirs (:meth:`search_bytes`).
        seed: breaks ties; equal seeds give equal runs.
        solver: which back end decides, ``auto`` or a name of docs/encodings.md.
        encoding: how the problem is put to it, likewise.
        prune: how much is concluded before, ``auto``, ``none``, ``known`` or ``fixpoint``.
        threads: how many may work on one history; ``None`` for as many as there are processors, up
            to eight.
    """

    certify: bool = True
    memory: float | None = None
    seed: int = 0
    solver: str = "auto"
    encoding: str = "auto"
    prune: str = "auto"
    threads: int | None = None

    def search_bytes(self) -> int:
        """What the searches may hold: half of the memory, and never more than a gibibyte."""
        most = 1 << 30
        return most if self.memory is None else min(most, int(self.memory * 1e6 / 2))

    def thread_count(self) -> int:
        """How many threads may work on one history."""
        wanted = processors() if self.threads is None else self.threads
        if self.memory is None:
            return wanted
        return max(1, min(wanted, int(self.memory / _PER_THREAD)))
