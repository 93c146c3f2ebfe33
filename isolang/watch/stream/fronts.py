"""Computes the watermark of a stream: the time that all of its clients have reached."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from isolang.history import columns as c
from isolang.watch.stream.client import LogClient


class WatermarkRule(Struct, frozen=True, kw_only=True):
    """Computes the watermark of a stream from the times that its clients have reached.

    Attributes:
        grace: the number of seconds of silence after which the watermark stops waiting for a
            client; ``None`` to wait for every client.
        clock_error: the largest difference between two clients' clocks, in nanoseconds.
    """

    grace: float | None
    clock_error: int

    def watermark(
        self, clients: Iterable[LogClient], before: int, now: float, *, ended: bool
    ) -> int:
        """Return the time that all clients have reached, not counting idle clients."""
        found = list(clients)
        holding = [] if ended else self.awaited_clients(found, now)
        if not holding:
            last = [one.last_time for one in found]
            return max([before, *(time + 1 for time in last if time is not None)])
        if any(client.front is None for client in holding):
            return before
        least = min(front_of(client) - client.follower.state.behind for client in holding)
        return max(before, least - self.clock_error)

    def sure(self, clients: Iterable[LogClient]) -> int:
        """Return the time at or after which all clients, even idle ones, begin new transactions."""
        open_ = [one.sure for one in clients if not one.over or one.stopped]
        if c.UNKNOWN_BEGIN in open_:
            return c.UNKNOWN_BEGIN
        return min((sure - self.clock_error for sure in open_), default=c.UNKNOWN_END)

    def awaited_clients(self, clients: Iterable[LogClient], now: float) -> list[LogClient]:
        """Return the clients that the watermark waits for.

        These are the clients that are neither idle nor at the end of their logs.
        """
        return [one for one in clients if not one.over and not self.is_idle(one, now)]

    def slowest(self, clients: Iterable[LogClient], now: float) -> LogClient | None:
        """Return the slowest client that the watermark waits for; ``None`` if it waits for none."""
        return min(self.awaited_clients(clients, now), key=front_of, default=None)

    def is_idle(self, client: LogClient, now: float) -> bool:
        """Return whether a client has been silent for at least the grace period."""
        return self.grace is not None and now - client.heard >= self.grace


def front_of(client: LogClient) -> int:
    """Return the time that a client has reached; the least integer if it has no transactions."""
    return c.UNKNOWN_BEGIN if client.front is None else client.front
