"""Where things lie: the repository, the histories of the tests, the corpora beside the checkout."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
DOCS = ROOT / "docs"
HISTORIES = TESTS / "data" / "histories"
# Labelled histories that are used where they are there; no test needs them.
CORPORA = Path(os.environ.get("ISOLANG_CORPORA") or ROOT.parent / "shared" / "corpora")
