"""Forges chains of watches, and returns what each of the three checkers says of a chain."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import msgspec
import numpy as np
from msgspec.structs import replace

from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.errors import HistoryError
from isolang.watch import Stream, check_chain
from isolang.watch.chain import NAME, Back, Part, PartColumns, read_chain, read_live_chain
from isolang.watch.chain import unpack_columns as unpacked

ACCEPTED, REJECTED, UNDECIDED = "accepted", "rejected", "not certified"


def answers(folder: Path, path: Path) -> dict[str, str]:
    """Return the answers of the native checker, the checker by definition, and the kernel.

    Each of them judges the witnesses of all parts alone.
    """
    alone = lambda: patch("isolang.watch.verify.reason_for_rejection", lambda *_: "")  # noqa: E731
    checkers: dict[str, tuple[dict[str, Any], Callable[[], Any]]] = {
        "native": ({}, nullcontext),
        "definition": ({"by_definition": True}, alone),
        "kernel": ({"by_kernel": "insists"}, alone),
    }
    found = {}
    for name, (options, context) in checkers.items():
        stream = Stream([path], follow=False)
        try:
            with context():
                check_chain(folder, stream, **options)
            found[name] = ACCEPTED
        except NotCertifiedError:
            found[name] = UNDECIDED
        except (CertificateRejected, HistoryError):
            found[name] = REJECTED
        finally:
            stream.close()
    return found


def compare_answers(
    rng: random.Random, folder: Path, path: Path, counts: Counter[str], forgeries: int = 3
) -> None:
    """Check that the three checkers agree on the chain of a valid watch, and on forged copies.

    The kernel may leave a chain undecided. No checker may accept a chain that lacks a part with a
    committed transaction.
    """
    found = answers(folder, path)
    assert found["native"] == found["definition"] == ACCEPTED, found
    assert found["kernel"] in (ACCEPTED, UNDECIDED), found
    counts[f"kernel: {found['kernel']}"] += 1
    for number in range(forgeries):
        forged = folder.with_name(f"{folder.name} forged {number}")
        shutil.copytree(folder, forged)
        if kind := forge(rng, forged):
            found = answers(forged, path)
            assert found["native"] == found["definition"], (kind, found)
            assert found["kernel"] in (found["native"], UNDECIDED), (kind, found)
            assert kind != "drop" or found["native"] == REJECTED
            counts[f"forged {kind}: {found['native']}"] += 1
            counts[f"forged, kernel: {found['kernel']}"] += 1
        shutil.rmtree(forged)


def forge(rng: random.Random, folder: Path) -> str:
    """Forge one part of a chain, with all hashes right again. Return how it was forged.

    The result is empty if the chain has no part that could be forged in the way that was chosen.
    """
    path = folder / NAME
    lines = path.read_bytes().splitlines(keepends=True)
    entries = list(read_chain(path))
    at = {sum(map(len, lines[:i])): i for i in range(len(lines))}
    live = [at[start] for start in read_live_chain(path).starts]
    kind = rng.choice([*_FORGERIES, "drop", "abandon"])
    rng.shuffle(live)
    changed: dict[int, Part | None] = {}
    for place in live:
        part = entries[place]
        assert isinstance(part, Part)
        columns = unpacked(part, "the part")
        if kind == "drop":
            if (columns.members[:, 4] >= 0).any():
                changed = {place: None}
        elif kind == "abandon":
            later = [entries[i] for i in live if i > place]
            members = [
                one
                for part_of in later
                if isinstance(part_of, Part)
                for one in unpacked(part_of, "a later part").members
            ]
            if members:
                one = rng.choice(members)
                aside = np.vstack([columns.aside, one])
                changed = {place: replace(part, columns=replace(columns, aside=aside).packed())}
        elif (forged := _FORGERIES[kind](rng, columns)) is not None:
            changed = {place: replace(part, columns=forged.packed())}
        if changed:
            break
    if not changed:
        return ""
    renamed: dict[str, str] = {}
    previous, written = "", b""
    for i, entry in enumerate(entries):
        one = changed.get(i, entry)
        own = hashlib.sha256(lines[i]).hexdigest()
        if one is None:
            renamed[own] = previous  # whoever goes back to this part goes back to the one before
            continue
        one = replace(one, previous=previous)
        if isinstance(one, Back):
            one = replace(one, to=renamed[one.to])
        line = msgspec.json.encode(one) + b"\n"
        written += line
        previous = renamed[own] = hashlib.sha256(line).hexdigest()
    path.write_bytes(written)
    return kind


def _other_order(rng: random.Random, columns: PartColumns) -> PartColumns | None:
    """Exchange two neighbours in the version order of a key."""
    start = columns.order_start
    places = [i for a, b in pairwise(start) for i in range(a, b - 1)]
    if not places:
        return None
    order, i = columns.order_txn.copy(), rng.choice(places)
    order[i], order[i + 1] = order[i + 1], order[i]
    return replace(columns, order_txn=order)


def _other_source(rng: random.Random, columns: PartColumns) -> PartColumns | None:
    """Let one read return its value from another transaction of the part, or from before it."""
    reads = np.flatnonzero(columns.source >= 0)
    if not len(reads):
        return None
    source, i = columns.source.copy(), rng.choice(reads.tolist())
    source[i] = rng.choice([n for n in range(len(columns.members) + 1) if n != source[i]])
    return replace(columns, source=source)


_FORGERIES: Final = {"order": _other_order, "source": _other_source}
