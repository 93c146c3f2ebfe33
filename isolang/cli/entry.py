"""The entry point of ``isocheck``, which ends silently on Ctrl-C even while it imports modules."""

from __future__ import annotations

import gc
import signal

_CTRL_C = signal.getsignal(signal.SIGINT)

if _CTRL_C is signal.default_int_handler:  # another program, such as nohup, may have disabled it
    # During an import, no code of isolang could catch KeyboardInterrupt.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    """Run the command line and return the exit code."""
    # Python never frees modules, and a search for garbage among them is a tenth of a start.
    collects = gc.isenabled()
    gc.disable()
    from isolang.cli.main import main as run

    gc.freeze()
    if collects:
        gc.enable()
    signal.signal(signal.SIGINT, _CTRL_C)
    return run()
