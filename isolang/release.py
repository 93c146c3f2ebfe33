"""Finds the version of the package; it is written only in ``pyproject.toml``."""

from __future__ import annotations


def version() -> str:
    """Return the version of the installed package, or an empty string if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("isolang")
    except PackageNotFoundError:
        return ""


def signature(program: str) -> str:
    """Return a program name with the version, such as ``isocheck 1.2.3``."""
    return f"{program} {version()}".rstrip()
