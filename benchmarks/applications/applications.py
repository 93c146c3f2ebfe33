"""Runs the calls of an application at once, and reports what isocheck says of them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

from isolang.run.targets import target_named
from isolang.testing.assertion import IsolationError
from isolang.testing.isolation import Isolation

_PAUSE = 0.01  # the seconds to hold a connection after each answer of the server

Call = tuple[Callable[..., object], tuple[object, ...]]


@contextmanager
def with_server():
    """Yield the folder of the socket of a new PostgreSQL server."""
    target = target_named("postgres")
    target.start()
    try:
        yield target.server.folder
    finally:
        target.close()


def begin_django(*apps):
    """Set Django up with these applications, for the server that libpq's environment names."""
    import django
    from django.conf import settings

    settings.configure(
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": os.environ.get("PGDATABASE", "postgres"),
            }
        },
        INSTALLED_APPS=apps,
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
        USE_TZ=True,
    )  # fmt: skip
    django.setup()


def run_command(setup, call):
    """Do what ``isocheck court`` asks for: prepare the database, or make the call of a line.

    The arguments of the command line are ``setup``, or ``call`` and arguments of the call, whose
    last argument is the line of the standard input.
    """
    action, *arguments = sys.argv[1:]
    if action == "setup":
        setup()
    else:
        print(call(*arguments, input()))


def judged(setup, calls, conninfo, folder, **options):
    """Make calls at once, and return the report: the violation with its harm, or the answers.

    Args:
        calls: functions with their arguments.
        folder: where the history, the certificate and the page are kept.
        options: those of ``isolation.assert_level``.
    """
    answers = []
    isolation = Isolation(folder / "recording", keep=folder)

    def make(function, arguments):
        name = f"{function.__name__}({', '.join(map(repr, arguments))})"
        try:
            answers.append(f"{name} gave {isolation.call(function, *arguments)!r}")
        except Exception as error:  # the answers of the others count, too
            answers.append(f"{name} raised {type(error).__name__}")

    try:
        isolation.setup(setup)
        isolation.watch_psycopg(conninfo)
        for proxy in isolation.proxies:  # so that short calls overlap on any machine
            proxy.pause_after_answers(lambda: _PAUSE)
        at_once = [lambda call=call: make(*call) for call in calls]
        isolation.concurrently(*at_once, times=1)
        isolation.assert_level("ser", **options)
    except IsolationError as error:
        return str(error)
    finally:
        isolation.close()
    return "\n  ".join(["VALID: serializable", *sorted(answers)])


def print_reports(name, reports):
    """Print the reports that a function yields for a folder: that of the command line, or new."""
    folder = Path(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp(prefix=f"{name}-"))
    for variant, text in reports(folder):
        print(f"--- {variant}: {folder / variant}\n{text}\n", flush=True)
