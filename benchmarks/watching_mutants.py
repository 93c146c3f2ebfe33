"""Changes logs, states and chains of a watch; each change must be rejected or have no effect.

python benchmarks/watching_mutants.py --mutants 10000 --kills 100

A mutant is one changed bit of the log, the chain, or the state from which a watch resumes. It may
also be a chain with correct hashes and changed content: parts that are swapped, left out or
duplicated, or another member, source, order or old value. Finally, it may be a log in which a list
read has another element, with a chain that has the hashes of this log. A kill sends SIGKILL to a
watch at a random moment, after which the watch is started again.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import itertools
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import structs

from isolang.errors import IsolangError
from isolang.history import save_history
from isolang.simulator import Workload, generate
from isolang.watch import Stream, Watch, position_in, verify_chain
from isolang.watch import parts as saving
from isolang.watch.chain import NAME, Part, unpack_columns
from isolang.watch.state import NAME as STATE


def made(folder: Path, *, lists: bool, transactions: int = 150) -> Path:
    """Write a log, watch it, and return the path of the log."""
    workload = Workload(
        rule="strict-serializable", transactions=transactions, sessions=4, keys=10, lists=lists,
        info_rate=0.05, seed=5,
    )  # fmt: skip
    path = folder / "log.edn"
    save_history(generate(workload), path, format="edn")
    return path


def watch(
    path: Path, folder: Path, size: int, *, batches: int | None = None, spilled: bool = False
) -> Watch:
    """Watch a log to its end, or for some batches; resume if a state was saved.

    Args:
        path: the log.
        folder: the folder of the watch.
        size: the number of transactions in a round.
        batches: the number of batches; ``None`` for all.
        spilled: whether the values that the cuts leave go to disk.
    """
    resume = position_in(folder)
    stream = Stream([path], follow=False, batch=2000, resume=resume)
    memory = 0 if spilled else 1 << 28
    watched = Watch("ser", stream=stream, folder=folder, round=size, memory=memory)
    try:
        for batch in itertools.islice(stream, batches):
            for _ in watched.feed(batch):
                pass
    finally:
        stream.close()
        watched.close()
    return watched


def rechained(entries: list[dict[str, Any]]) -> bytes:
    """Return the entries as a chain, each with the hash of the previous line."""
    previous, text = "", b""
    for entry in entries:
        line = json.dumps({**entry, "previous": previous}).encode() + b"\n"
        text, previous = text + line, hashlib.sha256(line).hexdigest()
    return text


def forge_entries(
    entries: list[dict[str, Any]], rng: random.Random
) -> tuple[str, list[dict[str, Any]]]:
    """Return a name for a change, and the entries with a changed part or another order of parts."""
    parts = [i for i, entry in enumerate(entries) if entry["entry"] == "part"]
    at = rng.choice(parts)
    how = rng.choice(("swap", "drop", "twice", "member", "place", "source", "order", "before"))
    if how == "swap":
        other = rng.choice([i for i in parts if i != at])
        made = list(entries)
        made[at], made[other] = made[other], made[at]
        return how, made
    if how == "drop":
        return how, entries[:at] + entries[at + 1 :]
    if how == "twice":
        return how, [*entries[: at + 1], *entries[at:]]
    was = unpack_columns(msgspec.json.decode(json.dumps(entries[at]), type=Part), "a part")
    change: dict[str, Any] = {}
    row = rng.randrange(len(was.members))
    if how == "member":
        change["members"] = np.delete(was.members, row, axis=0)
    elif how == "place":
        change["members"] = was.members.copy()
        change["members"][row, rng.choice((1, 2, 3, 4))] += rng.choice((-1, 1))
    elif how == "source":
        reads = np.flatnonzero(was.source >= 0)
        if not len(reads):
            return "none", entries
        change["source"] = was.source.copy()
        change["source"][rng.choice(reads.tolist())] += rng.choice((-1, 1))
    elif how == "order":
        if len(was.order_txn) < 2:
            return "none", entries
        change["order_txn"] = np.delete(was.order_txn, rng.randrange(len(was.order_txn)))
    else:
        if not was.before:
            return "none", entries
        place = rng.randrange(len(was.before))
        old = was.before
        change["before"] = (
            old[:place] + bytes([old[place] ^ 1 << rng.randrange(8)]) + old[place + 1 :]
        )
    columns = base64.b64encode(structs.replace(was, **change).packed()).decode()
    return how, [*entries[:at], {**entries[at], "columns": columns}, *entries[at + 1 :]]


def flip_bit(data: bytes, rng: random.Random) -> bytes:
    """Return the data with one random bit flipped."""
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def wrong_list(
    log: bytes, entries: list[dict[str, Any]], rng: random.Random
) -> tuple[bytes, bytes]:
    """Return the log with another element in a list read, and a chain with its hashes."""
    read = [
        (line.start(1) + at.start(), line.start(1) + at.end())
        for line in re.finditer(rb":type :ok,([^\n]*)", log)
        for shown in re.finditer(rb"\[:r \d+ \[([\d ]+)\]\]", line[1])
        for at in re.finditer(rb"\d+", line[1])
        if shown.start(1) <= at.start() < shown.end(1)
    ]
    start, end = rng.choice(read)
    same_size = (str(n).encode() for n in range(10 ** (end - start)))
    others = [n for n in same_size if len(n) == end - start and n != log[start:end]]
    changed = log[:start] + rng.choice(others) + log[end:]
    made_ = []
    for entry in entries:
        spans = [
            [file, first, last, hashlib.sha256(changed[first:last]).hexdigest()]
            for file, first, last, _ in entry.get("spans", ())
        ]
        made_.append({**entry, "spans": spans} if "spans" in entry else entry)
    return changed, rechained(made_)


def resume_from_mutant(path: Path, folder: Path, whole: list[bytes], rng: random.Random) -> str:
    """Resume from a state with a flipped bit, and return what happened."""
    state, chain = whole
    folder.mkdir(exist_ok=True)
    (folder / STATE).write_bytes(flip_bit(state, rng))
    (folder / NAME).write_bytes(chain)
    try:
        watched = watch(path, folder, 20, spilled=True)
    except IsolangError:
        return "refused"
    if watched.report is None or watched.report.outcome != "valid":
        return "ACCEPTED"
    try:
        verify_chain(folder, Stream([path], follow=False))
    except IsolangError:
        return "chain refused"  # a key on disk was changed, which is noticed only here
    return "goes on as before"


def mutate(count: int, seed: int, counts: Counter[str]) -> None:
    """Make mutants, and count the results."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        for lists in (False, True):
            folder = Path(name) / str(lists)
            folder.mkdir()
            path = made(folder, lists=lists)
            watch(path, folder / "half", 20, batches=path.stat().st_size // 4000, spilled=True)
            half = [(folder / "half" / file).read_bytes() for file in (STATE, NAME)]
            watch(path, folder / "state", 20)
            chain = folder / "state" / NAME
            log, text = path.read_bytes(), chain.read_bytes()
            entries = [json.loads(line) for line in text.splitlines()]
            for _ in range(count // 2):
                kind = rng.choice(("log", "chain", "forged", "state", "lists"))
                if kind == "state":
                    became = resume_from_mutant(path, folder / "again", half, rng)
                    counts[f"{kind}: {became}"] += 1
                    continue
                if kind == "lists":
                    if not lists:
                        continue
                    bad, rehashed = wrong_list(log, entries, rng)
                    path.write_bytes(bad)
                    chain.write_bytes(rehashed)
                elif kind == "forged":
                    how, made_ = forge_entries(entries, rng)
                    if how == "none":
                        continue
                    kind += f" {how}"
                    chain.write_bytes(rechained(made_))
                else:
                    whole = log if kind == "log" else text
                    (path if kind == "log" else chain).write_bytes(flip_bit(whole, rng))
                try:
                    verify_chain(folder / "state", Stream([path], follow=False))
                    counts[f"{kind}: ACCEPTED"] += 1
                    print("ACCEPTED", kind, flush=True)
                except IsolangError:
                    counts[f"{kind}: refused"] += 1
                path.write_bytes(log)
                chain.write_bytes(text)


def kill(count: int, seed: int, counts: Counter[str]) -> None:
    """Kill watches at random moments, resume them, and verify their chains."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = made(folder, lists=False, transactions=3000)
        left = count
        while left:
            state = folder / str(left)
            command = [sys.executable, "-m", "isolang.cli.main", "watch", str(path), "--spec",
                       "ser", "--until-idle", "0", "--round", "20",
                       "--state", str(state)]  # fmt: skip
            before = b""
            while left:
                child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                chain = state / NAME
                deadline = time.monotonic() + 60
                while child.poll() is None and time.monotonic() < deadline:
                    if chain.exists() and chain.stat().st_size > len(before):
                        break
                    time.sleep(0.005)
                time.sleep(rng.random() * 0.3)
                child.send_signal(signal.SIGKILL)
                child.wait()
                if not chain.exists():
                    if child.returncode != -signal.SIGKILL:
                        raise SystemExit(f"the watch failed (exit {child.returncode})")
                    continue
                now = chain.read_bytes()
                whole = before[: before.rfind(b"\n") + 1]
                counts["prefix kept" if now.startswith(whole) else "PREFIX LOST"] += 1
                before = now
                left -= 1
                if b'"entry":"end"' in now:
                    break
            if b'"entry":"end"' not in before:
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            verify_chain(state, Stream([path], follow=False))
            counts["chains verified"] += 1


def main() -> None:
    """Run the mutants and the kills."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    saving._SAVE_EACH = 20  # so that a state is saved after a few rounds
    mutate(given.mutants, given.seed, counts)
    kill(given.kills, given.seed, counts)
    for kind, count in sorted(counts.items()):
        print(f"{kind:40}{count:10,}")


if __name__ == "__main__":
    main()
