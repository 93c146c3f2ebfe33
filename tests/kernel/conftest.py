"""The program of the kernel, for all tests here."""

import os
from pathlib import Path

import pytest
from support.kernel import build_kernel

from isolang.certify.kernel import VARIABLE


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """The program of the checkout, or the one that ``kernel/mutants.sh`` wants to be tested."""
    if tested := os.environ.get("ISOLANG_TESTED_KERNEL"):
        return Path(tested)
    return build_kernel(tmp_path_factory.mktemp("kernel"))


@pytest.fixture
def kernel(program, monkeypatch):
    """The program, which isolang finds too."""
    monkeypatch.setenv(VARIABLE, str(program))
    return program
