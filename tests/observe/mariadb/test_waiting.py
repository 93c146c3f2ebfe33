"""When what the proxy saw and what the log says are joined, and in which order they are written."""

import re
from itertools import count
from types import SimpleNamespace

import pytest

import isolang
from isolang.observe.log.replay import ReplayedChange
from isolang.observe.log.stream import position
from isolang.observe.log.tables import LoggedColumn, LoggedTable
from isolang.observe.log.transactions import Group, LoggedStatement
from isolang.observe.mariadb import waiting
from isolang.observe.mariadb.contents import NamedTable
from isolang.observe.mariadb.lines import GrowingHistory, write_end
from isolang.observe.mariadb.merge import Merger
from isolang.observe.mariadb.plan import SentPlan, SourceTable
from isolang.observe.mariadb.recording import FollowedTransaction, RecordedStatement, Recording
from isolang.observe.mariadb.session import FollowedSession
from isolang.observe.mariadb.statements import Statement
from isolang.observe.mariadb.waiting import LogMark, WaitingTransactions
from isolang.observe.unseen import HARMFUL_KINDS, IN_NO_LOG, NO_END

COLUMNS = {name: LoggedColumn(name=name, type="int") for name in ("id", "v")}
TABLE = LoggedTable(schema="s", name="t", columns=COLUMNS, key=["id"])


class Course:
    """An observation of two rows, whose log and connections go on step by step."""

    def __init__(self, path, level="repeatable read"):
        self.path, self.level = path, level
        self.recording = Recording(None, level)
        self.recording.keeps_snapshots = True
        self.merger = Merger(self.recording, 10)
        self.history = GrowingHistory(path, self.recording)
        rows = {("s", "t"): {(n,): {"id": n, "v": 0} for n in (1, 2)}}
        self.history.write_initial(self.merger.add_initial({("s", "t"): TABLE}, rows))
        self.waiting = WaitingTransactions(self.recording, self.merger, self.history)
        self.connections, self.offsets = count(1), count(1)
        self.numbers, self.values = {1: 0, 2: 0}, {1: 0, 2: 0}
        self.at = position("bin.1", 0)

    def begin(self, text="", kind="update", **plan):
        """Open a connection's transaction, which has sent a statement with a comment or none."""
        connection = self.recording.first_connection + next(self.connections)
        begin, began = self.recording.ticket()
        made = FollowedTransaction(
            process=self.recording.process(), connection=connection, begin=begin, began=began,
            level=self.level, waits_since=begin, is_explicit=True,
        )  # fmt: skip
        if text:
            made.numbers.add(1)
        mark = f"i{connection}.1" if text else ""
        made.events.append(
            RecordedStatement(
                statement=Statement(text, (), SentPlan(kind, **plan), mark=mark, tables=[]),
                number=1, sent=begin, answered=begin, changed=1,
            )
        )  # fmt: skip
        self.recording.open[connection] = made
        return made

    def end(self, transaction, outcome="ok", gtid=""):
        """Answer the COMMIT of a transaction, or lose its connection."""
        del self.recording.open[transaction.connection]
        transaction.waits_since, transaction.outcome, transaction.gtid = -1, outcome, gtid
        transaction.end, transaction.ended = self.recording.ticket()
        self.recording.transactions.append(transaction)
        self.recording.outcomes[outcome] += 1

    def write(self, transaction=None, key=1, gtid="", position_after=None):
        """Let the log have an update by a transaction, or by one that nobody observes."""
        self.numbers[key] += 1
        before, self.values[key] = self.values[key], self.values[key] + 1
        self.at = position("bin.1", next(self.offsets))
        mark = "" if transaction is None else transaction.events[0].statement.mark
        change = ReplayedChange(
            "update", TABLE, (key,), {"id": key, "v": before}, {"id": key, "v": self.values[key]},
            number=self.numbers[key],
        )  # fmt: skip
        return Group(
            gtid or f"0-1-{self.at.offset}", self.at, [LoggedStatement("x", mark, [change])]
        )

    def read(self, value, key=1):
        """Run a transaction that reads a row."""
        made = self.begin(kind="select", sources=[SourceTable("", "t", "t")], skips=True)
        statement = made.events[0].statement
        statement.tables, statement.hidden = [TABLE], 1
        made.events[0].rows = [[f"{key},{value}".encode()]]
        return made

    def go_on(self, *groups, mark=True):
        """Read the log, up to a new mark."""
        if mark:
            self.mark()
        for _ in self.waiting.advance(groups, self.at):
            pass
        return self.lines()

    def mark(self):
        """Note how far the log is."""
        before = self.recording.ticket()
        self.waiting.add_mark(LogMark(before, self.recording.ticket(), self.at))

    def lines(self):
        """The type, the process, and the operations of each line about a transaction."""
        lines = []
        for line in self.path.read_text().splitlines():
            if ":f :txn" in line:
                head, _, rest = line.partition(":value [")
                kind, process = re.search(r":type :(\w+), :process (\d+)", head).groups()
                words = re.findall(
                    r'\[:(\w+) \["t" "(\d)"\] \{[^}]*"v" (\d+)', rest.split("]\t[:x")[0]
                )
                lines.append((kind, int(process), *(f"{w}{k}={v}" for w, k, v in words)))
        return lines

    def finish(self, *groups):
        """End the observation, and return the lines."""
        self.waiting.finish(groups)
        self.history.close(self.merger.doubtful, self.merger.is_kept, lambda reads: None)
        write_end(self.path, self.merger.tables.all(), self.recording.unseen.settled())
        return self.lines()

    def left(self):
        """How much is kept in memory of transactions."""
        waits = self.waiting
        kept = (
            waits._groups, waits._ended, waits._written, waits._unobserved, waits._replaced,
            waits._marks, waits._passed, self.history._events, self.recording.transactions,
            waits._owners._by_number, waits._owners._by_gtid, waits._owners._lost,
        )  # fmt: skip
        return sum(map(len, kept))


