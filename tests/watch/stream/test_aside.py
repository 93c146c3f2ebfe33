"""A transaction that was set aside is in no batch until it ends; all else stays as it was."""

import random
from pathlib import Path

import pytest
from support.streams import log_of
from support.watching import lines

from isolang.errors import UnsupportedError
from isolang.watch import Watch, verify_chain
from isolang.watch.stream import Stream, transactions

from .test_merge import log, write

INVOKED = "{:type :invoke, :process 9, :f :txn, :value [[:w x 1] [:r z nil]]}\n"


def finished(
    sources: list[Path],
    *,
    rng: random.Random | None = None,
    share: float = 0.0,
    **options: object,
) -> tuple[list[object], int]:
    """The finished transactions of a stream with their places, and how many were set aside.

    Args:
        sources: the logs.
        rng: draws when the stream is closed and resumed; never without it.
        share: the share of transactions in flight that each batch sets aside.
        options: the options of the stream.
    """
    stream = Stream(sources, follow=False, **options)
    found, count, resumed = [], 0, False
    out: set[tuple[int, int]] = set()
    while not stream.ended:
        batch = stream.next(0)
        assert resumed or not batch.late.any()
        told = transactions(batch.history)
        for place, one, flying in zip(batch.places, told, batch.in_flight.tolist(), strict=True):
            at = place.file, place.offset
            if not flying:
                found.append((place, one))
            elif rng is not None and rng.random() < share:
                stream.set_aside({at})
                count += at not in out
                out.add(at)
        if rng is not None and rng.random() < 0.2:
            position = stream.position()
            stream.close()
            resumed = True
            stream = Stream(sources, follow=False, resume=position, **options)
    return sorted(found, key=lambda one: one[0]), count


@pytest.mark.slow
def test_finished_transactions_are_the_same(tmp_path):
    """In one log or one for each client, whatever was set aside and wherever the stream resumed."""
    count = 0
    for seed in range(16):
        path = tmp_path / f"{seed}.edn"
        path.write_bytes(log_of(seed)[0])
        expected, _ = finished([path], batch=200)
        share = 0.5 * (seed % 3 > 0)
        found, some = finished([path], batch=200, rng=random.Random(seed), share=share)
        assert found == expected
        folder = tmp_path / str(seed)
        folder.mkdir()
        write(folder, log(seed))
        expected, _ = finished([folder], batch=400, clock="time")
        found, more = finished(
            [folder], batch=400, clock="time", rng=random.Random(seed), share=share
        )
        assert found == expected
        count += some + more
    assert count > 100


def test_a_watch_sets_aside_what_it_gave_up(tmp_path):
    """Batches do not grow with the clients that have crashed; the ends that come late are seen."""
    crashes, ends = "", ""
    for i in range(60):
        one = f":process {i + 9}, :f :txn, :value [[:w x{i} 1]]}}\n"
        crashes += f"{{:type :invoke, {one}" + lines("0 [:w y 1]", "1 [:r y 1]")
        ends += f"{{:type :ok, {one}" if i % 10 == 0 else ""
    path = tmp_path / "log.edn"
    path.write_text(crashes + ends)
    stream = Stream([path], follow=False, batch=300)
    watch = Watch("sser", stream=stream, folder=tmp_path / "state", round=2, grace=3)
    flying = []
    for batch in stream:
        flying.append(int(batch.in_flight.sum()))
        list(watch.feed(batch))
    assert max(flying) < 20
    assert watch.report.outcome == "valid"
    assert watch.report.seen == 180
    assert verify_chain(tmp_path / "state", Stream([path], follow=False, batch=300)) == 180


def test_a_process_has_one_operation_at_a_time(tmp_path):
    """One that begins while the process has one that was set aside is refused as before."""
    path = tmp_path / "log.edn"
    path.write_text(INVOKED + lines("0 [:w y 1]") + INVOKED)
    stream = Stream([path], follow=False, batch=100)
    batch = stream.next(0)
    stream.set_aside({(0, 0)})
    assert batch.in_flight.any()
    with pytest.raises(UnsupportedError, match="process 9 invokes an operation while another one"):
        list(stream)
