"""Exchanges: a later read shows another order of writers than a cut guessed, and no cut goes back.

docs/routes.md, *Exchanges*, proves what an exchange keeps. Each chain is verified.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from support.sampling import quick_first
from support.watching import lines

from isolang.history import save_history
from isolang.simulator import Workload, generate
from isolang.watch import Round, Stream, Watch, verify_chain
from isolang.watch.chain import NAME, ChainEnd, Part, part_at, read_live_chain, unpack_columns
from isolang.watch.exchange import Exchanges
from isolang.watch.state import position_in
from isolang.watch.stream.log import Log
from isolang.watch.verify import ChainRejected

_KINDS = {"i": "invoke", "o": "ok"}


def log(*events: str) -> str:
    """A log of events ``KIND PROCESS VALUE``: invocations (i) and completions (o)."""
    text = ""
    for event in events:
        kind, process, value = event.split(" ", 2)
        text += f"{{:type :{_KINDS[kind]}, :process {process}, :f :txn, :value [{value}]}}\n"
    return text


def overlapping(*values: str) -> tuple[str, ...]:
    """The events of transactions that overlap."""
    return tuple(f"{kind} {p} {value}" for kind in "io" for p, value in enumerate(values))


FILLERS = lines(*(f"9 [:w f{i} 1]" for i in range(12)))


class Watched:
    """A log that is watched to its end.

    Attributes:
        rounds: the rounds.
        watch: the watch.
    """

    def __init__(self, folder: Path, text: str, level: str = "ser", **options: object) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.path = folder / "log.edn"
        self.path.write_text(text)
        stream = Stream([self.path], follow=False, batch=400)
        self.watch = Watch(
            level, stream=stream, folder=folder / "state", **({"round": 2} | options)
        )
        self.rounds: list[Round] = [found for batch in stream for found in self.watch.feed(batch)]
        self.watch.close()
        stream.close()

    @property
    def outcome(self) -> str:
        return self.watch.report.outcome

    def total(self, what: str) -> int:
        return sum(getattr(found, what) for found in self.rounds)

    def verified(self, *, by_definition: bool = True) -> int:
        return verify_chain(
            self.folder / "state", Stream([self.path], follow=False), by_definition=by_definition
        )


def each_read(folder: Path, text: str, reads: Iterable[str], level: str) -> list[Watched]:
    """Watch a log with one or the other read at its end: both are valid, and put no cut back."""
    found = []
    for number, read in enumerate(reads):
        watched = Watched(folder / f"{level}{number}", text + lines(f"8 {read}"), level)
        assert watched.outcome == "valid"
        assert watched.verified() == sum(r.cut for r in watched.rounds)
        assert watched.total("put_back") == 0
        found.append(watched)
    return found


@pytest.mark.parametrize("level", ["ser", "sser", "si", "ra"])
def test_a_register_with_two_writers_at_a_time_may_end_with_either(tmp_path, level):
    """Two transactions write x at a time: a later read returns one value or the other."""
    text = log(*overlapping("[:w x 1]", "[:w x 2]")) + FILLERS
    found = each_read(tmp_path, text, ("[:r x 1]", "[:r x 2]"), level)
    assert sorted(one.total("exchanged") for one in found) == [0, 1]


@pytest.mark.parametrize("level", ["ser", "sser"])
def test_a_list_has_the_order_that_a_later_read_shows(tmp_path, level):
    """Three appends at a time; later appends, in parts of their own, read nothing."""
    text = log(*overlapping("[:append x 1]", "[:append x 2]", "[:append x 3]"))
    text += (
        FILLERS + lines("7 [:append x 4]") + FILLERS.replace("f", "g", 4) + lines("7 [:append x 5]")
    )
    orders = ("1 2 3", "1 3 2", "2 1 3", "2 3 1", "3 1 2", "3 2 1")
    found = each_read(tmp_path, text, (f"[:r x [{order} 4 5]]" for order in orders), level)
    exchanged = [one.total("exchanged") for one in found]
    assert exchanged.count(0) == 1
    assert max(exchanged) > 1  # the parts of the later appends leave other lists, too


def test_a_deleted_key_may_have_been_written_last(tmp_path):
    """A delete and a write at a time: later the key is there, or it is not."""
    text = log(*overlapping("[:delete x]", "[:w x 2]")) + FILLERS
    found = each_read(tmp_path, text, ("[:r x nil]", "[:r x 2]"), "ser")
    assert sorted(one.total("exchanged") for one in found) == [0, 1]


@pytest.mark.slow
def test_several_keys_of_several_parts_are_exchanged_in_one_round(tmp_path):
    """One transaction reads them all."""
    text = "".join(
        log(*overlapping(f"[:w {key} 1]", f"[:w {key} 2]")) + FILLERS.replace("f", key * 2, 4)
        for key in "xyz"
    )
    reads = (f"[:r x {a}] [:r y {b}] [:r z {c}]" for a in (1, 2) for b in (1, 2) for c in (1, 2))
    found = each_read(tmp_path, text, reads, "ser")
    assert sorted(one.total("exchanged") for one in found) == [0, 1, 1, 1, 2, 2, 2, 3]


def test_what_a_later_part_read_or_overwrote_is_not_exchanged(tmp_path):
    """A part with the read of x = 2 would not hold if 1 were last: the cuts go back."""
    text = log(*overlapping("[:w x 1]", "[:w x 2]")) + FILLERS
    for seen, stale in ((1, 2), (2, 1)):
        read = text + lines(f"6 [:r x {seen}]") + FILLERS.replace("f", "g", 4)
        found = Watched(tmp_path / f"a{seen}", read + lines(f"8 [:r x {stale}]"))
        assert (found.outcome, found.total("put_back") > 0) == ("valid", True)
        assert found.verified() == 28
        found = Watched(tmp_path / f"b{seen}", read + lines(f"8 [:r x {stale}]"), "sser")
        assert found.outcome == "invalid"


def test_an_order_that_the_level_forbids_is_not_exchanged(tmp_path):
    """The second writer read y from the first one, so that x = 2 is last under real time."""
    text = lines("0 [:w x 1] [:w y 1]", "1 [:r y 1] [:w x 2]") + FILLERS + lines("8 [:r x 1]")
    found = Watched(tmp_path / "a", text, "sser")
    assert (found.outcome, found.total("exchanged")) == ("invalid", 0)
    found = Watched(tmp_path / "b", text, "ser")
    assert (found.outcome, found.total("exchanged")) == ("valid", 0)
    assert found.total("put_back") > 0
    assert found.verified() == 15


def test_a_predicate_read_holds_the_rows_before_it(tmp_path):
    """It is about every row, also about one that it did not return: nothing before it changes."""
    row = "[:w t/1 {{:v {}}}]"
    text = log(*overlapping(row.format(1), row.format(2))) + FILLERS
    text += lines("6 [:rp {:table t :where [:= :v 3]} {}]") + FILLERS.replace("f", "g", 4)
    outcomes = set()
    for value in (1, 2):
        found = Watched(tmp_path / str(value), text + lines(f"8 [:r t/1 {{:v {value}}}]"))
        outcomes.add((found.outcome, found.total("exchanged"), found.total("put_back") > 0))
        assert found.verified(by_definition=False) == 28
    assert outcomes == {("valid", 0, False), ("valid", 0, True)}


def live(folder: Path) -> list[Part]:
    """The parts of a chain that are not void."""
    path = folder / "state" / NAME
    with path.open("rb") as file:
        return [part_at(file, start, "here") for start in read_live_chain(path).starts]


def with_parts(folder: Path, parts: Iterable[Part]) -> None:
    """Replace the parts of a chain, with the right hash of the line before in each line."""
    path = folder / "state" / NAME
    head, *_, end = path.read_bytes().splitlines(keepends=True)
    text, previous = head, hashlib.sha256(head).hexdigest()
    for entry in (*parts, msgspec.json.decode(end, type=ChainEnd)):
        line = msgspec.json.encode(msgspec.structs.replace(entry, previous=previous)) + b"\n"
        text, previous = text + line, hashlib.sha256(line).hexdigest()
    path.write_bytes(text)


def exchanged(part: Part) -> Part:
    """A part in which the two writers of each key that has two have the other order."""
    columns = unpack_columns(part, "here")
    order = columns.order_txn.copy()
    for first, end in itertools.pairwise(columns.order_start.tolist()):
        if end - first == 2:
            order[first:end] = order[first:end][::-1]
    columns = msgspec.structs.replace(columns, order_txn=order)
    return msgspec.structs.replace(part, columns=columns.packed())


def test_a_chain_with_the_order_that_a_read_contradicts_is_rejected(tmp_path):
    """Any chain may have been exchanged: the checker computes what each part leaves by itself."""
    text = log(*overlapping("[:w x 1]", "[:w x 2]")) + FILLERS
    for one in each_read(tmp_path, text, ("[:r x 1]", "[:r x 2]"), "ser"):
        parts = live(one.folder)
        with_parts(one.folder, parts)
        assert one.verified() == 15  # as it was
        with_parts(one.folder, map(exchanged, parts))
        with pytest.raises(ChainRejected, match=r"part \d+: .*x"):
            one.verified(by_definition=False)


def test_a_chain_with_another_order_that_no_read_shows_is_another_proof(tmp_path):
    """Nobody reads x: both orders prove the same, and an exchange of one is none of the other."""
    text = log(*overlapping("[:w x 1]", "[:w x 2]")) + FILLERS
    (one,) = each_read(tmp_path, text, ("[:r y nil]",), "ser")
    parts = [exchanged(part) for part in live(one.folder)]
    with_parts(one.folder, parts)
    assert one.verified() == 15


def test_a_chain_with_an_order_that_real_time_forbids_is_rejected(tmp_path):
    """The first writer ended before the second one began."""
    text = lines("0 [:w x 1]", "1 [:w x 2]") + FILLERS
    for level, rejected in (("ser", False), ("sser", True)):
        (one,) = each_read(tmp_path, text, ("[:r y nil]",), level)
        with_parts(one.folder, [exchanged(part) for part in live(one.folder)])
        if not rejected:
            assert one.verified() == 15
            continue
        with pytest.raises(ChainRejected, match="part 1: "):
            one.verified()


def test_a_part_that_replaces_other_values_than_it_says_is_rejected(tmp_path):
    """A part with a later write says what it replaces: after an exchange, the other value."""
    text = log(*overlapping("[:w x 1]", "[:w x 2]")) + FILLERS
    (one,) = each_read(tmp_path, text, ("[:w x 3]",), "ser")
    first, *others = live(one.folder)
    with_parts(one.folder, [exchanged(first), *others])
    with pytest.raises(
        ChainRejected, match="the values that the part replaces differ from those that it states"
    ):
        one.verified(by_definition=False)


def test_an_exchange_of_a_killed_watch_is_made_again(tmp_path, monkeypatch):
    """Its last state is older than the exchange; the watch goes on from there."""
    monkeypatch.setattr("isolang.watch.parts._SAVE_EACH", 1)
    text = log(*overlapping("[:w x 1]", "[:w x 2]")) + FILLERS
    exchanged = 0
    for value in (1, 2):
        folder = tmp_path / str(value)
        folder.mkdir()
        path = folder / "log.edn"
        path.write_text(text + lines(f"8 [:r x {value}]"))
        for killed in (True, False):
            stream = Stream([path], follow=False, batch=400, resume=position_in(folder / "state"))
            watch = Watch("ser", stream=stream, folder=folder / "state", round=2)
            with pytest.MonkeyPatch.context() as patched:
                if killed:
                    exchange = Exchanges.apply

                    def torn(*given: object, kept=exchange) -> int:
                        raise KeyboardInterrupt(kept(*given))

                    patched.setattr(Exchanges, "apply", torn)
                try:
                    rounds = [found for batch in stream for found in watch.feed(batch)]
                except KeyboardInterrupt:
                    exchanged += 1
                    continue
                finally:
                    watch.close()
                    stream.close()
            assert watch.report.outcome == "valid"
            assert verify_chain(folder / "state", Stream([path], follow=False)) == 15
            if killed:
                break
        assert rounds[-1].outcome == "valid"
    assert exchanged == 1


def blind(transactions: int, *, lists: bool = False):
    """A history whose writes are mostly blind, over many keys: the shape of the measurements."""
    return generate(
        Workload(
            rule="strict-serializable", transactions=transactions, sessions=16, keys=20_000, seed=9,
            lists=lists,
        )
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("lists", [False, True])
def test_blind_writes_of_many_keys_put_no_cut_back(tmp_path, lists):
    """No round puts a cut back, so that a round costs the same however long the watch runs."""
    path = tmp_path / "log.edn"
    save_history(blind(15_000, lists=lists), path, format="edn")
    stream = Stream([path], follow=False)
    watch = Watch("ser", stream=stream, folder=tmp_path / "state")
    rounds = [found for batch in stream for found in watch.feed(batch)]
    assert watch.report.outcome == "valid"
    assert sum(found.put_back for found in rounds) == 0
    assert sum(found.exchanged for found in rounds) >= 2
    assert max(found.judged for found in rounds) < 5000
    assert verify_chain(tmp_path / "state", Stream([path], follow=False)) == 15_000


def contents(part: Part) -> list[object]:
    """The columns of a part, as lists and bytes."""
    columns = unpack_columns(part, "here")
    found = [getattr(columns, name) for name in columns.__struct_fields__]
    return [one if isinstance(one, bytes) else one.tolist() for one in found]


@pytest.mark.slow
@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("abort_rate", quick_first([0.0, 0.1], rest="campaign"))
def test_parts_that_are_not_in_memory_are_exchanged_alike(tmp_path, monkeypatch, lists, abort_rate):
    """The chain has the same parts, however many are in memory, and whether they were written."""
    path = tmp_path / "log.edn"
    history = generate(
        Workload(
            rule="strict-serializable", transactions=1500, sessions=8, keys=250, seed=5,
            abort_rate=abort_rate, lists=lists,
        )
    )  # fmt: skip
    save_history(history, path, format="edn")
    variants = {
        "all in memory": {"exchange._RECENT": 1000},
        "one in memory": {"exchange._RECENT": 1},
        "few in memory": {"exchange._RECENT_OPERATIONS": 600},
        "all in memory, written": {"parts._SAVE_EACH": 1, "exchange._RECENT": 1000},
        "one in memory, all written": {"parts._SAVE_EACH": 1, "exchange._RECENT": 1},
    }
    found = {}
    read_again = least = 0  # `least`: searches for proofs of a violation read the log, too
    rows_at = Log.rows_at

    def counted(*args):
        nonlocal read_again
        read_again += 1
        return rows_at(*args)

    monkeypatch.setattr(Log, "rows_at", counted)
    for name, limits in variants.items():
        folder, read_again = tmp_path / name, 0
        with pytest.MonkeyPatch.context() as patched:
            for where, limit in limits.items():
                patched.setattr(f"isolang.watch.{where}", limit)
            stream = Stream([path], follow=False, batch=8000)
            watch = Watch("ser", stream=stream, folder=folder / "state", round=25)
            rounds = [one for batch in stream for one in watch.feed(batch)]
        assert watch.report.outcome == "valid"
        least = read_again if name == "all in memory" else least
        assert (read_again > least) == (not name.startswith("all"))
        proved = verify_chain(folder / "state", Stream([path], follow=False))
        exchanged = sum(one.exchanged for one in rounds)
        assert exchanged > 5
        parts = [
            (part.transactions, part.abandoned, part.begin, part.seen, contents(part))
            for part in live(folder)
        ]
        found[name] = repr((proved, exchanged, parts))
    assert set(found.values()) == {found["all in memory"]}


@pytest.mark.slow
def test_what_was_put_back_is_cut_into_parts_of_the_usual_size_again(tmp_path, monkeypatch):
    """Without exchanges, parts that come back do not become one part that only grows."""
    monkeypatch.setattr(Exchanges, "unexplained", lambda *_: {})
    path = tmp_path / "log.edn"
    save_history(blind(15_000), path, format="edn")
    stream = Stream([path], follow=False)
    watch = Watch("ser", stream=stream, folder=tmp_path / "state")
    rounds = [found for batch in stream for found in watch.feed(batch)]
    assert sum(found.put_back for found in rounds) > 0
    assert watch.report.outcome == "valid"
    assert max(part.transactions for part in live(tmp_path)) < 3500
    assert verify_chain(tmp_path / "state", Stream([path], follow=False)) == 15_000