@pytest.fixture
def course(tmp_path):
    """An observation that has begun."""
    return Course(tmp_path / "h.edn")


@pytest.mark.parametrize("log_is_first", [True, False])
@pytest.mark.parametrize("has_comment", [True, False])
def test_either_side_may_be_first(course, log_is_first, has_comment):
    """The log may have a transaction before its COMMIT is answered, or long after it."""
    writer = course.begin("UPDATE" if has_comment else "", "call")
    group = course.write(writer, gtid="0-1-77")
    if log_is_first:
        assert course.go_on(group) == []
        course.end(writer, gtid="0-1-77")
        assert course.go_on(mark=False) == []
        lines = course.go_on()
    else:
        course.end(writer, gtid="0-1-77")
        course.mark()
        course.at, at = position("bin.1", 0), course.at  # the log was not read so far
        assert course.go_on(mark=False) == []
        course.at = at
        lines = course.go_on(group, mark=False)
    me = writer.process
    assert (lines or course.go_on()) == [("invoke", me, "w1=1"), ("ok", me, "w1=1")]
    course.go_on()
    assert course.left() == 0


def test_what_nobody_observed_begins_in_front_of_its_readers(course):
    """A prefix of the file has no read of what is not in it, as far as the log was read."""
    early = course.read(0)
    course.end(early)
    assert course.go_on() == [("invoke", early.process), ("ok", early.process, "r1=0")]
    reader = course.read(1)
    course.end(reader)
    unobserved, late = course.write(), course.begin("x")
    late.waits_since = -1
    course.go_on(unobserved)
    lines = course.go_on()
    # An open transaction holds the end of the one that nobody observed back, but not its begin.
    begin, *reads = lines[2:]
    assert begin[0] == "invoke"
    assert begin[2:] == ("w1=1",)
    assert reads == [("invoke", reader.process), ("ok", reader.process, "r1=1")]
    course.end(late, "fail")
    # In the complete file, it begins in front of all others, as it may have begun at any time.
    lines = course.finish()
    assert lines[0][0] == "invoke"
    assert lines[0][2:] == ("w1=1",)
    assert isolang.check(isolang.load_history(course.path), "sser").outcome == "valid"


def test_a_transaction_of_the_log_waits_for_the_answers_that_may_name_it(course):
    """A procedure's writes have no comment, and the name comes with the answer to COMMIT."""
    caller, other = course.begin("", "call"), course.read(0, 2)
    first, second = course.write(None, gtid="0-1-50"), course.write(None, 2)
    course.end(other)
    course.go_on(first, second)
    assert course.waiting._groups
    course.end(caller, gtid="0-1-50")
    course.go_on()
    lines = course.go_on()
    assert ("ok", caller.process, "w1=1") in lines
    processes = {process for kind, process, *_ in lines if kind == "ok"}
    assert len(processes) == 3
    assert course.recording.unseen.total() == 0


