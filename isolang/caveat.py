"""Remarks that change what a verdict means, and that every form of output has."""

from __future__ import annotations

from collections.abc import Iterable


class Caveat(str):
    """A remark without which a verdict would claim too much.

    The part before the first colon is its summary.
    """

    __slots__ = ()

    @property
    def brief(self) -> str:
        """The part before the first colon.

        >>> Caveat("torn after line 4: line 5 has no end").brief
        'torn after line 4'
        >>> Caveat("NOTHING WAS OBSERVED: no session read").brief
        'nothing was observed'
        """
        summary = self.partition(": ")[0]
        return summary.lower() if summary.isupper() else summary


def caveats_in(remarks: Iterable[str]) -> tuple[str, ...]:
    """Return the caveats among some remarks, each once."""
    return tuple(dict.fromkeys(str(one) for one in remarks if isinstance(one, Caveat)))
