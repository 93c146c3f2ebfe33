"""Forwards the messages of a connection, and records what they say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from isolang.observe.mariadb import packets
from isolang.observe.mariadb.address import MariaDBAddress
from isolang.observe.mariadb.answers import (
    NOT_AS_SENT,
    AnswerForwarder,
    PreparedOnWire,
    long_data,
)
from isolang.observe.mariadb.asking import answered
from isolang.observe.mariadb.packets import (
    MORE_RESULTS,
    parameters_of,
    with_repeated_parameters,
)
from isolang.observe.mariadb.recording import Recording, StatementAnswer
from isolang.observe.mariadb.session import FollowedSession
from isolang.observe.mariadb.statements import Statement
from isolang.observe.mariadb.streams import PacketStream
from isolang.observe.sql.predicates import Parameters
from isolang.observe.unseen import BROKEN, NOT_OBSERVED, PREPARED_EARLIER, REFUSED

_CHARSETS: Final = {"utf8mb4": "utf-8", "utf8mb3": "utf-8", "utf8": "utf-8", "ascii": "ascii",
                    "latin1": "cp1252"}  # fmt: skip
# In these character sets, a character may end in the byte of a backslash.
_UNSAFE: Final = frozenset({"big5", "cp932", "gbk", "sjis", "gb18030", "gb2312"})
_TRACKING: Final = (
    "SET SESSION session_track_system_variables=CONCAT(@@session_track_system_variables,"
    "',last_gtid,sql_mode,character_set_client')"
)
_SETTINGS: Final = "SELECT @@sql_mode,@@character_set_client,@@tx_isolation"
_INVALID: Final = (IndexError, KeyError, ValueError, AssertionError)  # of a packet of another form


class ProxiedConnection:
    """A connection of an application, and the one to the server on its behalf.

    Attributes:
        session: the transactions of the connection.
        forwarder: forwards the server's answers.
    """

    def __init__(
        self,
        recording: Recording,
        client: PacketStream,
        address: MariaDBAddress,
        refresh: Callable[[], Awaitable[None]],
    ) -> None:
        """Store the application's side.

        Args:
            address: the address of the server.
            refresh: loads the definitions of tables again if they may have changed.
        """
        self._recording, self._client = recording, client
        self._address, self._refresh = address, refresh
        self._server = PacketStream()
        self._server.peer, client.peer = client, self._server
        self.session = FollowedSession(recording)
        self._prepared: dict[int, PreparedOnWire] = {}
        self._prepared_count = 0
        self.forwarder = AnswerForwarder(client, self._server, recording.unseen)

    async def run(self) -> None:
        """Forward all messages until one side ends the connection."""
        try:
            if await self.forwarder.connect(self._address):
                await self._set_up()
                while await self._command(await self._client.read()):
                    await self._client.drain()
        except (ConnectionError, OSError):
            pass
        except _INVALID as error:
            self._recording.unseen.note(BROKEN, f"{type(error).__name__}: {error}")
        finally:
            self.session.lose()
            self._client.close()
            self._server.close()

    # --- the beginning ---

    async def _set_up(self) -> None:
        """Ask for the variables that decide what texts mean, now and at each change."""
        self._prepared.clear()
        self.session.reset()
        await self.forwarder.query(_TRACKING)
        rows = await self.forwarder.query(_SETTINGS)
        if not rows:
            self._recording.unseen.note(NOT_OBSERVED, "settings that cannot be read")
            return
        mode, charset, level = ((value or b"").decode("latin1") for value in rows[0])
        self.forwarder.mode, self.forwarder.charset = mode, charset
        self.session.level = level.lower().replace("-", " ")

    # --- commands ---

    async def _command(self, data: bytes) -> bool:
        """Forward a command and its answer; return whether the connection goes on."""
        code = data[0]
        if code == packets.QUERY:
            await self._text(data)
        elif code == packets.PREPARE:
            await self._prepare(data)
        elif code == packets.EXECUTE:
            await self._execute(data)
        elif code == packets.FETCH:
            await self._fetch(data)
        elif code in (packets.LONG_DATA, packets.CLOSE):
            self._send_unanswered(data)
        elif code == packets.QUIT:
            self.forwarder.send(data)
            self._server.flush()
            return False
        elif code == packets.STATISTICS:
            self.forwarder.send(data)
            self._client.write(await self._server.read())
        elif code == packets.FIELD_LIST:
            await self.forwarder.field_list(data)
        elif code == packets.CHANGE_USER:
            self.session.lose()
            self.forwarder.send(data)
            if not await self.forwarder.authenticate():
                return False
            user = data.index(0, 1) + 1
            rest = data[user + 1 + data[user] :]
            self.forwarder.database = rest[: rest.find(b"\0")].decode("utf-8", "replace")
            await self._set_up()
        elif code in (packets.BINLOG_DUMP, packets.TABLE_DUMP, packets.BULK_EXECUTE):
            self._recording.unseen.note(NOT_OBSERVED, "replication, or bulk execution")
            self.forwarder.send(data)
            while True:
                self._client.write(await self._server.read())
                await self._client.drain()
        elif code in packets.OTHERS:
            await self._other(data)
        else:
            raise ValueError(f"command {code}; hint: connect to the proxy without compression")
        return True

    async def _other(self, data: bytes) -> None:
        """Forward a command whose answer has no rows."""
        if data[0] == packets.RESET_CONNECTION:
            self.session.lose()
        self.forwarder.send(data)
        answer = await self.forwarder.answer(0)
        if data[0] == packets.INIT_DB and not answer.code:
            self.forwarder.database = data[1:].decode("utf-8", "replace")
        elif data[0] == packets.RESET_CONNECTION:
            await self._set_up()

    def _send_unanswered(self, data: bytes) -> None:
        """Forward a command that has no answer: the end of a statement, or a part of a value."""
        number = int.from_bytes(data[1:5], "little")
        is_closed = data[0] == packets.CLOSE
        prepared = self._prepared.pop(number, None) if is_closed else self._prepared.get(number)
        for command in long_data(prepared, data):
            self.forwarder.send(command)

    # --- statements as texts ---

    @property
    def _codec(self) -> str:
        return _CHARSETS.get(self.forwarder.charset, "")

    def _prepared_texts(self, data: bytes) -> tuple[list[Statement], str]:
        """Return the statements of a text, and the codec of the text."""
        codec = self._codec or "latin1"
        try:
            text = data.decode(codec)
        except UnicodeDecodeError:
            codec, text = "latin1", data.decode("latin1")
        known = self._codec if codec == self._codec else ""
        mode = "ORACLE" if self.forwarder.charset in _UNSAFE else self.forwarder.mode
        made = self._recording.preparation.statements(
            text, mode, self.forwarder.database, known, self.session.temporaries
        )
        return made, codec

    def _take_note(self, text: bytes | str) -> None:
        """Take what the caller noted about a text, or about the statement that it prepared."""
        notes = self._recording.notes
        self.session.note = None if notes is None else notes.take(self.forwarder.thread, text)

    async def _text(self, data: bytes) -> None:
        self._take_note(data[1:])
        made, codec = self._prepared_texts(data[1:])
        if not made:
            self.forwarder.send(data)
            await self.forwarder.answer(0)
            return
        preparation, session = self._recording.preparation, self.session
        made = [
            preparation.marked(statement, f"i{session.connection}.{session.next_number()}")
            for statement in made
        ]
        at = 0
        while at < len(made):
            rest = made[at:]
            if at or any(statement.hidden or statement.mark for statement in rest):
                sent = "".join(statement.sent_text() for statement in rest).encode(codec)
                sent = sent.removeprefix(b";") if at else sent
                self.forwarder.send(bytes([packets.QUERY]) + sent)
            else:
                self.forwarder.send(data)
            refused = await self._answers(rest)
            if refused < 0:
                return
            for statement in rest[refused:]:
                statement.without_hidden(REFUSED)
            at += refused

    async def _answers(self, made: Sequence[Statement]) -> int:
        """Forward the answers to a text's statements.

        Return the position of the statement that the server refused because of its added columns;
        -1 if there is none.
        """
        at = 0
        while True:
            statement = made[min(at, len(made) - 1)]
            self.session.begin(statement)
            alone = len(made) == 1
            answer = await answered(self.forwarder, self.session, statement, is_alone=alone)
            if answer.is_refused:
                return at
            more = bool(answer.status & MORE_RESULTS)
            is_inner = statement.plan.kind in ("call", "other") and more
            if not is_inner:  # the answers inside a procedure end nothing
                self.session.answered(statement, answer)
                await self._follow(statement, answer)
            if not more:
                return -1
            at += not is_inner

    async def _follow(self, statement: Statement, answer: StatementAnswer) -> None:
        """Take over what a statement has changed for the next ones.

        A definition that fails may have changed something: DROP drops the tables that there are.
        """
        if statement.plan.kind == "definition":
            await self._refresh()
        elif statement.plan.kind == "use" and not answer.code:
            self.forwarder.database = statement.plan.name

    # --- prepared statements ---

    async def _prepare(self, data: bytes) -> None:
        made, codec = self._prepared_texts(data[1:])
        self._prepared_count += 1
        statement = made[0] if len(made) == 1 else None
        if statement is not None:
            mark = f"i{self.session.connection}.p{self._prepared_count}"
            statement = self._recording.preparation.marked(statement, mark)
            statement.is_binary = True
        if statement is not None and (statement.hidden or statement.mark):
            self.forwarder.send(bytes([packets.PREPARE]) + statement.sent_text().encode(codec))
        else:
            self.forwarder.send(data)
        first = await self._server.read()
        code = int.from_bytes(first[1:3], "little") if first[0] == 0xFF else 0
        if statement is not None and statement.hidden and code in NOT_AS_SENT:
            statement.without_hidden(REFUSED)
            self.forwarder.send(data)
            first = await self._server.read()
        self._prepared.pop(packets.LAST_PREPARED, None)
        if first[0] == 0xFF:
            self._client.write(first)
            return
        number, columns, count = (
            int.from_bytes(first[begin:end], "little") for begin, end in ((1, 5), (5, 7), (7, 9))
        )
        hidden = 0 if statement is None else statement.hidden
        keep = columns - hidden
        order = statement.parameter_order() if statement is not None and hidden else []
        own = count if not order else max(order)
        self._client.write(
            first[:5] + keep.to_bytes(2, "little") + own.to_bytes(2, "little") + first[9:]
        )
        for size, shown in ((count, own), (columns, keep)):
            for k in range(size):
                definition = await self._server.read()
                if k < shown:
                    self._client.write(definition)
            if size and not self.forwarder.has_no_eof:
                self._client.write(await self._server.read())
        if statement is not None:
            on_wire = PreparedOnWire(statement, own, keep, order=order)
            self._prepared[number] = self._prepared[packets.LAST_PREPARED] = on_wire

    async def _execute(self, data: bytes) -> None:
        prepared = self._prepared.get(int.from_bytes(data[1:5], "little"))
        if prepared is None:
            self.forwarder.send(data)
            answer = await self.forwarder.answer(0)
            if not answer.code:  # else the server does not know the statement either
                self._recording.unseen.note(PREPARED_EARLIER)
            return
        statement = replace(prepared.statement, parameters=self._parameters(prepared, data))
        if len(prepared.order) > prepared.count:
            data = with_repeated_parameters(
                data, prepared.bound, prepared.order, sent_long=prepared.sent_long
            )
        prepared.sent_long = set()
        self._take_note(prepared.statement.text)
        self.forwarder.send(data)
        while True:
            self.session.begin(statement)
            answer = await answered(self.forwarder, self.session, statement, prepared)
            if not answer.status & MORE_RESULTS:
                break
        prepared.event = self.session.answered(statement, answer)
        await self._follow(statement, answer)

    def _parameters(self, prepared: PreparedOnWire, data: bytes) -> Parameters:
        """Return the parameters of an execution; none of them if they are not certain."""
        with suppress(LookupError, ValueError):
            made, prepared.bound = parameters_of(
                data, prepared.count, prepared.bound, charset=self._codec,
                sent_long=frozenset(prepared.sent_long),
            )  # fmt: skip
            return made
        return Parameters()

    async def _fetch(self, data: bytes) -> None:
        prepared = self._prepared.get(int.from_bytes(data[1:5], "little"))
        self.forwarder.send(data)
        if prepared is None:
            await self.forwarder.rows(0, 0, ())
            return
        answer = await self.forwarder.rows(prepared.keep, prepared.statement.hidden, prepared.types)
        if prepared.event is not None:
            prepared.event.rows += answer.rows
            prepared.event.count += answer.count
            prepared.event.is_open = not answer.status & packets.LAST_ROW_SENT