def test_a_commit_without_an_answer_is_decided_by_the_log(course, monkeypatch):
    """It committed if the log has it; if the log has it very late, its reads are not known."""
    lost, rolled_back = course.begin("UPDATE"), course.begin("UPDATE")
    course.end(lost, "info")
    course.end(rolled_back, "info")
    course.go_on(course.write(lost))
    assert course.left()  # it waits for the other one
    monkeypatch.setattr(waiting, "_LOST_S", 0)
    course.go_on()
    lines = course.go_on()
    assert [line for line in lines if line[0] == "ok"] == [("ok", lost.process, "w1=1")]
    assert course.recording.outcomes == {"ok": 1, "info": 1}
    assert not course.recording.unseen
    course.go_on(course.write(rolled_back, 2))
    assert course.recording.unseen[NO_END] == 1
    assert ("w2=1",) in [line[2:] for line in course.go_on()]


def test_a_statement_whose_answer_was_lost_is_one_that_nobody_observed(course):
    """Nothing was recorded of it but that it was sent."""
    sent = course.begin("INSERT")
    group = course.write(sent)
    course.go_on(group)
    del course.recording.open[sent.connection]
    course.go_on(mark=False)
    assert not course.history._events  # it may not be visible yet, until a mark
    course.go_on()
    assert ("w1=1",) in [line[2:] for line in course.finish()]
    assert course.left() == 0


@pytest.mark.parametrize(("level", "is_known"), [("repeatable read", 0), ("read uncommitted", 1)])
def test_what_was_read_before_its_commit(tmp_path, level, is_known):
    """Only READ UNCOMMITTED reads what the log does not have; so its reads wait for the writers."""
    course = Course(tmp_path / "h.edn", level)
    writer, reader = course.begin("UPDATE"), course.read(1)
    course.end(reader)
    course.go_on()
    course.end(writer)
    course.go_on(course.write(writer))
    course.go_on()
    lines = course.finish()
    assert (("ok", reader.process, "r1=1") in lines) == is_known
    assert (course.recording.unseen[IN_NO_LOG] == 0) == is_known
    assert bool(course.merger.doubtful) != is_known


def test_a_definition_waits_for_its_answer(course):
    """Its answer tells when it took place, so which definition a statement read."""
    connection = course.begin("ALTER TABLE t", "definition")
    new = LoggedTable(
        schema="s",
        name="t",
        columns={**COLUMNS, "w": LoggedColumn(name="w", type="int")},
        key=["id"],
        generation=2,
    )
    course.at = position("bin.1", next(course.offsets))
    fill = [
        ReplayedChange("insert", new, (n,), None, {"id": n, "v": 0, "w": 7}, number=n)
        for n in (1, 2)
    ]
    alter = Group("0-1-9", course.at, [LoggedStatement("ALTER", "", fill)], "ALTER", [new])
    course.go_on(alter)
    assert course.waiting._groups
    sent = connection.begin
    course.recording.definitions["0-1-9"] = sent, course.recording.ticket()[0]
    del course.recording.open[connection.connection]
    course.go_on()
    (named,) = [each for each in course.merger.tables.all() if each.label == "t#2"]
    assert named.defined == course.recording.definitions["0-1-9"]
    course.go_on()
    assert '[:insert ["t#2" "1"] {' in course.path.read_text()


def test_nothing_is_kept_of_what_is_over(course):
    """However long the run is: the versions of rows, too, are those that can still be read."""
    sizes = []
    for number in range(60):
        writer, reader = course.begin("UPDATE"), course.read(number, 2)
        groups = [course.write(writer), course.write(None, 2)]
        course.end(reader)
        course.end(writer)
        course.go_on(*groups)
        named = course.merger.tables.all()[0]
        sizes.append((course.left(), sum(map(len, named._versions.values()))))
    assert max(sizes[20:]) <= max(sizes[:20])
    course.go_on()
    course.go_on()
    assert course.left() == 0
    assert not named._versions
    assert sum(map(len, named._contents.values())) == 2
    course.finish()
    history = isolang.load_history(course.path)
    assert isolang.check(history, "si").outcome == "valid"
    assert history.counts()["transactions"] == 180


