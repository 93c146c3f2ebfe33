"""The stream of events that a server sends to a replica."""

import zlib

import pytest
from observe.log import logs

from isolang.observe.log import events
from isolang.observe.log.events import LogError
from isolang.observe.log.stream import LogStream, position


class Packet:
    """A packet as PyMySQL returns it."""

    def __init__(self, data):
        self.data = data

    def get_all_data(self):
        """Return its bytes."""
        return self.data


class Connection:
    """A connection that receives packets."""

    _sock = None

    def __init__(self, *packets):
        self.packets = [Packet(each) for each in packets]
        self.commands = []

    def cursor(self):
        """Return an object that runs statements."""
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def execute(self, statement):
        """Remember a statement."""
        self.commands.append(statement)

    def _execute_command(self, number, request):
        self.commands.append((number, request))

    def _read_packet(self):
        if not self.packets:
            raise OSError("Lost connection")
        return self.packets.pop(0)

    def _force_close(self):
        pass


def packet(kind, body, *, end=0, checked=True):
    """Return a packet with an event, and its checksum."""
    data = logs.packed(kind, body, end=end)
    return b"\0" + data + (zlib.crc32(data).to_bytes(4, "little") if checked else b"")


def form(checked):
    """Return the event at the beginning of a file, which says whether events have checksums."""
    return packet(events.FORMAT, bytes(57) + bytes([checked]))


def rotate(file, offset):
    """Return the event that names the next file."""
    return packet(events.ROTATE, offset.to_bytes(8, "little") + file.encode())


def read(*packets):
    """Return the events of a stream and the position behind each, until the server ends it."""
    stream = LogStream(lambda: Connection(*packets), position("log.000009", 4))
    seen = []

    def read_all():
        seen.extend((event.kind, event.body, stream.position) for event in stream)

    with pytest.raises(LogError, match="Lost connection"):
        read_all()
    return seen


def test_checksums_are_removed_where_the_file_has_them():
    """A file from before `binlog_checksum` was changed may have none."""
    seen = read(
        form(True), packet(events.XID, b"12345678", end=100),
        form(False), packet(events.XID, b"12345678", end=200, checked=False),
    )  # fmt: skip
    xids = [body for kind, body, _ in seen if kind == events.XID]
    assert xids == [b"12345678", b"12345678"]


def test_an_event_with_a_wrong_checksum_ends_the_stream():
    """Its bytes are not those that the server wrote."""
    data = bytearray(packet(events.XID, b"12345678", end=100))
    data[-6] ^= 1
    stream = LogStream(lambda: Connection(form(True), bytes(data)), position("log.000009", 4))
    with pytest.raises(LogError, match="checksum"):
        list(stream)


def test_the_position_follows_files_and_heartbeats():
    """Only a heartbeat says that nothing else was written."""
    seen = read(
        rotate("log.000009", 4), form(True), packet(events.XID, bytes(8), end=100),
        packet(events.HEARTBEAT, b"log.000009", end=150),
        packet(events.HEARTBEAT, b"log.000009", end=120),
        rotate("log.000010", 4), form(True), packet(events.XID, bytes(8), end=50),
    )  # fmt: skip
    offsets = [where.offset for _, _, where in seen]
    assert offsets == [4, 4, 100, 150, 150, 4, 4, 50]
    assert seen[-1][2] == position("log.000010", 50) > seen[3][2]
    assert position("log.1000000", 4) > position("log.999999", 9)


def test_the_server_sends_annotations_to_a_replica_of_its_own_number():
    """Of two readers with one number, the server would disconnect the first."""
    connections = [Connection(), Connection()]
    for connection in connections:
        LogStream(lambda c=connection: c, position("log.000009", 77))
    requests = [connection.commands[-1] for connection in connections]
    assert {number for number, _ in requests} == {0x12}
    for _, request in requests:
        assert request[:6] == (77).to_bytes(4, "little") + b"\2\0"
        assert request[10:] == b"log.000009"
    assert requests[0][1][6:10] != requests[1][1][6:10]


def test_a_stream_that_is_closed_ends_quietly():
    """Its owner closes it while another thread waits for an event."""
    stream = LogStream(lambda: Connection(form(True)), position("log.000009", 4))
    iterator = iter(stream)
    assert next(iterator).kind == events.FORMAT
    stream.close()
    assert list(iterator) == []
