"""Builds and runs the proved kernel in tests, and returns its answers about histories."""

import shutil
import subprocess

import pytest

from isolang.api import check
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.kernel import check_by_kernel, find_kernel, kernel_text
from isolang.certify.kernel_text import HistoryText, LevelText, has_lists
from isolang.errors import SpecError, UnsupportedError
from support.paths import ROOT


def build_kernel(folder):
    """Build the kernel's program from the checkout, and return its path.

    Without an OCaml compiler, return the path of an installed kernel.
    """
    if not shutil.which("ocamlopt"):
        found = find_kernel()
        if found is None:
            pytest.skip("needs ocamlopt (Debian: ocaml-nox), or a built kernel")
        return found
    sources = ("kernel.ml", "driver.ml")
    for name in sources:
        shutil.copy(ROOT / "kernel" / name, folder)
    command = ["ocamlopt", "-w", "-a", "-O3", "-inline", "100", *sources, "-o", "isolang-kernel"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "isolang-kernel"


def proof_of(verdict):
    return getattr(verdict, "witness", None) or getattr(verdict, "refutation", None)


def text_of(history, spec):
    """Return the engine's proof in the kernel's input format, and whether the verdict is valid."""
    verdict = check(history, spec, certify=False, threads=1)
    return kernel_text(history, verdict.spec, proof_of(verdict)), type(verdict).__name__ == "Valid"


def unsupported_reason(history, spec):
    """Return why the kernel does not support a level or a history; empty if it supports both."""
    try:
        HistoryText(history, LevelText(spec, lists=has_lists(history)))
    except NotCertifiedError as error:
        return str(error).removeprefix("not certified by the kernel: ")
    return ""


def kernel_answer(history, spec):
    """Return the kernel's answer on a verdict: "accepted", "rejected: …", or why there is none."""
    if why := unsupported_reason(history, spec):
        return why
    try:
        verdict = check(history, spec, certify=False, threads=1)
    except (UnsupportedError, SpecError):
        return "isolang refuses it"
    if proof_of(verdict) is None:
        return "unknown"
    try:
        check_by_kernel(verdict.history, verdict.spec, proof_of(verdict))
    except NotCertifiedError as error:
        return str(error).removeprefix("not certified by the kernel: ")
    except CertificateRejected as error:
        return f"rejected: {error}"
    return "accepted"


def history_and_level(history, spec):
    """Return a history and a level in the kernel's input format, without a proof."""
    level = LevelText(spec, lists=has_lists(history))
    return f"isolang-kernel 2\n{HistoryText(history, level)}{level}"
