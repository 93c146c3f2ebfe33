"""Watching: rounds, cuts, what is put back, and the chain that proves the whole."""

from __future__ import annotations

import base64
import json
import random
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest
from msgspec import structs
from support.watching import LEVELS, lines, random_history, watch_in_rounds

from isolang.api import check, load_history, load_spec
from isolang.errors import HistoryError, IsolangError, SpecError
from isolang.history import save_history
from isolang.simulator import Workload, generate
from isolang.watch import Stream, Watch, position_in, verify_chain
from isolang.watch.chain import NAME, Part, unpack_columns
from isolang.watch.state import read_saved_state


def log_of(folder: Path, text: str) -> Path:
    path = folder / "log.edn"
    path.write_text(text)
    return path


def watch_of(path: Path, level: str, folder: Path, *, size: int = 1) -> Watch:
    """Watch a file that is complete, in rounds of so many transactions."""
    stream = Stream([path], follow=False, batch=150)
    watch = Watch(level, stream=stream, folder=folder, round=size)
    for batch in stream:
        list(watch.feed(batch))
    stream.close()
    assert watch.report is not None
    return watch


@pytest.mark.slow
def test_the_verdict_is_that_of_the_whole(tmp_path):
    """Random streams in rounds of 3 to 50: one verdict, each chain verified, cuts put back."""
    counts: Counter[str] = Counter()
    for number in range(24):
        rng = random.Random(f"test {number}")
        level = rng.choice(LEVELS)
        path = tmp_path / f"{number}.edn"
        save_history(random_history(rng), path, format="edn")
        whole = check(load_history(path), level, simplest=False, timeout=2)
        found = watch_in_rounds(rng, path, level, tmp_path / str(number), counts)
        counts[found.outcome] += 1
        if {whole.outcome, found.outcome} <= {"valid", "invalid"}:
            assert found.outcome == whole.outcome, (number, level)
        if found.outcome == "valid":
            stream = Stream([path], follow=False)
            assert verify_chain(tmp_path / str(number), stream) > 0
        if found.outcome == "invalid":
            assert found.verdict.certified
            assert found.places
    assert min(counts["valid"], counts["invalid"], counts["cuts"]) >= 6, counts


STALE = lines("0 [:w x 1]", "1 [:w x 2]", "2 [:r x 2]", "3 [:w y 1]", "0 [:w z 1]", "4 [:r x 1]")


def test_a_stale_read_puts_a_cut_back(tmp_path):
    """What a cut forgot may still be read, where the level allows it; then the cut was a guess."""
    path = log_of(tmp_path, STALE)
    watch = watch_of(path, "ser", tmp_path / "state")
    assert watch.report.outcome == check(load_history(path), "ser").outcome == "valid"
    chain = (tmp_path / "state" / NAME).read_text()
    assert '"entry":"back"' in chain
    assert verify_chain(tmp_path / "state", Stream([path], follow=False)) == 6


def test_real_time_forbids_the_stale_read(tmp_path):
    """With real time the same log violates the level, and the certificate says so by itself."""
    path = log_of(tmp_path, STALE)
    report = watch_of(path, "sser", tmp_path / "state").report
    assert report.outcome == "invalid"
    assert report.verdict.certified
    assert report.verdict.history.counts()["committed"] <= 3
    assert all(place.startswith(str(path)) for place in report.places)


def test_the_chain_of_a_level_of_ones_own(tmp_path):
    """It is verified by the texts that it holds, whether or not the library has the name."""
    path = log_of(tmp_path, STALE)
    text = 'spec own\ninclude "adya.iso"\nacyclic so | wr | ww | rw as cyc\n'
    assert watch_of(path, load_spec(text), tmp_path / "state").report.outcome == "valid"
    assert verify_chain(tmp_path / "state", Stream([path], follow=False)) == 6


def test_a_stale_nil_after_a_cut(tmp_path):
    """The initial state of a window is what the last cut left: nil is not it."""
    given = lines("0 [:w x 1]", "1 [:r x 1]", "2 [:w y 1]", "3 [:w z 1]", "1 [:r x nil]")
    report = watch_of(log_of(tmp_path, given), "ser", tmp_path / "state").report
    assert report.outcome == "invalid"


@pytest.fixture(name="chain")
def _chain(tmp_path):
    workload = Workload(
        rule="strict-serializable", transactions=500, sessions=4, keys=10, info_rate=0.05, seed=5
    )
    path = tmp_path / "log.edn"
    save_history(generate(workload), path, format="edn")
    assert watch_of(path, "ser", tmp_path / "state", size=20).report.outcome == "valid"
    return path, tmp_path / "state"


def changed(text: bytes, at: int, rng: random.Random) -> bytes:
    """The same with one bit of one byte changed."""
    return text[:at] + bytes([text[at] ^ 1 << rng.randrange(8)]) + text[at + 1 :]


