"""How to check: what a user can choose that changes no verdict."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to check.

    Attributes:
        certify: have an independent checker accept the verdict.
        seed: breaks ties; equal seeds give equal runs.
        solver: which back end decides, ``auto`` or a name of docs/encodings.md.
        encoding: how the problem is put to it, likewise.
        prune: how much is concluded before, ``auto``, ``none``, ``known`` or ``fixpoint``.
    """

    certify: bool = True
    seed: int = 0
    solver: str = "auto"
    encoding: str = "auto"
    prune: str = "auto"
