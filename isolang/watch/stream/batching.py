"""Turns the transactions that a stream releases into batches."""

from __future__ import annotations

from typing import Final

from isolang.history.history import History
from isolang.watch.stream.batch import Batch
from isolang.watch.stream.clients import LogClients
from isolang.watch.stream.fronts import Fronts
from isolang.watch.stream.operations import ORDERED
from isolang.watch.stream.release import Released

_REAL_TIME: Final = {
    "bytes": "the order of lines, from :invoke to :ok or :fail",
    "time": ":time, from :invoke to :ok or :fail",
    "index": "the order of :index, from :invoke to :ok or :fail",
    "none": "none: the log has completions only, no :invoke",
}


def batch_of(
    clients: LogClients,
    found: Released,
    *,
    fronts: Fronts,
    watermark: int | None,
    now: float,
    ended: bool,
) -> Batch:
    """Return the released transactions as a batch.

    Args:
        clients: the clients of the stream.
        found: the transactions that were released.
        fronts: computes which client is the slowest and which clients are idle.
        watermark: the time at or after which all later transactions begin; ``None`` if it is not
            known.
        now: the current time, on which it depends which clients are idle.
        ended: whether this is the last batch.
    """
    logs = list(clients)
    timed = any(client.follower.state.timed for client in logs)
    clocks = [client.follower.state.clock for client in logs]
    clock = next((clock for clock in clocks if clock in ORDERED), "bytes")
    clock = clock if timed else "none"
    found.columns.has_time = timed
    slowest = fronts.slowest(clients, now) if clients.several else None
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
        sure=fronts.sure(logs),
        clock=clock,
        idle=tuple(
            client.name
            for client in logs
            if clients.several
            and (not client.over or client.stopped)
            and fronts.is_idle(client, now)
        ),
        holding=slowest.name if slowest is not None else "",
        waiting=sum(client.waits for client in logs),
        spans=spans,
        torn=clients.torn,
        ended=ended,
    )