@pytest.mark.slow
def test_each_changed_byte_of_a_chain_is_refused(chain):
    """A chain with one byte changed proves nothing, wherever that is."""
    path, folder = chain
    text = (folder / NAME).read_bytes()
    rng = random.Random(1)
    last = range(text.rindex(b"\n", 0, -1) + 1, len(text))  # no hash is of the last line
    for at in [*(rng.randrange(len(text)) for _ in range(60)), *last]:
        (folder / NAME).write_bytes(
            text[:at] + bytes([text[at] ^ 1 << rng.randrange(8)]) + text[at + 1 :]
        )
        with pytest.raises(IsolangError):
            verify_chain(folder, Stream([path], follow=False))


@pytest.mark.slow
def test_each_changed_byte_of_the_log_is_refused(chain):
    """So is a log that is no longer the one that was judged."""
    path, folder = chain
    text = path.read_bytes()
    rng = random.Random(2)
    for _ in range(30):
        at = rng.randrange(len(text))
        path.write_bytes(changed(text, at, rng))
        with pytest.raises(IsolangError):
            verify_chain(folder, Stream([path], follow=False))


def decoded(entry: dict[str, object]) -> Part:
    return msgspec.json.decode(json.dumps(entry), type=Part)


def rechained(entries: list[dict[str, object]]) -> bytes:
    """A chain of entries, each with the hash of the line before."""
    import hashlib

    previous, text = "", b""
    for entry in entries:
        line = json.dumps({**entry, "previous": previous}).encode() + b"\n"
        text, previous = text + line, hashlib.sha256(line).hexdigest()
    return text


@pytest.mark.slow
def test_forged_chains_are_refused(chain):
    """With right hashes: parts swapped, left out, or twice; another source, order, value."""
    path, folder = chain
    entries = [json.loads(line) for line in (folder / NAME).read_text().splitlines()]
    parts = [i for i, entry in enumerate(entries) if entry["entry"] == "part"]
    assert len(parts) > 2
    assert all(entry["entry"] != "back" for entry in entries)
    a, b = parts[0], parts[1]
    swapped = list(entries)
    swapped[a], swapped[b] = swapped[b], swapped[a]
    forged = [swapped, entries[:a] + entries[b:], entries[: b + 1] + entries[b:]]
    was = unpack_columns(decoded(entries[b]), "a part")
    read = int(np.flatnonzero(was.source >= 0)[0])
    other = was.source.copy()
    other[read] = (other[read] + 1) % len(was.members)
    place = was.members.copy()
    place[0, 2] += 1
    for change in (
        {"members": was.members[:-1]},
        {"members": place},
        {"members": was.members[::-1]},
        {"order_txn": was.order_txn[:-1]},
        {"source": other},
        {"before": was.before[:-1]},
        {"before": b""},
    ):
        columns = base64.b64encode(structs.replace(was, **change).packed()).decode()
        part = {**entries[b], "columns": columns}
        forged.append([*entries[:b], part, *entries[b + 1 :]])
    refused = 0
    for number, made in enumerate(forged):
        (folder / NAME).write_bytes(rechained(made))
        with pytest.raises(IsolangError):
            verify_chain(folder, Stream([path], follow=False))
        refused = number + 1
    assert refused == len(forged)
    (folder / NAME).write_bytes(rechained(entries))
    assert verify_chain(folder, Stream([path], follow=False)) > 0


@pytest.mark.parametrize("level", ["ryw", "per-key-causal", "pl-2l", "consistent-read"])
def test_levels_that_have_no_cuts_are_refused(tmp_path, level):
    """Before anything is read, with the reason."""
    path = log_of(tmp_path, STALE)
    stream = Stream([path], follow=False)
    with pytest.raises(SpecError, match="cannot be watched"):
        Watch(level, stream=stream, folder=tmp_path / "state")


def test_what_cannot_be_watched_is_refused(tmp_path):
    """Lists and single values of one key are refused, not misjudged; before or after a cut."""
    given_at = ((("0 [:append x 1] [:w x 2]",), 1), ((*LISTS, "0 [:w x 2]"), 11))
    for number, (given, line) in enumerate(given_at):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = log_of(folder, lines(*given))
        with pytest.raises(HistoryError, match=f"edn:{line}: key x: used as a list and as a"):
            watch_of(path, "ser", folder / "state")


LISTS = ("0 [:append x 1]", "1 [:append x 2]", "2 [:r x [1 2]]", "0 [:w y 1]", "1 [:r y 1]")


