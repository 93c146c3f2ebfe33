"""Finds the version of the package, which only ``pyproject.toml`` states."""

from __future__ import annotations


def version() -> str:
    """Return the version of the installed package; if it is not installed, an empty string."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("isolang")
    except PackageNotFoundError:
        return ""


def signature(program: str) -> str:
    """Return the name of a program with its version, such as ``isocheck 1.2.3``."""
    return f"{program} {version()}".rstrip()
