"""Fuzzes the loaders in Python, for specifications and certificates, with atheris.

    python fuzz/loaders.py spec|certificate [libFuzzer's options] [CORPUS...]

A loader must load an input or raise one of the tool's errors; any other exception is a bug.
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
    """Check that the message of an error is not empty."""
    if not str(error).strip():
        raise AssertionError(f"{type(error).__name__} without a message")


def spec(data: bytes) -> None:
    """Load and classify a specification."""
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
    """Read a certificate with its specification, and check its proof on a small history."""
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
    """Run the fuzzer of a target."""
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(__doc__)
    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
