"""What small commands import: a check needs neither numpy nor rich, nor another command."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from support.cli import ENVIRONMENT
from support.paths import ROOT

PROGRAM = """
import json, sys
from isolang.cli.entry import main
try:
    code = main()
finally:
    print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""
SLOW = {
    "numpy",
    "rich",
    "networkx",
    "lark",
    "z3",
    "pysmt",
    "pygments",
    "markdown_it",
    "secrets",
    "_hashlib",
}


def imports_of(*arguments: str) -> tuple[int, set[str]]:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, *arguments],
        capture_output=True, text=True, check=True, cwd=ROOT, env=ENVIRONMENT,
    )  # fmt: skip
    code, modules = json.loads(done.stderr.splitlines()[-1])
    return code, set(modules)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--spec", "si", "examples/on-call.edn"), 0),
        (("--spec", "ser", "examples/on-call.edn"), 1),
        (("--spec", "causal", "-o", "json", "examples/three.txt"), 0),
    ],
)
def test_a_small_check_imports_nothing_slow(arguments, code):
    """Reading, deciding, certifying, explaining and printing need only the core's own columns."""
    returned, modules = imports_of(*arguments)
    assert returned == code
    assert "isolang.certify.native" in modules  # the list is that of a whole check
    assert modules & SLOW == set()
    others = {f"isolang.cli.{name}" for name in ("levels", "run", "watch", "stats")}
    assert modules & others == set()


def test_arrays_import_numpy():
    """The columns behave as arrays, and only this imports numpy."""
    program = (
        "import sys, isolang; history = isolang.load_history('examples/on-call.edn');"
        "kinds = history.columns.op_kind; assert kinds[0] == 1 and kinds[-1] == kinds.tolist()[-1];"
        "assert list(kinds[1:3]) == kinds.tolist()[1:3] and 'numpy' not in sys.modules;"
        "writes = kinds == 1; assert 'numpy' in sys.modules;"
        "assert writes.sum() == kinds.tolist().count(1) and kinds[writes].tolist() == [1] * 5"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True, text=True, check=False, cwd=ROOT, env=ENVIRONMENT,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
