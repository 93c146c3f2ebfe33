"""Encrypts connections to a MariaDB server, as the parameters of a URL say."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

from isolang.errors import IsolangError

_MODES: Final = ("DISABLED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")
_FILES: Final = {"ssl_ca": "root", "ssl_cert": "certificate", "ssl_key": "key"}
_MODE_NAMES: Final = ("ssl_mode", "sslmode")


class TLSSettings(Struct, frozen=True, kw_only=True):
    """The settings for encrypting connections to a server; false if they are not encrypted.

    Attributes:
        mode: as for clients of MySQL: ``REQUIRED``, ``VERIFY_CA`` or ``VERIFY_IDENTITY``; empty if
            connections are not encrypted.
        root: the file with the certificates of authorities; empty for those of the system.
        certificate: the file with the client's certificate; empty if it has none.
        key: the file with the certificate's key; empty if the certificate's file contains it.
    """

    mode: str = ""
    root: str = ""
    certificate: str = ""
    key: str = ""

    def __bool__(self) -> bool:
        """Return whether connections are encrypted."""
        return bool(self.mode)

    def context(self) -> ssl.SSLContext:
        """Return the settings for checking the server's certificate.

        Raises:
            OSError: a file cannot be read, or has no certificate.
        """
        return _context(self)


@lru_cache(maxsize=16)
def _context(settings: TLSSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if settings.mode == "REQUIRED":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context.check_hostname = settings.mode == "VERIFY_IDENTITY"
        if settings.root:
            context.load_verify_locations(settings.root)
        else:
            context.load_default_certs()
    if settings.certificate:
        context.load_cert_chain(settings.certificate, settings.key or None)
    return context


def tls_settings(options: Mapping[str, str], where: str) -> TLSSettings:
    """Return what the parameters of a URL say about encryption.

    As for clients of MySQL, ``ssl-ca`` without a mode means ``VERIFY_CA``.

    Args:
        where: the URL, for messages.

    Raises:
        IsolangError: a parameter is unknown, or a file cannot be read.
    """
    mode, files = "", dict[str, str]()
    for option, value in options.items():
        name = option.lower().replace("-", "_")
        if name in _MODE_NAMES:
            mode = value.upper().replace("-", "_")
            if mode not in _MODES:
                raise IsolangError(
                    f"{where}: unknown {option} (got {value}, expected one of {', '.join(_MODES)})"
                )
        elif name in _FILES:
            files[_FILES[name]] = value
        elif name.startswith(("ssl", "tls")):
            raise IsolangError(
                f"{where}: unknown parameter (got {option}, expected ssl-mode, ssl-ca, ssl-cert or "
                "ssl-key)"
            )
    if mode == "DISABLED":
        return TLSSettings()
    if files and not mode:
        mode = "VERIFY_CA" if "root" in files else "REQUIRED"
    settings = TLSSettings(mode=mode, **files)
    if settings:
        try:
            settings.context()
        except OSError as error:
            raise IsolangError(
                f"{where}: cannot read a certificate or key (got {error.strerror or error}, "
                f"expected files in PEM format: {', '.join(files.values())})"
            ) from None
    return settings
