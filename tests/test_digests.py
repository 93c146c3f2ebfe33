"""SHA-256 without OpenSSL is SHA-256."""

from __future__ import annotations

import hashlib
import random

import pytest

from isolang import digests


@pytest.mark.parametrize("size", [0, 1, 64, 1000, digests._FEW + 1])
def test_a_digest_is_that_of_hashlib(size: int) -> None:
    """Of any size, and in any number of pieces."""
    data = random.Random(size).randbytes(size)
    made = digests.sha256(size)
    made.update(data[: size // 3])
    made.update(data[size // 3 :])
    assert made.hexdigest() == hashlib.sha256(data).hexdigest()


def test_a_python_without_a_digest_of_its_own_uses_hashlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """The modules of the digest are CPython's own, and may be absent."""

    def absent(name: str) -> object:
        if name != "hashlib":
            raise ImportError(name)
        return hashlib

    monkeypatch.setattr(digests, "import_module", absent)
    digests._small.cache_clear()
    try:
        assert digests._small() is hashlib.sha256
    finally:
        digests._small.cache_clear()
