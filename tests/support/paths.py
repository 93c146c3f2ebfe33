"""Defines the folders of the repository, of the tests' histories, and of external corpora."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
DOCS = ROOT / "docs"
HISTORIES = TESTS / "data" / "histories"
# Labelled histories outside the repository. Tests that need them are skipped if they are missing.
CORPORA = Path(os.environ.get("ISOLANG_CORPORA") or ROOT.parent / "shared" / "corpora")
