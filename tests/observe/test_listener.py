"""The proxy's connections if its server cannot be reached."""

import socket

import psycopg
import pytest

from isolang.observe.wire.address import ServerAddress
from isolang.observe.wire.connection import PostgresWire
from isolang.observe.wire.listener import Listener


@pytest.fixture
def down():
    """A proxy whose server is down."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def nothing():
        """Do nothing."""

    def wire(to_client, to_server):
        return PostgresWire(None, None, to_client=to_client, to_server=to_server)

    address = ServerAddress(conninfo="", host="127.0.0.1", port=port, database="postgres")
    listener = Listener(address, wire, nothing)
    listener.start("127.0.0.1", 0)
    yield listener
    listener.stop()


@pytest.mark.parametrize("mode", ["disable", "prefer"])
def test_a_client_is_told_that_the_server_is_down(down, mode):
    """Also a client that asks for encryption first, such as psql: libpq hides errors until then."""
    where = f"host=127.0.0.1 port={down.port} dbname=postgres user=postgres sslmode={mode}"
    with pytest.raises(psycopg.OperationalError) as error:
        psycopg.connect(where, gssencmode="disable")
    assert "isocheck observe cannot connect to the server" in str(error.value)
    assert "SSL" not in str(error.value)


def test_encryption_that_the_client_requires_is_refused(down):
    """The client then says so itself."""
    where = f"host=127.0.0.1 port={down.port} dbname=postgres user=postgres sslmode=require"
    with pytest.raises(psycopg.OperationalError, match="does not support SSL"):
        psycopg.connect(where, gssencmode="disable")
