"""The proxy passes everything on, and loses exactly what it is told to lose."""

from __future__ import annotations

import socket
import threading

import pytest

from isolang.run.servers.proxy import Proxy


@pytest.fixture(params=["port", "socket"])
def echoing(request, tmp_path):
    """A proxy before a server that answers in capitals, and what the server was asked."""
    if request.param == "port":
        listener = socket.create_server(("127.0.0.1", 0))
        where = listener.getsockname()
    else:
        where = str(tmp_path / "socket")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(where)
        listener.listen()
    asked = []

    def serve(one):
        with one:
            while data := one.recv(100):
                asked.append(data)
                one.sendall(data.upper())

    def accept():
        while True:
            try:
                one, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(one,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    proxy = Proxy(where)
    yield proxy, asked
    proxy.close()
    listener.close()


def opened(proxy):
    one = socket.socket(socket.AF_UNIX if isinstance(proxy.where, str) else socket.AF_INET)
    one.settimeout(60)
    one.connect(proxy.where)
    return one


def said(one, data):
    """The answer to what is sent; nothing if the connection has ended."""
    try:
        one.sendall(data)
        return one.recv(100)
    except ConnectionError:
        return b""


def test_everything_is_passed_on(echoing):
    proxy, _ = echoing
    with opened(proxy) as one, opened(proxy) as other:
        assert (said(one, b"a"), said(other, b"b"), said(one, b"c")) == (b"A", b"B", b"C")


def test_a_lost_request_never_comes_to_the_server(echoing):
    """The connection has ended; another one is as good as new."""
    proxy, asked = echoing
    with opened(proxy) as one:
        assert said(one, b"a") == b"A"
        with proxy.lose_message("requests"):
            assert said(one, b"b") == b""
    with opened(proxy) as other:
        assert said(other, b"c") == b"C"
    assert asked == [b"a", b"c"]


def test_a_lost_answer_was_given(echoing):
    """The server has done what it was asked."""
    proxy, asked = echoing
    with opened(proxy) as one, proxy.lose_message("answers"):
        assert said(one, b"a") == b""
    assert asked == [b"a"]


def test_all_connections_can_be_cut(echoing):
    proxy, _ = echoing
    with opened(proxy) as one, opened(proxy) as other:
        assert (said(one, b"a"), said(other, b"b")) == (b"A", b"B")
        proxy.cut_connections()
        assert (said(one, b"c"), said(other, b"d")) == (b"", b"")


def test_what_is_slow_arrives(echoing):
    proxy, _ = echoing
    proxy.delay = 0.01
    with opened(proxy) as one:
        assert said(one, b"a") == b"A"


def test_a_server_that_is_down_ends_the_connection(tmp_path):
    """As a connection to itself would."""
    proxy = Proxy(str(tmp_path / "nobody"))
    with opened(proxy) as one:
        assert said(one, b"a") == b""
    proxy.close()
