"""Runs the kernel, a separate program that contains a checker proved in Coq (``kernel/``)."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from isolang.certify.errors import CertificateRejected
from isolang.certify.proofs import Proof, Refutation, Witness

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.meaning.core import Spec

NAME: Final = "isolang-kernel"
VARIABLE: Final = "ISOLANG_KERNEL"
"""The environment variable that may hold the path of the kernel's program."""
MISSING: Final = (
    f"there is no {NAME} (looked at ${VARIABLE}, next to the package, "
    "in kernel/ and on PATH); build it with `make -C kernel` in a "
    "checkout, which needs ocamlopt (Debian: apt-get install "
    "ocaml-nox), or install a wheel for Linux, which contains it"
)
_ACCEPTED, _REFUSED = 0, 1


def find_kernel() -> Path | None:
    """Return the path of the kernel's program, or ``None`` if it is not installed.

    If the environment variable holds a path, only that path is tried.
    """
    named = os.environ.get(VARIABLE)
    package = Path(__file__).resolve().parent
    places = [package / NAME, package.parents[1] / "kernel" / NAME]
    for place in [Path(named)] if named else places:
        if place.is_file() and os.access(place, os.X_OK):
            return place
    found = None if named else shutil.which(NAME)
    return Path(found) if found else None


def describe_kernel(program: Path) -> str:
    """Return a phrase that identifies the kernel's program: its path, and the hash of its bytes."""
    return f"{program} sha256 {hashlib.sha256(program.read_bytes()).hexdigest()}"


def check_by_kernel(
    history: History,
    spec: Spec,
    proof: Proof,
    *,
    seconds: float | None = None,
    of_part: bool = False,
) -> None:
    """Check a proof with the kernel.

    Raises:
        CertificateRejected: if the kernel rejects the proof.
        NotCertifiedError: if the kernel is not installed, does not support the level, the history
            or the proof, or stops without deciding.
    """
    from isolang.certify.kernel_text import LevelText, unsupported

    program = find_kernel()
    if program is None:
        raise unsupported(MISSING)
    code, answer = run_kernel(program, kernel_text(history, spec, proof, of_part=of_part), seconds)
    verdict = "valid" if isinstance(proof, Witness) else "invalid"
    if (code, answer) == (_ACCEPTED, f"accepted {verdict}"):
        return
    if code in (_ACCEPTED, _REFUSED) and (code, answer) != (_REFUSED, f"refused {verdict}"):
        raise unsupported(
            f"{program} is no kernel of this version (exit code {code}, got the line "
            f"{answer!r:.60}, expected 'accepted {verdict}' or 'refused {verdict}')"
        )
    if code != _REFUSED:
        raise unsupported(answer or f"the program ended with exit code {code}")
    if reason := LevelText(spec).may_refuse:
        raise unsupported(f"it rejects the proof, but {reason}, so the proof may still hold")
    raise CertificateRejected(f"kernel: the proof does not hold ({answer})")


def kernel_text(history: History, spec: Spec, proof: Proof, *, of_part: bool = False) -> str:
    """Return a history, a level and a proof as text in the kernel's input format.

    The arguments are those of :func:`check_by_kernel`.

    Raises:
        NotCertifiedError: if the kernel does not support the history, the level or the proof.
    """
    from isolang.certify.kernel_steps import refutation_text
    from isolang.certify.kernel_text import (
        HistoryText,
        LevelText,
        has_lists,
        unsupported,
        witness_text,
    )

    if not isinstance(proof, Witness | Refutation):
        raise unsupported(f"the proof is of the kind {type(proof).__name__.lower()}")
    level = LevelText(spec, lists=has_lists(history), of_part=of_part)
    text = HistoryText(history, level)
    if isinstance(proof, Witness):
        return f"{NAME} 2\n{text}{level}{witness_text(text, proof)}"
    return f"{NAME} 2\n{text}{level}{refutation_text(text, level, spec, proof)}"


def run_kernel(program: Path, text: str, seconds: float | None = None) -> tuple[int, str]:
    """Run the kernel on a text. Return its exit code and what it prints, which should be one line.

    If it fails without a line, return the first line that it prints to standard error.

    Raises:
        NotCertifiedError: if the program cannot be started, or does not finish in time.
    """
    from isolang.certify.kernel_text import unsupported

    # The functions extracted by Coq recurse along lists, so raise the stack limit as far as
    # possible.
    stack = 'ulimit -s unlimited 2>/dev/null || ulimit -s "$(ulimit -H -s)"; exec "$0"'
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", stack, str(program)],
            input=text,
            capture_output=True,
            text=True,
            timeout=seconds or None,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise unsupported(f"not within {seconds:g} s") from None
    except OSError as error:
        raise unsupported(f"{program}: {error.strerror}") from None
    line = done.stdout.removesuffix("\n")
    if done.returncode != _ACCEPTED and not line:
        line = done.stderr.strip().partition("\n")[0]
    return done.returncode, line
