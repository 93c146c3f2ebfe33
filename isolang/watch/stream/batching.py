"""Turns the transactions released by a stream into batches."""

from __future__ import annotations

from typing import Final

from isolang.history import columns as c
from isolang.history.history import History
from isolang.watch.stream.batch import Batch
from isolang.watch.stream.client import LogClient
from isolang.watch.stream.clients import LogClients
from isolang.watch.stream.fronts import WatermarkRule
from isolang.watch.stream.operations import EVENT_CLOCKS, Block
from isolang.watch.stream.release import Released, Releaser, release_block

_REAL_TIME: Final = {
    "bytes": "the order of lines, from :invoke to :ok or :fail",
    "time": ":time, from :invoke to :ok or :fail",
    "index": "the order of :index, from :invoke to :ok or :fail",
    "none": "none, because the log has only completions and no :invoke",
}


class Batches:
    """Builds batches from the transactions read by the clients of a stream."""

    def __init__(self, clients: LogClients, fronts: WatermarkRule) -> None:
        """Create a builder that has not built any batch yet."""
        self._clients, self._fronts = clients, fronts
        self.releases = Releaser()

    def batch_of_block(self, block: Block, client: LogClient, now: float, *, ended: bool) -> Batch:
        """Return all transactions of a block as a batch, in the order of the client's log."""
        return self._batch_of(release_block(block), _watermark_of(client), now, ended=ended)

    def released(self, now: float, *, read: bool, ended: bool) -> Batch | None:
        """Return a batch with the transactions before the watermark; ``None`` if nothing is new."""
        watermark = self._fronts.watermark(self._clients, self.releases.watermark, now, ended=ended)
        if not ended and watermark <= self.releases.watermark and not read:
            return None
        found = self.releases.release(list(self._clients), watermark)
        if not ended and not len(found.in_flight) and not self._clients.has_unreported_spans():
            return None
        return self._batch_of(
            found, watermark if watermark != c.UNKNOWN_BEGIN else None, now, ended=ended
        )

    def batch_in_flight(self, now: float, *, ended: bool) -> Batch:
        """Return a batch with the transactions in flight, if nothing new was read."""
        clients = list(self._clients)
        if self._clients.several or any(
            client.follower.state.clock in EVENT_CLOCKS for client in clients
        ):
            watermark = self._fronts.watermark(
                self._clients, self.releases.watermark, now, ended=ended
            )
            found = self.releases.release(clients, watermark)
            return self._batch_of(
                found, watermark if watermark != c.UNKNOWN_BEGIN else None, now, ended=ended
            )
        found = Releaser().release(clients, c.UNKNOWN_END)
        return self._batch_of(
            found, _watermark_of(clients[0]) if clients else None, now, ended=ended
        )

    def _batch_of(
        self, found: Released, watermark: int | None, now: float, *, ended: bool
    ) -> Batch:
        """Return the released transactions as a batch."""
        clients = self._clients
        logs = list(clients)
        timed = any(client.follower.state.timed for client in logs)
        clocks = [client.follower.state.clock for client in logs]
        clock = next((clock for clock in clocks if clock in EVENT_CLOCKS), "bytes")
        clock = clock if timed else "none"
        found.columns.has_time = timed
        slowest = self._fronts.slowest(clients, now) if clients.several else None
        spans = tuple(span for client in logs for span in client.spans)
        for client in logs:
            client.spans.clear()
        return Batch(
            history=History(
                columns=found.columns,
                name=logs[0].name if len(logs) == 1 else f"{len(logs)} logs",
                format=logs[0].format if logs else "edn",
                files=tuple(segment.path for segment in clients.segments),
                position_unit="byte",
                initial="a read of nil or of the empty list",
                session="one :process" + (" of one file" if clients.several else ""),
                real_time=_REAL_TIME[clock],
                session_names=found.names,
            ),
            places=found.places,
            sessions=found.sessions,
            in_flight=found.in_flight,
            late=found.late,
            watermark=watermark if timed or clients.several else None,
            sure=self._fronts.sure(logs),
            clock=clock,
            idle=tuple(
                client.name
                for client in logs
                if clients.several
                and (not client.over or client.stopped)
                and self._fronts.is_idle(client, now)
            ),
            holding=slowest.name if slowest is not None else "",
            waiting=sum(client.waits for client in logs),
            spans=spans,
            torn=clients.torn,
            ended=ended,
        )


def _watermark_of(client: LogClient) -> int | None:
    """Return the watermark of a log that is read alone; ``None`` if it has no times."""
    state = client.follower.state
    return state.front if state.timed else None
