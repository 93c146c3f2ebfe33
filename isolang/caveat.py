"""Defines caveats: remarks that change the meaning of a verdict and appear in every output form."""

from __future__ import annotations

from collections.abc import Iterable


class Caveat(str):
    """A remark that keeps the reader from concluding too much from a verdict.

    The text before the first colon is a summary of the remark.
    """

    __slots__ = ()

    @property
    def brief(self) -> str:
        """The summary: the text before the first colon, lower-cased if it is all capitals.

        >>> Caveat("torn after line 4: line 5 has no end").brief
        'torn after line 4'
        >>> Caveat("NOTHING WAS OBSERVED: no session read").brief
        'nothing was observed'
        """
        summary = self.partition(": ")[0]
        return summary.lower() if summary.isupper() else summary


def caveats_in(remarks: Iterable[str]) -> tuple[str, ...]:
    """Return the remarks that are caveats, without duplicates."""
    return tuple(dict.fromkeys(str(one) for one in remarks if isinstance(one, Caveat)))
