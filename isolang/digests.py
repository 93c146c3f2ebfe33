"""Makes SHA-256 digests of short texts without OpenSSL.

Loading OpenSSL, as ``hashlib`` does, takes longer than a digest of a small history.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hashlib import _Hash

# With more bytes than this, OpenSSL's faster code pays for loading it.
_FEW = 250_000


def sha256(size: int) -> _Hash:
    """Return a new SHA-256 digest, as of ``hashlib``, for data of about this many bytes."""
    if size > _FEW:
        import hashlib

        return hashlib.sha256()
    made: _Hash = _small()()
    return made


@cache
def _small() -> Any:
    """Return the constructor of CPython's own digest, or that of ``hashlib`` if it has none."""
    for name in ("_sha2", "_sha256", "hashlib"):  # from Python 3.12 on, before, always
        try:
            return import_module(name).sha256
        except (ImportError, AttributeError):
            continue
    raise ImportError("hashlib")
