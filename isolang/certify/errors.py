"""The two ways in which a certificate fails: it is wrong, or the checkers cannot decide it."""

from __future__ import annotations

from isolang.errors import IsolangError


class CertificateRejected(IsolangError):  # noqa: N818 - the field's word, part of the API
    """The certificate does not prove its verdict; the message says which step or edge is wrong."""


class NotCertifiedError(IsolangError):
    """The checkers cannot decide this: a check outside event graphs, or a history too large.

    The verdict may be right: it is only not certified.
    """
