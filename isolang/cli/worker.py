"""The child process of one history: reports on stdout.

The job is a pickle that the parent wrote for this child alone. Each line of the output is a JSON
array: ``["phase", name]`` when a phase begins, ``["report", report]`` when a verdict is there.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
import time
from pathlib import Path
from typing import Any

EXIT_MEMORY = 77  # not even the modules fitted


def main() -> int:
    """Run the job named on the command line."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii", buffering=1)
    _die_with_parent()

    def say(kind: str, what: Any) -> None:
        out.write(json.dumps([kind, what]) + "\n")
        out.flush()

    try:
        job = pickle.loads(Path(sys.argv[1]).read_bytes())
        from isolang.cli.job import run_job
        from isolang.limits import memory_cap

        with memory_cap(job.options.memory, of_process=True):
            run_job(job, lambda report: say("report", report), lambda name: say("phase", name))
    except MemoryError:
        return EXIT_MEMORY
    return 0


def _die_with_parent() -> None:
    """End when the parent has ended, however it did."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def run() -> None:
    """Run the job and end the process."""
    status = main()
    # No clean-up at the end: freeing large columns one by one would only take time.
    sys.stderr.flush()
    os._exit(status)