def test_a_table_that_turns_out_to_be_doubtful_is_left_out_of_the_whole_file(course):
    """What was written before rests on a log that is wrong; so it convicts nobody."""
    first, second = course.read(0), course.read(0)
    groups = []
    for each, key in ((first, 1), (second, 1)):
        each.numbers.add(1)
        statement = Statement("UPDATE", (), SentPlan("update"), mark=f"i{each.connection}.1")
        each.events.append(RecordedStatement(statement=statement, number=2, changed=1, matched=1))
        groups.append(course.write(SimpleNamespace(events=[each.events[1]]), key))
        course.end(each)
    course.write(None, 1)  # the log lacks it
    course.go_on(*groups)
    assert len(course.go_on()) == 4
    text = course.path.read_text()
    cut = course.path.with_suffix(".cut")
    cut.write_text(text)
    # Without its end, the file convicts nobody yet.
    assert isolang.check(isolang.load_history(cut), "si").outcome == "unknown"
    accepting = isolang.load_history(cut, allow_unseen={"end"})
    assert isolang.check(accepting, "si").outcome == "invalid"
    lines = course.finish(course.write(None, 1))
    assert course.merger.doubtful == {"t"}
    assert all(len(line) == 2 for line in lines)
    assert '["t" ' not in course.path.read_text().replace(":callers", "")
    assert isolang.check(isolang.load_history(course.path), "si").outcome == "unknown"


def test_statements_of_one_text_wait_since_it_was_sent():
    """The second one may be in the log before the first one's answer has arrived."""
    recording = Recording(None, "repeatable read")
    session = FollowedSession(recording)
    call = SimpleNamespace(
        plan=SimpleNamespace(kind="call", restarts=False, unseen=""), mark="", units={}, program="",
        is_binary=False, ends_unclear=False, text="CALL", unseen="",
    )  # fmt: skip
    more = SimpleNamespace(
        code=0, status=1 | 2 | 8, gtid="", info=b"", affected=0, count=0, rows=[], has_cursor=False
    )
    session.begin(call)
    (sent,) = [each.waits_since for each in recording.open.values()]
    assert sent >= 0
    session.answered(call, more)
    assert [each.waits_since for each in recording.open.values()] == [-1]
    session.begin(call)
    assert [each.waits_since for each in recording.open.values()] == [sent]
    more.status = 1 | 2
    session.answered(call, more)
    session.begin(call)
    assert min(each.waits_since for each in recording.open.values()) > sent
    session.lose()
    assert not recording.open


def forgets_at_once(patch):
    """Forget all versions but the last one, although somebody may read them."""
    write = NamedTable.write

    def forgetting(self, key, row, writer, number):
        written = write(self, key, row, writer, number)
        self.settle(key, number)
        return written

    patch.setattr(NamedTable, "write", forgetting)


FAULTS = {
    "nothing": lambda patch: None,
    "a transaction is known too early": lambda patch: patch.setattr(
        WaitingTransactions, "_is_known", lambda *_: True
    ),
    "a version is forgotten too early": forgets_at_once,
    "a comment is lost": lambda patch: patch.setattr(waiting._Owners, "owner_of", lambda *_: None),
    "a transaction of the log is lost": lambda patch: patch.setattr(
        WaitingTransactions, "_apply", lambda *_: True
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_our_own_convict_nobody(course, monkeypatch, fault):
    """A defect of the merge leaves out facts, and says so; it makes up none."""
    FAULTS[fault](monkeypatch)
    for number in range(3):
        writer, reader = course.begin("INSERT", "insert"), course.read(number)
        writer.events[0].statement.tables = [TABLE]
        late = course.read(number)
        group = course.write(writer)
        course.end(writer)
        course.end(late)
        course.go_on(mark=False)
        course.go_on(group, mark=False)
        course.go_on()
        course.end(reader)
        course.go_on()
        course.go_on()
    course.finish()
    outcome = isolang.check(isolang.load_history(course.path), "sser").outcome
    assert outcome == ("valid" if fault == "nothing" else "unknown")
    accepting = isolang.load_history(course.path, allow_unseen=HARMFUL_KINDS)
    assert isolang.check(accepting, "sser").outcome != "invalid"
