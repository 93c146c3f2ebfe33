"""Manages the clients of a stream, one per log.

New logs may appear while the stream is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Final, Literal, TypeAlias

from isolang.errors import HistoryError
from isolang.history.sources import plain_name
from isolang.watch.stream.client import LogClient
from isolang.watch.stream.folder import logs_in
from isolang.watch.stream.segments import Segment

Clock: TypeAlias = Literal["auto", "bytes", "time", "index"]

_RESCAN: Final = 1.0  # seconds between searches for new clients


class LogClients:
    """The clients of a stream, in the order their logs were found.

    Attributes:
        scanned: when new logs were last searched for.
    """

    def __init__(
        self,
        sources: Sequence[str | Path | IO[bytes]],
        *,
        format: str,  # noqa: A002 — the name users know from the command line
        clock: Clock,
        follow: bool,
        spool: IO[bytes] | None,
    ) -> None:
        """Store the sources; the arguments are those of :class:`isolang.watch.stream.Stream`."""
        self._sources = [Path(s) if isinstance(s, str) else s for s in sources]
        self._format, self._clock = format, clock
        self._follow, self._spool = follow, spool
        self.by_path: dict[str, LogClient] = {}
        self.segments: list[Segment] = []
        self.several = len(self._sources) > 1 or any(
            isinstance(s, Path) and s.is_dir() and len(logs_in(s)) != (0 if follow else 1)
            for s in self._sources
        )
        self.scanned = -_RESCAN

    def __iter__(self) -> Iterator[LogClient]:
        return iter(self.by_path.values())

    def __len__(self) -> int:
        return len(self.by_path)

    @property
    def torn(self) -> int:
        """The number of bytes in unfinished last lines, over all logs."""
        return sum(client.torn if client.over else client.tail.torn for client in self)

    def counts(self) -> dict[str, int]:
        """Return the number of ignored maps and values by kind; see :attr:`Stream.counts`."""
        found: dict[str, int] = {}
        for client in self:
            for kind, count in client.follower.state.counts.items():
                found[kind] = found.get(kind, 0) + count
        return found

    def has_unreported_spans(self) -> bool:
        """Return whether some bytes read are not in the spans of a batch yet."""
        return any(client.spans for client in self)

    def may_grow(self) -> bool:
        """Return whether a source is a folder, because new logs may appear in folders."""
        return any(isinstance(source, Path) and source.is_dir() for source in self._sources)

    def note_lacking(self) -> bool:
        """Note that facts are left out if a log is a recording that had no end when it was opened.

        Return whether that is so.
        """
        lacking = [client for client in self if client.lacks_end()]
        for client in lacking:
            client.follower.state.lacks_facts = True
        return bool(lacking)

    def is_unaudited(self) -> bool:
        """Return whether an audit is still to come of a recording that rests on a server's log."""
        return any(client.is_unaudited() for client in self)

    def resume(
        self, clients: Sequence[tuple[str, str, bytes, list[tuple[int, int]]]], now: float
    ) -> None:
        """Add the clients of a saved position.

        Args:
            clients: for each client, the path and the name of the log, its state, the moment that
                each earlier watch had reached in it, and the time up to which that watch had
                yielded transactions.

        Raises:
            HistoryError: a log is a pipe, or can no longer be read.
        """
        self.several = self.several or len(clients) > 1
        for where, name, state, yielded in clients:
            if where.isdigit():
                raise HistoryError(
                    f"{name}: cannot resume the watch of a pipe, which cannot be read again"
                )
            self._add(where, Path(where), name, now).resume(state, yielded)

    def find_new_logs(self, now: float, *, at_once: bool = False) -> bool:
        """Search for new logs, and return whether a client was added.

        Args:
            at_once: whether to search even if the last search was less than a second ago.
        """
        if now - self.scanned < _RESCAN and not at_once:
            return False
        self.scanned, known = now, len(self.by_path)
        for number, source in enumerate(self._sources):
            if not isinstance(source, Path):
                where, name = str(number), getattr(source, "name", "<stream>")
                if where not in self.by_path:
                    self._add(where, source, str(name), now)
            elif str(source) == "-":
                if str(number) not in self.by_path:
                    self._add(str(number), source, "<stdin>", now)
            else:
                for path in logs_in(source) if source.is_dir() else [source]:
                    if str(path) not in self.by_path:
                        self._add(str(path), path, str(path), now)
        return len(self.by_path) > known

    def _add(self, where: str, source: Path | IO[bytes], name: str, now: float) -> LogClient:
        prefix = ""
        if self.several:
            short = Path(plain_name(name)).stem
            taken = {Path(plain_name(client.name)).stem for client in self.by_path.values()}
            prefix = f"{name if short in taken else short}/"
        client = LogClient(
            source,
            name,
            len(self.by_path),
            self.segments,
            format=self._format,
            clock="time" if self.several and self._clock == "auto" else self._clock,
            prefix=prefix,
            follow=self._follow,
            spool=self._spool,
            now=now,
        )
        self.by_path[where] = client
        return client
