"""Runs the calls of an application at once, and returns the report with the harm."""

from __future__ import annotations

from contextlib import contextmanager

from isolang.run.targets import target_named
from isolang.testing.assertion import IsolationError
from isolang.testing.isolation import Isolation

_PAUSE = 0.01  # the seconds to hold a connection after each answer of the server


@contextmanager
def with_server():
    """Yield the folder of the socket of a new PostgreSQL server."""
    target = target_named("postgres")
    target.start()
    try:
        yield target.server.folder
    finally:
        target.close()


def asserted(setup, function, arguments, conninfo, folder):
    """Make a call for each argument at once, and return the error of the assertion.

    Return ``None`` if the calls were serializable.

    Args:
        function: returns the application's function, after the setup.
        folder: where the history, the certificate and the page are kept.
    """
    isolation = Isolation(folder / "recording", keep=folder)
    try:
        isolation.setup(setup)
        isolation.watch_psycopg(conninfo)
        for proxy in isolation.proxies:  # so that short calls overlap on any machine
            proxy.pause_after_answers(lambda: _PAUSE)
        call = function()
        calls = [lambda x=argument: isolation.call(call, x) for argument in arguments]
        isolation.concurrently(*calls, times=1)
        isolation.assert_level("ser", allow_unseen=True)
    except IsolationError as error:
        return error
    finally:
        isolation.close()
    return None
