"""A folder with one file for each client is one log, in the order of their times."""

import random
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.sampling import quick_first
from support.streams import FEATURES, comparable_content, load_transactions, random_log, ranks

from isolang.watch.stream import Batch, Stream, transactions

TIMES = re.compile(r'"?:?time"?:? (\d+)')
MERGEABLE = sorted(set(FEATURES) - {"init", "comments", "index"})


def log(seed: int) -> list[tuple[int, int, str]]:
    """Lines in the order of their times: time, client, line."""
    rng = random.Random(seed)
    features = frozenset(f for f in MERGEABLE if rng.random() < 0.4)
    lines = random_log(seed, features=features, transactions=rng.randrange(5, 60))
    return [(int(TIMES.search(line)[1]), client, line) for client, line in lines]


def write(folder: Path, lines: list[tuple[int, int, str]]) -> None:
    for _, client, line in lines:
        with (folder / f"c{client}.log").open("a") as file:
            file.write(line + "\n")


def said(batches: list[Batch], *, at_the_end: bool) -> dict[object, list[object]]:
    """What a stream has said so far, by session: what is done, and what is in flight."""
    found = []
    for number, batch in enumerate(batches):
        last = number == len(batches) - 1
        for t, flying in zip(transactions(batch.history), batch.in_flight.tolist(), strict=True):
            if not flying or last:
                found.append(t if at_the_end or not flying else replace(t, group=None))
    return grouped(found)


def grouped(found: list[object]) -> dict[object, list[object]]:
    order = ranks(found)
    sessions: dict[object, list[object]] = {}
    for t in found:
        name = str(t.session).split("/")[-1]
        sessions.setdefault("own" if "@" in name else name, []).append(
            comparable_content(t, order)[1:]
        )
    return sessions


@pytest.mark.parametrize("seed", range(60))
def test_finished_files_are_one_log(seed, tmp_path):
    """The files of clients say together what one file of all lines says."""
    lines = log(seed)
    (tmp_path / "logs").mkdir()
    write(tmp_path / "logs", lines)
    one = tmp_path / "one.edn"
    one.write_text("".join(line + "\n" for *_, line in lines))
    stream = Stream([tmp_path / "logs"], follow=False, clock="time", batch=400)
    batches = list(stream)
    assert not any(batch.late.any() for batch in batches)
    assert batches[-1].ended
    assert said(batches, at_the_end=True) == grouped(load_transactions(one))


@pytest.mark.parametrize("seed", quick_first(range(40), 20, rest="campaign"))
def test_any_arrival_order_gives_prefixes(seed, tmp_path):
    """Whatever the lags of the clients, a batch is what one log would have up to its watermark."""
    lines = log(seed)
    rng = random.Random(seed)
    folder = tmp_path / "logs"
    folder.mkdir()
    left = {client: [line for line in lines if line[1] == client] for client in range(4)}
    for client in left:
        (folder / f"c{client}.log").touch()
    stream = Stream([folder], grace=None)
    batches = []
    checked = 0
    while any(left.values()):
        client = rng.choice([c for c in left if left[c]])
        count = rng.randrange(1, 8)
        write(folder, left[client][:count])
        del left[client][:count]
        batches.append(stream.next(0))
        watermark = batches[-1].watermark
        if rng.random() < 0.2:  # killed, and begun again
            position = stream.position()
            stream.next(0)
            stream.close()
            stream = Stream([folder], grace=None, resume=position)
        if watermark is not None and rng.random() < 0.3:
            prefix = [line for line in lines if line[0] < watermark]
            one = tmp_path / f"prefix{len(batches)}.edn"
            one.write_text("".join(line + "\n" for *_, line in prefix))
            expected = [
                replace(t, group=None) if t.status == "maybe" else t for t in load_transactions(one)
            ]
            got = said(batches, at_the_end=False)
            assert {k: sorted(v, key=repr) for k, v in got.items()} == {
                k: sorted(v, key=repr) for k, v in grouped(expected).items()
            }
            checked += 1
    stream.stop()
    while not stream.ended:
        batches.append(stream.next(0))
    assert not any(batch.late.any() for batch in batches)
    one = tmp_path / "one.edn"
    one.write_text("".join(line + "\n" for *_, line in lines))
    assert said(batches, at_the_end=True) == grouped(load_transactions(one))
