"""The two ways in which a certificate fails: it is wrong, or the checkers cannot decide it."""

from __future__ import annotations

from isolang.errors import IsolangError


class CertificateRejected(IsolangError):  # noqa: N818 - the field's word, part of the API
    """The certificate does not prove its verdict; the message says which step or edge is wrong."""


class NotCertifiedError(IsolangError):
    """The checkers cannot decide a proof, because of its check or because the history is too large.

    The verdict may be right, but it is not certified.
    """