@pytest.mark.slow
def test_a_wrong_old_element_of_a_list_is_found(tmp_path):
    """A cut leaves of a list its length and a hash: what was first in it is still known."""
    right = lines(*LISTS, "2 [:w y 2]", "3 [:r x [1 2]]", "1 [:append x 3]", "3 [:r x [1 2 3]]")
    assert watch_of(log_of(tmp_path, right), "ser", tmp_path / "right").report.outcome == "valid"
    stream = Stream([tmp_path / "log.edn"], follow=False)
    assert verify_chain(tmp_path / "right", stream, by_definition=True) == 9
    for number, wrong in enumerate(("[2 1]", "[7 2]", "[1]", "[1 2 2]", "[2]", "nil")):
        path = log_of(tmp_path, lines(*LISTS, "2 [:w y 2]", f"3 [:r x {wrong}]"))
        watch = watch_of(path, "sser", tmp_path / str(number))
        assert watch.report.outcome == "invalid", wrong
        assert watch.report.verdict.certified


def test_memory_is_bounded(tmp_path):
    """A window of a stream without stale reads has a few rounds, however long that is."""
    made = generate(
        Workload(rule="strict-serializable", transactions=3000, sessions=6, keys=50, seed=1)
    )
    path = tmp_path / "log.edn"
    save_history(made, path, format="edn")
    stream = Stream([path], follow=False, batch=5000)
    watch = Watch("ser", stream=stream, folder=tmp_path / "state", round=100)
    kept = [found.kept for batch in stream for found in watch.feed(batch)]
    assert watch.report.outcome == "valid"
    assert max(kept) < 300


@pytest.mark.slow
def test_a_watch_that_was_killed_goes_on(tmp_path):
    """Wherever the chain was torn: the same verdict, what was written stays, the chain holds."""
    for number in range(2):
        rng = random.Random(f"killed {number}")
        level = rng.choice(("ser", "si", "sser"))
        path = tmp_path / f"{number}.edn"
        save_history(random_history(rng), path, format="edn")
        folder = tmp_path / str(number)
        expected = resumed(path, level, folder).report.outcome
        text = (folder / NAME).read_bytes()
        for _ in range(3):
            kept = text[: rng.randrange(text.rindex(b"\n", 0, -1))]
            (folder / NAME).write_bytes(kept)
            assert resumed(path, level, folder).report.outcome == expected
            again = (folder / NAME).read_bytes()
            assert again.startswith(kept[: kept.rfind(b"\n") + 1])
            if expected == "valid":
                assert verify_chain(folder, Stream([path], follow=False)) > 0


def resumed(path: Path, level: str, folder: Path, **options: object) -> Watch:
    """Watch a file, from where the chain ends."""
    position = position_in(folder)
    stream = Stream([path], follow=False, batch=400, resume=position)
    watch = Watch(level, stream=stream, folder=folder, round=15, **options)
    for batch in stream:
        list(watch.feed(batch))
    stream.close()
    return watch


@pytest.mark.slow
def test_a_chain_of_another_watch_is_not_gone_on_with(chain):
    """Another level, or a watch that has ended."""
    path, folder = chain
    with pytest.raises(HistoryError, match="has ended"):
        resumed(path, "ser", folder)
    text = (folder / NAME).read_bytes()
    (folder / NAME).write_bytes(text[: text.rindex(b"\n", 0, -1) + 1])
    for options, difference in (
        ({"level": "si"}, "got level SER, expected SI"),
        ({"sources": ["other.edn"]}, "got no log, expected other.edn"),
        ({"clock_error": 5}, "got clock_error 0, expected 5"),
        ({"initial_value": ("x=1",)}, r"got initial_value \(\), expected \('x=1',\)"),
    ):
        with pytest.raises(HistoryError, match=f"another watch .{difference}"):
            resumed(path, folder=folder, **{"level": "ser", **options})


def test_a_saved_state_does_not_hide_another_level(tmp_path, monkeypatch):
    """A killed watch that had saved its state goes on at its own level only."""
    monkeypatch.setattr("isolang.watch.parts._SAVE_AFTER", 0.0)
    path, folder = tmp_path / "log.edn", tmp_path / "state"
    path.write_text(lines(*(f"{i % 3} [:w x{i % 5} {i}]" for i in range(90))))
    resumed(path, "si", folder)
    text = (folder / NAME).read_bytes()
    (folder / NAME).write_bytes(text[: text.rindex(b"\n", 0, -1) + 1])  # killed before its end
    assert read_saved_state(folder).parts
    with pytest.raises(HistoryError, match="another watch"):
        resumed(path, "ser", folder)
    resumed(path, "si", folder)


