"""Forwards the server's answers to an application, without what the observer added to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from isolang.observe.mariadb import packets
from isolang.observe.mariadb.address import MariaDBAddress
from isolang.observe.mariadb.packets import (
    CURSOR_EXISTS,
    Ok,
    column_type,
    cut_binary_row,
    cut_text_row,
    greeting_of,
    is_tls_request,
    lenenc,
    login_of,
    ok_of,
    read_lenenc,
    tls_request,
)
from isolang.observe.mariadb.recording import RecordedStatement, StatementAnswer
from isolang.observe.mariadb.statements import Statement
from isolang.observe.mariadb.streams import PacketStream
from isolang.observe.unseen import LOADED, NOT_OBSERVED, Unseen

# Errors that a statement gets only because of the added columns: a name or group that is wrong, or
# a column that the role may not read.
NOT_AS_SENT: Final = frozenset({
    1051, 1052, 1054, 1055, 1060, 1064, 1109, 1140, 1142, 1143, 1146, 1235, 1242, 1247, 1260, 1267,
    1305, 1365, 1370, 1461,
})  # fmt: skip
_EOF_SIZE: Final = 5


class PreparedOnWire(Struct):
    """A statement that the application has prepared.

    Attributes:
        count: the number of its parameters.
        bound: the types of the parameters that the last execution sent.
        keep: the number of columns of the application's answer.
        types: the types of all columns of the answer.
        sent_long: the numbers of parameters that were sent before the execution.
        event: the event of the execution whose rows are being fetched.
        order: the number of the parameter that each one of the sent statement stands for; empty if
            none is repeated.
    """

    statement: Statement
    count: int
    keep: int
    bound: Sequence[int] = ()
    types: list[int] = field(default_factory=list)
    sent_long: set[int] = field(default_factory=set)
    event: RecordedStatement | None = None
    order: Sequence[int] = ()


def long_data(prepared: PreparedOnWire | None, data: bytes) -> Iterator[bytes]:
    """Yield the commands for a part of a parameter, one for each place where it is sent.

    The end of a statement is the same for the server.
    """
    if prepared is None or data[0] != packets.LONG_DATA:
        yield data
        return
    parameter = int.from_bytes(data[5:7], "little")
    prepared.sent_long.add(parameter)
    if not prepared.order:
        yield data
    for place, number in enumerate(prepared.order):
        if number == parameter + 1:
            yield data[:5] + place.to_bytes(2, "little") + data[7:]


class AnswerForwarder:
    """Reads the server's answers, and forwards them.

    Attributes:
        tracks: whether the client asked to track its session.
        is_tracked: whether the server tracks the session.
        has_no_eof: whether answers end with OK instead of EOF packets.
        mode: the session's ``sql_mode``.
        charset: the character set of the texts that the client sends.
        database: the session's default database.
        thread: the server's number of the connection.
    """

    def __init__(self, client: PacketStream, server: PacketStream, unseen: Unseen) -> None:
        """Store both sides."""
        self.client, self.server, self._unseen = client, server, unseen
        self.tracks = self.is_tracked = self.has_no_eof = False
        self.mode = self.charset = self.database = ""
        # Asks for the rows of query blocks before an answer ends.
        self.before_end: Callable[[int, int], Awaitable[bytes | None]] | None = None
        self.hidden_flags = 0  # those of the status that added columns may set
        self.thread = 0

    async def connect(self, address: MariaDBAddress) -> bool:
        """Connect to the server, and return whether the client has logged in."""
        try:
            await address.open_connection(self.server)
            return await self._log_in(address)
        except ConnectionResetError:  # one side has gone
            return False
        except OSError as error:
            text = f"isocheck observe cannot connect to the server: {error or type(error).__name__}"
            code = packets.NO_CONNECTION.to_bytes(2, "little")
            self.client.write(b"\xff" + code + b"#08001" + text.encode())
            return False

    async def _log_in(self, address: MariaDBAddress) -> bool:
        """Forward the greeting, the login and what follows; return whether the login succeeded.

        The client is never offered encryption, also if the server gets it.

        Raises:
            OSError: the server cannot encrypt, or its certificate is refused.
        """
        data = await self.server.read()
        if data[0] == 0xFF:
            self.client.write(data)
            return False
        greeting = greeting_of(data)
        self.thread = greeting.thread
        self.client.write(greeting.data)
        first = await self.client.read()
        if is_tls_request(first):
            raise OSError("the proxy does not encrypt; connect to it without TLS")
        login = login_of(first, greeting.offers)
        self.tracks = bool(login.capabilities & packets.SESSION_TRACK)
        self.is_tracked = bool(greeting.offers & packets.SESSION_TRACK)
        self.has_no_eof = bool(login.capabilities & packets.DEPRECATE_EOF)
        self.database = login.database
        if address.tls:
            if not greeting.offers & packets.TLS:
                raise OSError("the server does not offer TLS")
            self.server.write(tls_request(login.data))
            await self.server.encrypt(address.tls.context(), address.certified_name)
            self.server.write(tls_request(login.data) + login.data[packets.TLS_REQUEST_SIZE :])
        else:
            self.server.write(login.data)
        return await self.authenticate()

    async def authenticate(self) -> bool:
        """Forward the messages of an authentication, and return whether it succeeded."""
        while True:
            data = await self.server.read()
            if data[0] == 0:
                self.client.write(self.ok(data).packed(tracks=self.tracks))
                return True
            self.client.write(data)
            if data[0] == 0xFF:
                return False
            if data[:2] != b"\x01\x03":  # the server wants no answer to "authenticated fast"
                self.server.write(await self.client.read())

    def send(self, data: bytes) -> None:
        """Send a command to the server."""
        self.server.sequence = 0
        self.server.write(data)

    async def query(self, text: str) -> list[list[bytes | None]]:
        """Return the rows of a statement of the observer's own."""
        self.send(bytes([packets.QUERY]) + text.encode())
        first = await self.server.read()
        if first[0] == 0xFF:
            self._unseen.note(NOT_OBSERVED, first[9:].decode("utf-8", "replace"))
        if first[0] in (0, 0xFF):
            return []
        for _ in range(first[0] + (not self.has_no_eof)):
            await self.server.read()
        rows = []
        while (row := await self.server.read())[0] != 0xFE:
            rows.append(cut_text_row(row, 0)[1])
        return rows

    async def field_list(self, data: bytes) -> None:
        """Forward a question for the columns of a table, and its answer."""
        self.send(data)
        while True:
            definition = await self.server.read()
            self.client.write(definition)
            if definition[0] == 0xFF or (
                definition[0] == 0xFE and len(definition) < packets.ENDS_ROWS
            ):
                return

    async def answer(self, hidden: int, prepared: PreparedOnWire | None = None) -> StatementAnswer:
        """Forward an answer, without its added columns."""
        client, server = self.client, self.server
        first = await server.read()
        if first[0] == 0xFF:
            code = int.from_bytes(first[1:3], "little")
            if hidden and prepared is None and code in NOT_AS_SENT:
                return StatementAnswer(code=code, is_refused=True)
            client.write(first)
            return StatementAnswer(code=code)
        if first[0] == 0xFE and len(first) == _EOF_SIZE:  # of COM_SET_OPTION
            return StatementAnswer(status=self.eof(first))
        if first[0] == 0 or (first[0] == 0xFE and len(first) < packets.ENDS_ROWS):
            ok = self.ok(first)
            client.write(ok.packed(tracks=self.tracks))
            return StatementAnswer(
                status=ok.status, affected=ok.affected, info=ok.info, gtid=ok.gtid
            )
        if first[0] == 0xFB:
            return await self._local_file(first)
        number, _ = read_lenenc(first, 0)
        assert number is not None
        keep = number - hidden
        client.write(lenenc(keep) if hidden else first)
        types = []
        for k in range(number):
            definition = await server.read()
            if k < keep:
                client.write(definition)
            if prepared is not None and hidden:
                types.append(column_type(definition))
        status = 0 if self.has_no_eof else self.eof(await server.read())
        if prepared is not None:
            prepared.types, prepared.keep = types, keep
        if status & CURSOR_EXISTS:
            return StatementAnswer(status=status, has_cursor=True)
        return await self.rows(keep, hidden, types if prepared is not None else None)

    async def rows(self, keep: int, hidden: int, types: Sequence[int] | None) -> StatementAnswer:
        """Forward the rows of an answer.

        Args:
            keep: the number of columns to forward.
            types: the types of all columns of a prepared statement; ``None`` for texts.
        """
        client, server = self.client, self.server
        longest = packets.LONGEST if self.has_no_eof else packets.ENDS_ROWS
        rows, count = list[list[bytes | None]](), 0
        while True:
            data = await server.read()
            first = data[0] if data else 0
            if first == 0xFE and len(data) < longest:
                lists = None
                if self.before_end is not None:
                    lists = await self.before_end(count, self._status(data))
                    if lists is not None and lists[:1] == b"\xff":
                        client.write(lists)
                        return StatementAnswer(code=int.from_bytes(lists[1:3], "little"))
                if not self.has_no_eof:
                    return StatementAnswer(
                        status=self.eof(data), rows=rows, count=count, lists=lists
                    )
                ok = self.ok(data)
                ok.status &= ~self.hidden_flags
                client.write(ok.packed(tracks=self.tracks))
                return StatementAnswer(
                    status=ok.status, gtid=ok.gtid, rows=rows, count=count, lists=lists,
                    has_cursor=bool(ok.status & CURSOR_EXISTS) and not count,
                )  # fmt: skip
            if first == 0xFF:
                client.write(data)
                return StatementAnswer(code=int.from_bytes(data[1:3], "little"))
            count += 1
            if hidden:
                data, values = (
                    cut_text_row(data, keep) if types is None
                    else cut_binary_row(data, types, keep)
                )  # fmt: skip
                rows.append(values)
            client.write(data)
            await client.drain()

    def _status(self, data: bytes) -> int:
        """Return the session's status at the end of an answer."""
        if self.has_no_eof:
            return ok_of(data, tracked=self.is_tracked).status
        return int.from_bytes(data[3:5], "little")

    async def lists(self, text: str, codec: str) -> tuple[bool, bytes | None]:
        """Return whether a statement finds a row, and the rows of its query blocks.

        The second result is an error if the server has answered with one.
        """
        self.send(bytes([packets.QUERY]) + text.encode(codec))
        first = await self.server.read()
        if first[0] == 0xFF:
            return False, first
        for _ in range(first[0] + (not self.has_no_eof)):
            await self.server.read()
        values = list[bytes | None]()
        # The first column is short, so a row does not begin as the end does.
        while (data := await self.server.read())[0] not in (0xFE, 0xFF):
            _, values = cut_text_row(data, 0)
        return (values[0] == b"1", values[1]) if values and data[0] == 0xFE else (False, data)

    def eof(self, data: bytes) -> int:
        """Forward an EOF packet without the flag that the observer's own tracking sets."""
        status = int.from_bytes(data[3:5], "little")
        shown = status & ~(packets.STATE_CHANGED | self.hidden_flags)
        self.client.write(data[:3] + shown.to_bytes(2, "little") + data[5:])
        return status

    def ok(self, data: bytes) -> Ok:
        """Return an OK packet, and take over what it says about the session."""
        ok = ok_of(data, tracked=self.is_tracked)
        if ok.schema:
            self.database = ok.schema
        self.mode = ok.tracked.get(b"sql_mode", self.mode)
        self.charset = ok.tracked.get(b"character_set_client", self.charset)
        return ok

    async def _local_file(self, request: bytes) -> StatementAnswer:
        """Forward the file that the server requests."""
        self._unseen.note(LOADED, request[1:].decode("utf-8", "replace"))
        self.client.write(request)
        while True:
            data = await self.client.read()
            self.server.write(data)
            await self.server.drain()
            if not data:
                break
        answer = await self.server.read()
        if answer[0] == 0xFF:
            self.client.write(answer)
            return StatementAnswer(code=int.from_bytes(answer[1:3], "little"))
        ok = self.ok(answer)
        self.client.write(ok.packed(tracks=self.tracks))
        return StatementAnswer(status=ok.status, affected=ok.affected, info=ok.info, gtid=ok.gtid)
