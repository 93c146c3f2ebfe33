"""The errors for the two ways in which a certificate fails: it is wrong, or it stays undecided."""

from __future__ import annotations

from isolang.errors import IsolangError


class CertificateRejected(IsolangError):  # noqa: N818 - the field's word, part of the API
    """The error for a proof that is wrong; the message says which step or edge is wrong."""


class NotCertifiedError(IsolangError):
    """The error for a proof that the checkers cannot decide.

    For example, the checkers may not support a check, or the history is too large. The verdict may
    be right, but it is not certified.
    """
