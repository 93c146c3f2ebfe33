"""How connections to a server are encrypted, by the parameters of its URL."""

import ssl

import pytest
from support.mariadb import TLS_FILES

from isolang.errors import IsolangError
from isolang.observe.mariadb.address import address_of
from isolang.observe.mariadb.packets import TLS, is_tls_request, login_of, tls_request

IDENTITY = "VERIFY_IDENTITY", ssl.CERT_REQUIRED, True
URL = "mysql://me@host/db"
ROOT_FILE, CERTIFICATE, KEY = (
    str(TLS_FILES / name) for name in ("authority.pem", "server.pem", "server-key.pem")
)


@pytest.mark.parametrize(
    ("parameters", "mode", "checks", "checks_name"),
    [
        ("", "", ssl.CERT_NONE, False),
        ("?ssl-mode=DISABLED", "", ssl.CERT_NONE, False),
        ("?ssl-mode=REQUIRED", "REQUIRED", ssl.CERT_NONE, False),
        ("?sslmode=verify-ca", "VERIFY_CA", ssl.CERT_REQUIRED, False),
        (f"?ssl_ca={ROOT_FILE}", "VERIFY_CA", ssl.CERT_REQUIRED, False),
        (f"?ssl-ca={ROOT_FILE}&ssl-mode=REQUIRED", "REQUIRED", ssl.CERT_NONE, False),
        (f"?ssl_ca={ROOT_FILE}&sslmode=verify_identity", *IDENTITY),
        (f"?ssl-cert={CERTIFICATE}&ssl-key={KEY}", "REQUIRED", ssl.CERT_NONE, False),
    ],
)  # fmt: skip
def test_parameters(parameters, mode, checks, checks_name):
    """The parameters are those of MySQL's clients; a file of authorities means that it is used."""
    tls = address_of(URL + parameters).tls
    assert (tls.mode, bool(tls)) == (mode, bool(mode))
    if tls:
        context = tls.context()
        assert (context.verify_mode, context.check_hostname) == (checks, checks_name)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("?ssl-mode=MAYBE", "unknown ssl-mode .got MAYBE, expected one of DISABLED, REQUIRED"),
        ("?ssl-ca=/no/file", "cannot read a certificate or key .got No such file"),
        (f"?ssl-cert={CERTIFICATE}", "cannot read a certificate or key"),
        ("?ssl_check_hostname=1", "unknown parameter .got ssl_check_hostname, expected ssl-mode"),
    ],
)
def test_parameters_that_are_refused(parameters, message):
    """A parameter that is not understood is no parameter that is ignored."""
    with pytest.raises(IsolangError, match=message):
        address_of(URL + parameters)


def test_the_request():
    """The request before a login has its first fields, and asks for encryption."""
    capabilities = (1 << 9 | 1 << 15).to_bytes(4, "little")
    login = capabilities + bytes(4) + b"\x2d" + bytes(23) + b"me\0" + b"\0"
    request = tls_request(login)
    assert (len(request), request[4:], is_tls_request(request)) == (32, login[4:32], True)
    assert int.from_bytes(request[:4], "little") == int.from_bytes(capabilities, "little") | TLS
    assert not is_tls_request(login)
    assert login_of(login, 0).database == ""
