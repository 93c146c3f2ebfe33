"""Fuzz the loaders in Python with atheris: specifications, and certificates.

    python fuzz/loaders.py spec|certificate [libFuzzer's options] [CORPUS...]

What is loaded, or refused with one of the tool's errors, is fine; any other exception is a find.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

with atheris.instrument_imports(include=["isolang", "lark"]):
    from isolang.certify.certificate import Certificate
    from isolang.certify.errors import CertificateRejected, NotCertifiedError
    from isolang.certify.proofs import check_proof
    from isolang.cli.verify import spec_of
    from isolang.errors import IsolangError
    from isolang.history import History, Transaction
    from isolang.language.classify.route import route
    from isolang.language.load import load_spec


def has_words(error: Exception) -> None:
    """An error says something."""
    if not str(error).strip():
        raise AssertionError(f"{type(error).__name__} without a message")


def spec(data: bytes) -> None:
    """A text is loaded and classified."""
    try:
        route(load_spec("// fuzz\n" + data.decode("utf-8", "replace")))
    except IsolangError as error:
        has_words(error)


HISTORY = History.from_transactions(
    [
        Transaction([("r", "x", None), ("w", "x", 1), ("append", "l", 1)], session=0),
        Transaction([("r", "x", 1), ("w", "x", 2), ("r", "l", [1])], session=1),
        Transaction([("r", "x", 1), ("append", "l", 2)], session=1),
    ]
)


SER = load_spec("ser")


def certificate(data: bytes) -> None:
    """A certificate is read, with its spec, and its proof checked against a small history."""
    try:
        loaded = Certificate.from_json(data.decode("utf-8", "replace"))
        check_proof(HISTORY, SER, loaded.proof)
    except (IsolangError, CertificateRejected, NotCertifiedError) as error:
        has_words(error)
        return
    try:
        spec_of(loaded)
    except IsolangError as error:
        has_words(error)


TARGETS: dict[str, Callable[[bytes], None]] = {"spec": spec, "certificate": certificate}


def main() -> None:
    """Run a target."""
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(__doc__)
    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
