"""Finds the version of the package, which is stated only in `pyproject.toml`."""

from __future__ import annotations


def version() -> str:
    """Return the version of the installed package, or an empty text if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("isolang")
    except PackageNotFoundError:
        return ""


def signature(program: str) -> str:
    """Return the program with its version, ``isocheck 1.2.3``, for pages and certificates."""
    return f"{program} {version()}".rstrip()
