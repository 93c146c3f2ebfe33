"""Which version this is: `pyproject.toml` says it, and nothing else."""

from __future__ import annotations


def version() -> str:
    """The version of the installed package; empty if it runs without being installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("isolang")
    except PackageNotFoundError:
        return ""


def signature(program: str) -> str:
    """What pages and certificates say of who made them: ``isocheck 1.2.3``."""
    return f"{program} {version()}".rstrip()
