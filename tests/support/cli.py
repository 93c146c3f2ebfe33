"""Runs the command line in tests, in the current process or in a new process as users do."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import isolang
from isolang.cli.main import main


class Run:
    """The output of a command line and its exit code."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def reports(self):
        """Return the objects that ``--output json`` printed, one for each line."""
        return [json.loads(line) for line in self.out.splitlines()]


def run_here(capfd, *arguments):
    """Run the command line in this process, which is fast and also captures output of children."""
    code = main([str(a) for a in arguments])
    captured = capfd.readouterr()
    return Run(code, captured.out, captured.err)


# The tested package is found from every folder. The option -P keeps Python from importing the
# checkout in the current folder, which has no native core if the package is installed elsewhere.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(isolang.__file__).resolve().parents[1])}


def run_there(*arguments, stdin=None, timeout=120):
    """Run the command line in a new process."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "isolang.cli.main", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        timeout=timeout,
        check=False,
        env=ENVIRONMENT,
    )
    return Run(done.returncode, done.stdout.decode(), done.stderr.decode())


def hard_text(transactions=3000, sessions=50, keys=60, values=2, seed=5):
    """Return a serializable history as Plume text, which a search cannot decide quickly."""
    rng = random.Random(seed)
    state, lines = {}, []
    for txn in range(1, transactions + 1):
        session = rng.randrange(sessions)
        for _ in range(4):
            key = rng.randrange(keys)
            if rng.random() < 0.5:
                lines.append(f"r({key},{state.get(key, 0)},{session},{txn})")
            else:
                state[key] = rng.randint(1, values)
                lines.append(f"w({key},{state[key]},{session},{txn})")
    return "\n".join(lines) + "\n"


VALID = "w(0,1,1,1)\nr(0,1,2,2)\n"
LOST_UPDATE = "r(0,0,1,1)\nw(0,1,1,1)\nr(0,0,2,2)\nw(0,2,2,2)\n"
THIN_AIR = "r(0,7,1,1)\n"
