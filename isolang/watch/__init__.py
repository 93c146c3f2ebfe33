"""Checks a stream of transactions round by round, in bounded memory (docs/watch.md).

>>> import io, tempfile
>>> from pathlib import Path
>>> from isolang.watch import Stream, Watch
>>> text = b'''{:type :invoke, :process 0, :f :txn, :value [[:w :x 1]]}
... {:type :ok, :process 0, :f :txn, :value [[:w :x 1]]}
... '''
>>> spool = tempfile.NamedTemporaryFile()
>>> stream = Stream([io.BytesIO(text)], follow=False, spool=spool)
>>> with tempfile.TemporaryDirectory() as folder:
...     watch = Watch("ser", stream=stream, folder=Path(folder))
...     for batch in stream:
...         rounds = list(watch.feed(batch))
>>> watch.report.outcome, watch.report.seen
('valid', 1)
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "Round",
    "Stream",
    "Watch",
    "WatchReport",
    "check_chain",
    "position_in",
    "verify_chain",
]

_WHERE = {
    "Round": "isolang.watch.report",
    "Stream": "isolang.watch.stream",
    "Watch": "isolang.watch.watch",
    "WatchReport": "isolang.watch.report",
    "check_chain": "isolang.watch.verify",
    "position_in": "isolang.watch.state",
    "verify_chain": "isolang.watch.verify",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)
