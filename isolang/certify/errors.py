"""Errors for the two ways to fail certification: the proof is wrong, or cannot be decided."""

from __future__ import annotations

from isolang.errors import IsolangError


class CertificateRejected(IsolangError):  # noqa: N818 - the field's word, part of the API
    """Raised for a proof that is wrong; the message names the step or edge at fault."""


class NotCertifiedError(IsolangError):
    """Raised for a proof that the checkers cannot decide.

    For example, they may not support a check, or the history may be too large. The verdict may be
    right, but it is not certified.
    """
