"""How to check: what a user can choose that changes no verdict."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to check.

    Attributes:
        certify: have an independent checker accept the verdict.
        seed: breaks ties; equal seeds give equal runs.
    """

    certify: bool = True
    seed: int = 0
