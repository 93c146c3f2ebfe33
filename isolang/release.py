"""Returns the version of the package, which only `pyproject.toml` states."""

from __future__ import annotations


def version() -> str:
    """Return the version of the installed package; empty if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("isolang")
    except PackageNotFoundError:
        return ""


def signature(program: str) -> str:
    """Return the program and its version, ``isocheck 1.2.3``, for pages and certificates."""
    return f"{program} {version()}".rstrip()
