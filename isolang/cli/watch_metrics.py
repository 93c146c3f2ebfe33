"""Serves metrics about a watch to Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, get_args

from isolang.cli.parameters import Mistake

if TYPE_CHECKING:
    from isolang.cli.watch_course import Progress

_COUNTERS: Final = {
    "transactions": "Transactions seen, without those in progress.",
    "violations": "Violations found.",
}
_GAUGES: Final = {
    "given_up": "Transactions of unknown outcome that the watch no longer waits for.",
    "parts": "Parts of the certificate so far.",
    "window": "Transactions in the window, which is kept in memory.",
    "keys": "Keys whose last value is in memory.",
}


def parse_address(text: str) -> tuple[str, int]:
    """Parse ``HOST:PORT`` or ``PORT``, and return the host and the port.

    ``PORT`` alone means that only this machine can connect.

    Raises:
        Mistake: if the text has another form.

    >>> parse_address("9464"), parse_address("[::]:9464")
    (('127.0.0.1', 9464), ('::', 9464))
    """
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 2**16):
        raise Mistake(f"--metrics: not an address (got {text!r}, expected PORT or HOST:PORT)")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


@contextmanager
def serve_metrics(course: Progress, at: str) -> Iterator[str]:
    """Serve metrics about a watch while the block runs, and yield the URL.

    Raises:
        Mistake: if the address is wrong or not available, or if prometheus-client is not installed.
    """
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError:
        raise Mistake(
            "--metrics: prometheus-client is not installed", "pip install 'isolang[prometheus]'"
        ) from None

    host, port = parse_address(at)
    registry = CollectorRegistry()
    registry.register(_Metrics(course))
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise Mistake(f"--metrics: cannot listen on {host}:{port} (got {error.strerror})") from None
    try:
        name = f"[{host}]" if ":" in host else host
        yield f"http://{name}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Metrics:
    """Returns metrics about the last round whenever Prometheus asks for them."""

    def __init__(self, course: Progress) -> None:
        self._course = course

    def collect(self) -> Iterable[Any]:
        """Yield all metrics in the form required by the prometheus-client library."""
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            InfoMetricFamily,
        )

        from isolang.watch.report import Outcome

        name, level = self._course.name, self._course.level
        yield InfoMetricFamily(
            "isolang_watch",
            "The logs that are watched, and the level.",
            value={"log": name, "level": level},
        )
        if self._course.last_round is not None:
            line = self._course.record()
            for field, what in _COUNTERS.items():
                yield CounterMetricFamily(f"isolang_watch_{field}", what, getattr(line, field))
            for field, what in _GAUGES.items():
                yield GaugeMetricFamily(f"isolang_watch_{field}", what, getattr(line, field))
            outcome = GaugeMetricFamily(
                "isolang_watch_outcome",
                "1 for the current verdict, 0 for the others.",
                labels=["outcome"],
            )
            for word in get_args(Outcome):
                outcome.add_metric([word], word == line.outcome)
            yield outcome
            yield GaugeMetricFamily(
                "isolang_watch_last_round_timestamp_seconds",
                "The time at which the last round ended.",
                self._course.last_round,
            )
            yield GaugeMetricFamily(
                "isolang_watch_waiting_bytes",
                "Bytes of the logs that are not checked yet.",
                line.waiting,
            )
            yield GaugeMetricFamily(
                "isolang_watch_resident_memory_bytes",
                "The resident memory of the process.",
                line.memory * 1e6,
            )
