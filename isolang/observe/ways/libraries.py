"""The libraries that a watch knows."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from isolang.observe.ways.asyncpg import Asyncpg
from isolang.observe.ways.library import Library
from isolang.observe.ways.psycopg2 import Psycopg2
from isolang.observe.ways.psycopg3 import Psycopg

LIBRARIES: Final[Mapping[str, type[Library]]] = {
    "psycopg": Psycopg, "asyncpg": Asyncpg, "psycopg2": Psycopg2,
}  # fmt: skip
"""The libraries by the names of their modules, which are also those of SQLAlchemy's drivers."""


def imported_libraries() -> list[Library]:
    """Return the libraries that this process has imported."""
    return [library() for name, library in LIBRARIES.items() if name in sys.modules]
