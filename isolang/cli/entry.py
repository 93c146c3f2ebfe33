"""The entry point of ``isocheck``, which exits silently on Ctrl-C, even during imports."""

from __future__ import annotations

import gc
import signal

_CTRL_C = signal.getsignal(signal.SIGINT)
_MANY_OBJECTS = 50_000  # new objects; a command's own modules have fewer

if _CTRL_C is signal.default_int_handler:  # a parent process may have disabled it
    # During an import, isolang could not catch KeyboardInterrupt.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    """Run the command line and return the exit code."""
    # Python never frees modules, and searching them for garbage takes a tenth of the startup time.
    collects = gc.isenabled()
    gc.disable()
    from isolang.cli.main import main as run

    gc.freeze()
    if collects:
        gc.set_threshold(_MANY_OBJECTS)
        gc.enable()
    signal.signal(signal.SIGINT, _CTRL_C)
    code = run()
    gc.freeze()  # the interpreter searches all other objects for garbage when it ends
    return code
