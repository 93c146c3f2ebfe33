"""What the program ``isocheck`` calls: Ctrl-C while it is being imported ends it, silently."""

from __future__ import annotations

import signal

_CTRL_C = signal.getsignal(signal.SIGINT)

if _CTRL_C is signal.default_int_handler:  # not where it is ignored, as behind nohup
    # No code of ours could catch what is raised in the midst of an import.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    """Run the command line; the exit code is the return value."""
    from isolang.cli.main import main as run

    signal.signal(signal.SIGINT, _CTRL_C)
    return run()
