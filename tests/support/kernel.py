"""The kernel in the tests: its program, built from the checkout, and what it says of a history."""

import shutil
import subprocess

import pytest

from isolang.api import check
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.kernel import check_by_kernel, find_kernel, kernel_text
from isolang.certify.kernel_text import HistoryText, LevelText, has_lists
from isolang.errors import SpecError, UnsupportedError
from support.paths import ROOT


def built(folder):
    """The path of a program that is built from the checkout, or of one that is there."""
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
    """What the engine proves, as the kernel reads it; and whether it is valid."""
    verdict = check(history, spec, certify=False, threads=1)
    return kernel_text(history, verdict.spec, proof_of(verdict)), type(verdict).__name__ == "Valid"


def beyond(history, spec):
    """Why the kernel does not know a level, or a history; empty if it knows both."""
    try:
        HistoryText(history, LevelText(spec, lists=has_lists(history)))
    except NotCertifiedError as error:
        return str(error).removeprefix("not certified by the kernel: ")
    return ""


def said(history, spec):
    """What the kernel says of a verdict: "accepted", a reason, or "rejected: …"."""
    if why := beyond(history, spec):
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
    """A history and a level as the kernel reads them, without a proof."""
    level = LevelText(spec, lists=has_lists(history))
    return f"isolang-kernel 1\n{HistoryText(history, level)}{level}"