@pytest.mark.slow
def test_what_is_in_flight_for_long_is_given_up(tmp_path):
    """One that was read from is cut like an unknown outcome; if it ends yet, it comes back."""
    begins = "{:type :invoke, :process 9, :f :txn, :value [[:w x 1] [:r z nil]]}\n"
    reads = lines("0 [:r x 1]")
    more = lines(*(f"{i % 3} [:w y {i}]" for i in range(90)))
    ends = "{:type :ok, :process 9, :f :txn, :value [[:w x 1] [:r z %s]]}\n"
    for number, (text, outcome, count) in enumerate(
        (
            (begins + reads + more, "valid", 92),
            (begins + reads + more + ends % "nil", "valid", 92),
            (begins + reads + more + ends % "nil" + lines("0 [:w q 1]"), "valid", 93),
            (begins + reads + more + ends % "7", "invalid", None),
            (begins + more + reads, "valid", 92),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = log_of(folder, text)
        watch = watch_of(path, "sser", folder / "state", size=2)
        assert watch.report.outcome == outcome == check(load_history(path), "sser").outcome
        chain = (folder / "state" / NAME).read_text()
        assert len(watch.chain) > 3 or '"entry":"back"' in chain
        if outcome == "valid":
            stream = Stream([path], follow=False)
            assert verify_chain(folder / "state", stream, by_definition=True) == count
            assert watch.report.seen == count


@pytest.mark.parametrize("kind", ["ok", "info", "fail"])
def test_what_ends_after_it_was_given_up_is_one_transaction(tmp_path, kind):
    """Its invocation and its completion count as one."""
    begins = "{:type :invoke, :process 9, :f :txn, :value [[:w x 1]]}\n"
    more = [lines(*(f"{i % 3} [:w {key} {i}]" for i in range(20))) for key in "yz"]
    text = begins + more[0] + begins.replace("invoke", kind) + more[1]
    path = log_of(tmp_path, text)
    assert watch_of(path, "ser", tmp_path / "state", size=1).report.seen == 41
    part = msgspec.json.decode((tmp_path / "state" / NAME).read_bytes().splitlines()[-2], type=Part)
    assert part.seen == 41


def test_it_goes_on_after_a_violation(tmp_path):
    """Each violation is counted, the first one reported; what follows is judged without it."""
    bad = ("0 [:w x {0}]", "1 [:r x {0}]", "2 [:r x nil]")
    text = "".join(lines(*(one.format(i) for one in bad)) for i in (1, 2, 3))
    path = log_of(tmp_path, text)
    stream = Stream([path], follow=False, batch=150)
    watch = Watch("sser", stream=stream, folder=tmp_path / "state", round=1, to_the_end=True)
    for batch in stream:
        list(watch.feed(batch))
    report = watch.report
    assert (report.outcome, report.seen, report.violations) == ("invalid", 9, 3)
    assert report.verdict.certified
    with pytest.raises(IsolangError):
        verify_chain(tmp_path / "state", Stream([path], follow=False))


@pytest.mark.slow
def test_only_what_convicts_is_explained(tmp_path, monkeypatch):
    """Many windows are invalid on the way; the simplest violation is looked for once at most."""
    from isolang.explain.smaller import Finder

    simplest, explained = Finder.simplest, []
    monkeypatch.setattr(
        Finder, "simplest", lambda self, steps: (explained.append(1), simplest(self, steps))[1]
    )
    suspected = 0
    for number in (4, 18, 28):
        rng = random.Random(f"killed {number}")
        level = rng.choice(("ser", "si", "sser"))
        path = tmp_path / f"{number}.edn"
        save_history(random_history(rng), path, format="edn")
        stream = Stream([path], follow=False, batch=400)
        watch = Watch(level, stream=stream, folder=tmp_path / str(number), round=15)
        rounds = [found for batch in stream for found in watch.feed(batch)]
        suspected += sum(found.put_back + (found.outcome == "suspected") for found in rounds)
        assert len(explained) == (watch.report.outcome == "invalid")
        explained.clear()
    assert suspected > 10


def test_a_window_that_takes_too_much_work_is_not_decided(tmp_path, monkeypatch):
    """One in the hard region ends as unknown, says why, and is seldom judged before."""
    monkeypatch.setattr("isolang.watch.judging._WORK", 3_000)
    monkeypatch.setattr("isolang.watch.judging._WORK_PER_OPERATION", 0)
    rng = random.Random("killed 7")
    rng.choice(("ser", "si", "sser"))
    path = tmp_path / "log.edn"
    save_history(random_history(rng), path, format="edn")
    stream = Stream([path], follow=False, batch=400)
    watch = Watch("ser", stream=stream, folder=tmp_path / "state", round=15)
    outcomes = [found.outcome for batch in stream for found in watch.feed(batch)]
    assert watch.report.outcome == "unknown" == outcomes[-1]
    assert "the work limit was reached" in watch.report.note
    assert "isocheck check" in watch.report.note
    assert len(outcomes) < 9  # with enough work: 11
