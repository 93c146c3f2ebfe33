"""The implications among the library's levels, for checking one history against several levels.

``isocheck spec lattice`` proves each implication, and tests compare this table with the proofs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

# The following implications hold both with and without sessions: SSER => SER => SI => PSI => CC =>
# RA => RC, and SI => PC => CC (A. Cerone, G. Bernardi, A. Gotsman, CONCUR 2015; R. Biswas, C. Enea,
# OOPSLA 2019; A. Adya, 1999).
_CHAIN: Mapping[str, tuple[str, ...]] = {
    "sser": ("ser", "strong-si"),
    "strong-si": ("si",),
    "ser": ("si",),
    "si": ("psi", "pc"),
    "psi": ("cc",),
    "pc": ("cc",),
    "cc": ("ra",),
    "ra": ("rc",),
    "rc": (),
}


def _implications() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for level, weaker in _CHAIN.items():
        alone = f"{level}-nosession"
        found[level] = (*weaker, alone)
        found[alone] = tuple(f"{one}-nosession" for one in weaker)
    found["cc"] += ("mr", "mw", "wfr")
    found["ra"] += ("ryw",)
    found["ser-nosession"] += ("pl-3",)
    found["rc-nosession"] += ("pl-2",)
    # A session guarantee applies to whole transactions. WFR also makes visibility transitive.
    found |= dict.fromkeys(("ryw", "mr", "mw"), ("ra-nosession",))
    return found | {"wfr": ("cc-nosession",), "pl-3": ("pl-2",), "pl-2": ("pl-1",), "pl-1": ()}


IMPLIES: Mapping[str, tuple[str, ...]] = _implications()
"""For each level, the levels it directly implies."""


@cache
def implied_by(name: str) -> frozenset[str]:
    """Return all levels implied by a level, directly or through other levels.

    >>> sorted(implied_by("pl-3"))
    ['pl-1', 'pl-2']
    """
    found: set[str] = set()
    work = list(IMPLIES[name])
    while work:
        one = work.pop()
        if one not in found:
            found.add(one)
            work += IMPLIES[one]
    return frozenset(found)


def implications_among(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return, for each of the given levels, the given levels that it directly implies.

    An implication is direct if none of the other given levels lies in between.

    >>> implications_among(["ser", "si", "pl-3", "pl-1"])
    {'ser': ('si', 'pl-3'), 'si': ('pl-1',), 'pl-3': ('pl-1',), 'pl-1': ()}
    """
    below = dict.fromkeys(names, frozenset[str]())
    below = {name: implied_by(name) & below.keys() for name in below}
    return {
        name: tuple(m for m in below if m in weaker and not any(m in below[o] for o in weaker))
        for name, weaker in below.items()
    }
