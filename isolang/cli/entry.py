"""The entry point of ``isocheck``, for which Ctrl-C during the imports ends it silently."""

from __future__ import annotations

import signal

_CTRL_C = signal.getsignal(signal.SIGINT)

if _CTRL_C is signal.default_int_handler:  # unless it is ignored, as by nohup
    # During an import, no code of ours could catch the exception.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    """Run the command line and return the exit code."""
    from isolang.cli.main import main as run

    signal.signal(signal.SIGINT, _CTRL_C)
    return run()
