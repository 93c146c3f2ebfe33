"""How far the clients of a stream have come, and which of them the others wait for."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from isolang.history import columns as c
from isolang.watch.stream.client import LogClient


class Fronts(Struct, frozen=True, kw_only=True):
    """Computes the watermark.

    Attributes:
        grace: seconds of silence after which a client no longer holds it; ``None``: never.
        clock_error: nanoseconds by which the clocks of two clients may differ.
    """

    grace: float | None
    clock_error: int

    def watermark(
        self, clients: Iterable[LogClient], before: int, now: float, *, ended: bool
    ) -> int:
        """Give the time that all clients have come to, except those that are idle.

        Args:
            clients: all.
            before: the last watermark; it never goes back.
            now: the time by which clients are idle.
            ended: whether nothing comes any more.
        """
        found = list(clients)
        holding = [] if ended else self.holding(found, now)
        if not holding:
            last = [one.last_time for one in found]
            return max([before, *(time + 1 for time in last if time is not None)])
        if any(client.front is None for client in holding):
            return before
        least = min(front(client) - client.follower.state.behind for client in holding)
        return max(before, least - self.clock_error)

    def sure(self, clients: Iterable[LogClient]) -> int:
        """The time before which nothing more can come, of those that are idle or stopped, too.

        Args:
            clients: all.
        """
        open_ = [one.sure for one in clients if not one.over or one.stopped]
        if c.UNKNOWN_BEGIN in open_:
            return c.UNKNOWN_BEGIN
        return min((sure - self.clock_error for sure in open_), default=c.UNKNOWN_END)

    def holding(self, clients: Iterable[LogClient], now: float) -> list[LogClient]:
        """The clients of which something earlier than the others' may still come."""
        return [one for one in clients if not one.over and not self.is_idle(one, now)]

    def slowest(self, clients: Iterable[LogClient], now: float) -> LogClient | None:
        """The one that holds the watermark, if one does."""
        return min(self.holding(clients, now), key=front, default=None)

    def is_idle(self, client: LogClient, now: float) -> bool:
        """Whether a client has been silent for longer than the grace."""
        return self.grace is not None and now - client.heard >= self.grace


def front(client: LogClient) -> int:
    """How far a client has come, for comparison: what has nothing yet is before all others."""
    return c.UNKNOWN_BEGIN if client.front is None else client.front
