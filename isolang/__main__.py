"""Runs ``isocheck`` as ``python -m isolang``."""

from __future__ import annotations

import sys

from isolang.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
