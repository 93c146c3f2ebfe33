"""Remarks that change what a verdict means: every form of output says them, the shortest too."""

from __future__ import annotations

from collections.abc import Iterable


class Caveat(str):
    """A remark without which a verdict says more than it should.

    What stands before its first colon says it in short.
    """

    __slots__ = ()

    @property
    def brief(self) -> str:
        """It in short.

        >>> Caveat("torn after line 4: line 5 has no end").brief
        'torn after line 4'
        >>> Caveat("NOTHING WAS OBSERVED: no session read").brief
        'nothing was observed'
        """
        said = self.partition(": ")[0]
        return said.lower() if said.isupper() else said


def caveats_in(remarks: Iterable[str]) -> tuple[str, ...]:
    """Those of some remarks that are caveats, each once."""
    return tuple(dict.fromkeys(str(one) for one in remarks if isinstance(one, Caveat)))
