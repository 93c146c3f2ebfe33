"""Reads one or several growing logs as a stream of batches."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import IO, Final

import msgspec
from msgspec import Struct

from isolang.errors import HistoryError
from isolang.watch.stream.batch import Batch
from isolang.watch.stream.batching import Batches
from isolang.watch.stream.clients import Clock, LogClients
from isolang.watch.stream.fronts import WatermarkRule, front_of
from isolang.watch.stream.log import Log
from isolang.watch.stream.operations import EVENT_CLOCKS
from isolang.watch.stream.segments import Segment

_PAUSE: Final = 0.05  # the seconds between attempts to read while no file has new data
_PIECE: Final = 1 << 20  # the largest number of bytes in a block if there are several clients
_AHEAD: Final = 16 << 20  # the number of bytes that may be read beyond the watermark for a client


class _Saved(Struct, kw_only=True):
    """A position in a stream that another stream can resume from."""

    segments: list[Segment]
    clients: list[tuple[str, str, bytes, int]]  # path, name, state, moment reached
    # By path, the moment that each earlier watch had reached in a log, and its watermark.
    yielded: dict[str, list[tuple[int, int]]] = {}
    watermark: int
    handed: set[tuple[int, int]]
    aside: set[tuple[int, int]] = set()
    ended: bool


class Stream:
    """Reads growing logs, and yields their transactions in batches.

    Args:
        sources: files, folders with one file for each client, ``-`` for the standard input, or
            binary streams. Each file and each binary stream is the log of one client.
        format: the name of a format, or ``auto`` to detect it from the content. Formats that cannot
            be followed are rejected.
        follow: whether to wait for more data at the end of the logs.
        until_idle: the number of seconds without new data after which the stream ends; ``None`` to
            wait forever.
        grace: the number of seconds of silence after which the watermark stops waiting for a
            client; ``None`` to wait for every client.
        clock: how real time is read. With ``bytes``, real time is the order of the log. With
            ``time``, real time is :time, and the logs of several clients are merged by it. With
            ``index``, real time is the order of :index, which must begin at 0 and have no gaps.
            ``auto`` chooses ``index`` for the log of a :class:`isolang.Recorder`, whose lines are
            not in the order of events, and ``time`` for several clients and for operations with
            times.
        clock_error: the largest difference between two clients' clocks, in nanoseconds. The
            watermark stays behind the clients by this amount. If times in a log go backwards, the
            watermark also stays behind by the largest step backwards so far.
        batch: the largest number of bytes to read for a batch.
        spool: a file to which pipes are copied, so that :attr:`log` can read them again.
        resume: the result of :meth:`position` for an earlier stream over the same logs; ``None`` to
            start from the beginning.

    Attributes:
        log: reads the same input again.
        ended: whether the stream has yielded its last batch.
        note_lacking, is_unaudited: as for :class:`LogClients`.
    """

    def __init__(
        self,
        sources: Sequence[str | Path | IO[bytes]],
        *,
        format: str = "auto",  # noqa: A002 — the name users know from the command line
        follow: bool = True,
        until_idle: float | None = None,
        grace: float | None = 30.0,
        clock: Clock = "auto",
        clock_error: int = 0,
        batch: int = 1 << 20,
        spool: IO[bytes] | None = None,
        resume: bytes | None = None,
    ) -> None:
        if not sources:
            raise HistoryError("nothing to watch (expected a file, a folder or -)")
        self.ended = False
        self._follow = follow
        self._until_idle = until_idle
        self._fronts = WatermarkRule(grace=grace, clock_error=clock_error)
        self._batch = batch
        self._clients = LogClients(sources, format=format, clock=clock, follow=follow, spool=spool)
        logs = self._clients
        self.note_lacking, self.is_unaudited = logs.note_lacking, logs.is_unaudited
        self._batches = Batches(self._clients, self._fronts)
        self._stopped = False
        self._progress = False  # whether the last attempt read data, but not enough for a batch
        self.log = Log(self._clients.segments, self._clients.by_path)
        if resume is not None:
            self._resume(resume)
        self._clients.find_new_logs(time.monotonic())

    # --- the state of the stream ---

    @property
    def merged(self) -> bool:
        """``True`` if the stream has several clients, so their logs are merged by time."""
        return self._clients.several

    @property
    def can_resume(self) -> bool:
        """``True`` if a later stream can resume from a position, because no source is a pipe."""
        return not any(segment.pipe for segment in self._clients.segments)

    @property
    def read_bytes(self) -> int:
        """The number of bytes read, after decompression."""
        return sum(client.tail.reached.moment for client in self._clients)

    @property
    def behind(self) -> int:
        """The number of bytes in the files that have not been read yet."""
        return sum(client.tail.behind for client in self._clients)

    @property
    def clients(self) -> tuple[str, ...]:
        """The names of the logs."""
        return tuple(client.name for client in self._clients)

    @property
    def torn(self) -> int:
        """The number of bytes in unfinished last lines."""
        return self._clients.torn

    @property
    def is_from_its_beginning(self) -> bool:
        """``True`` if every log begins with event 0, so no earlier transaction can be in flight."""
        clients = list(self._clients)
        return bool(clients) and all(client.is_from_its_beginning for client in clients)

    @property
    def lacks_facts(self) -> bool:
        """``True`` if a log names facts or operations that the transactions in it do not have."""
        return any(client.follower.state.lacks_facts for client in self._clients)

    @property
    def lacks_end(self) -> bool:
        """``True`` if a log is a recording of an application that has no end, at least so far."""
        return any(client.follower.state.recording for client in self._clients)

    @property
    def counts(self) -> dict[str, int]:
        """The number of ignored maps and values, by kind as reported by the native reader."""
        return self._clients.counts()

    def __iter__(self) -> Iterator[Batch]:
        """Yield batches until the stream ends, at least one per second even without new data."""
        while not self.ended:
            yield self.next(1.0)

    def next(self, timeout: float) -> Batch:
        """Return the next batch. After the timeout, return a batch without new transactions.

        Args:
            timeout: how many seconds to wait for new transactions.

        Raises:
            HistoryError: the input cannot be read or followed; the message states the place.
        """
        deadline = time.monotonic() + timeout
        while True:
            now = time.monotonic()
            self._progress = False
            found = self._merge(now) if self._clients.several else self._one_client(now)
            if found is not None:
                return found
            if now >= deadline and not self._progress:
                return self._batches.batch_in_flight(now, ended=self.ended)
            if self._progress:
                continue
            self._wait(min(_PAUSE, max(deadline - now, 0.0)))

    def _wait(self, seconds: float) -> None:
        """Sleep for a while. If the only log is a pipe, wake up as soon as the pipe has data.

        If there are several clients, a pipe with data may still have to wait for other clients.
        """
        clients = list(self._clients)
        pipe = clients[0].tail.pipe if len(clients) == 1 else None
        if pipe is not None:
            select.select([pipe], [], [], seconds)
        else:
            time.sleep(seconds)

    def set_aside(self, places: Set[tuple[int, int]]) -> None:
        """Leave transactions in flight out of later batches until they end.

        This way, the cost of a batch does not depend on the number of transactions that never end.
        The log is read as before: when such a transaction ends, a batch contains it as finished.

        Args:
            places: the file and offset of each transaction; other places are ignored.
        """
        for client in self._clients:
            client.follower.set_aside(places)
        if self._clients.several or any(
            client.follower.state.clock in EVENT_CLOCKS for client in self._clients
        ):
            self._batches.releases.aside |= places

    def stop(self) -> None:
        """End the stream after all data that can be read now has been read."""
        self._stopped = True

    def position(self) -> bytes:
        """Return the ``resume`` argument that lets a new stream continue after the last batch."""
        clients, yielded = [], {}
        for where, client in self._clients.by_path.items():
            state, read, yielded[where] = client.restart_state()
            clients.append((where, client.name, state, read))
        return msgspec.msgpack.encode(
            _Saved(
                segments=self._clients.segments,
                clients=clients,
                yielded=yielded,
                watermark=self._batches.releases.watermark,
                handed=self._batches.releases.handed,
                aside=self._batches.releases.aside,
                ended=self.ended,
            )
        )

    def close(self) -> None:
        """Close all files."""
        for client in self._clients:
            client.tail.close()

    # --- clients ---

    def _resume(self, saved: bytes) -> None:
        position = msgspec.msgpack.decode(saved, type=_Saved)
        self._clients.segments += position.segments
        self._batches.releases.watermark = position.watermark
        self._batches.releases.handed = position.handed
        self._batches.releases.aside = position.aside
        self.ended = position.ended
        clients = [
            (where, name, state, [*position.yielded.get(where, []), (read, position.watermark)])
            for where, name, state, read in position.clients
        ]
        self._clients.resume(clients, time.monotonic())

    def _is_over(self, now: float) -> bool:
        """Return whether the stream must end now, having been stopped or idle for too long."""
        if self._stopped:
            return True
        if self._until_idle is None:
            return False
        heard = max((client.heard for client in self._clients), default=self._clients.scanned)
        return now - heard >= self._until_idle

    # --- one log, in the order of its lines ---

    def _one_client(self, now: float) -> Batch | None:
        self._clients.find_new_logs(now)
        client = next(iter(self._clients), None)
        if client is None:
            self.ended = self._is_over(now) or not self._follow
            return self._batches.batch_in_flight(now, ended=True) if self.ended else None
        if client.follower.state.clock in EVENT_CLOCKS:
            return self._merge(now)
        before = b"" if client.follower.state.clock else client.snapshot()
        reached = client.tail.reached
        block = None if client.over else client.read(self._batch, now)
        self._progress = block is None and client.tail.reached != reached
        if block is None and not client.over and not self._progress and self._is_over(now):
            block = client.finish()
            client.stopped = self._stopped
        if client.follower.state.clock in EVENT_CLOCKS:
            if block is not None:
                client.hold(block, before)
            return self._release(now, read=True)
        self.ended = client.over
        if block is not None:
            return self._batches.batch_of_block(block, client, now, ended=self.ended)
        return self._batches.batch_in_flight(now, ended=True) if self.ended else None

    # --- one or several logs, merged by their times ---

    def _merge(self, now: float) -> Batch | None:
        self._clients.find_new_logs(now)
        budget = self._batch
        read = False
        stuck: set[str] = set()
        while budget > 0:
            slowest = self._fronts.slowest(self._clients, now)
            ready = [
                client
                for client in self._clients
                if not client.over
                and client.name not in stuck
                and (client.waits < _AHEAD or client is slowest)
            ]
            if not ready:
                break
            client = min(ready, key=front_of)
            block, before, moved = client.read_block(min(_PIECE, self._batch), now)
            if block is not None:
                client.hold(block, before)
                budget -= block.size
            elif not moved:
                stuck.add(client.name)
            read = read or moved
        if not read and self._is_over(now):
            if self._follow and self._clients.find_new_logs(
                now, at_once=True
            ):  # still read a log that appeared since the last search
                self._progress = True
                return None
            for client in self._clients:
                client.stopped = self._stopped and not client.over
                while not client.over:
                    before = client.snapshot()
                    if (block := client.finish()) is not None:
                        client.hold(block, before)
            self.ended = True
        return self._release(now, read=read)

    def _release(self, now: float, *, read: bool) -> Batch | None:
        """Return a batch with the transactions before the watermark; ``None`` if nothing is new."""
        clients = list(self._clients)
        if all(client.over for client in clients) and (
            not self._follow or not self._clients.may_grow()
        ):
            self.ended = True
        self._progress = read
        return self._batches.released(now, read=read, ended=self.ended)
