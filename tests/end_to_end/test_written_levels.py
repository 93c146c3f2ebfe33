"""Levels that users write, on histories of every kind: each is decided, and its proof accepted.

The levels of the library have been judged on millions of histories. Users combine checks in ways
that no level of the library does.
"""

from __future__ import annotations

import io
import random
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from oracle import users
from support.paths import DOCS, ROOT, TESTS
from support.sampling import quick_first

from isolang.api import check, load_history, load_spec
from isolang.cli.main import main
from isolang.errors import IsolangError
from isolang.history import History
from isolang.language.classify.route import Route, route
from isolang.solvers import engine
from isolang.solvers.registry import supported_pairs

LARGEST = 40  # transactions
SLICES = 3  # one of so many parts of the histories is judged with each change, all each week
EVERY = 40  # one of so many verdicts is compared with that by another encoding
ADYA = 'include "adya.iso"\n'


@pytest.mark.slow
@pytest.mark.parametrize("seed", quick_first([7_106, 7_107], rest="campaign"))
def test_random_levels(seed: int) -> None:
    """Tool, oracle and both checkers agree on random levels and histories."""
    rng = random.Random(seed)
    seen: Counter[str] = Counter()
    for _ in range(60):
        for pair in users.pairs(rng, users.random_level_text(rng), 3):
            assert not pair.wrong, str(users.smaller(pair))
            seen[pair.what] += 1
    assert seen["reachability, invalid"] > 5, seen
    assert seen["event graph, invalid"] > 5, seen


def test_one_failure_leaves_the_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An internal error on one file of a folder is the result of this file alone."""
    regressions = TESTS / "regressions"
    for name in ("blind-lost-update", "write-skew-of-lists", "write-skew-of-registers"):
        (tmp_path / f"{name}.edn").write_bytes((regressions / f"{name}.edn").read_bytes())
    solve, failures = engine.solve, iter((RuntimeError("an optional: no value"),))

    def fails_once(*arguments: Any, **options: Any) -> Any:
        for failure in failures:
            raise failure
        return solve(*arguments, **options)

    monkeypatch.setattr(engine, "solve", fails_once)
    spec = str(regressions / "lost-update-alone.iso")
    assert main(["check", "--brief", "--spec", spec, str(tmp_path)]) == 3
    report = capsys.readouterr()
    assert re.findall(r"^(VALID|INVALID|UNKNOWN) +\S*/(\S+)\.edn", report.out, re.M) == [
        ("UNKNOWN", "blind-lost-update"),
        ("VALID", "write-skew-of-lists"),
        ("VALID", "write-skew-of-registers"),
    ]
    assert "an optional: no value" in report.out + report.err


def test_a_repeated_version_order_is_certified() -> None:
    """The checkers read ``ww[x]^+`` as ``ww[x]``, because a key's versions have a total order."""
    level = load_spec(f"{ADYA}acyclic for x: rw[x] | ww[x]^+ as c\n")
    for name in ("blind-lost-update", "write-skew-of-lists"):
        verdict = check(load_history(TESTS / f"regressions/{name}.edn"), level)
        assert (verdict.outcome, verdict.certified) == ("invalid", True)


def _written() -> Iterator[tuple[str, str | Path]]:
    """Yield each specification in the documentation, the examples and the tests' data."""
    for page in sorted(DOCS.glob("*.md")):
        blocks = re.findall(r"^```\w*\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
        for number, block in enumerate(blocks):
            if re.search(r"^(?:not )?(?:acyclic|irreflexive|require|empty) ", block, re.M):
                included = "include" in block or "exists" in block
                yield f"{page.name} {number}", block if included else f"{ADYA}{block}"
    for folder in ("examples", "tests"):
        for path in sorted((ROOT / folder).rglob("*.iso")):
            yield str(path.relative_to(ROOT)), path


def _levels() -> Iterator[tuple[str, Route]]:
    for name, spec in _written():
        with suppress(IsolangError):  # a fragment, or an example of a mistake
            yield name, route(load_spec(spec))


def _histories() -> Iterator[tuple[str, History]]:
    """Yield each small history in the documentation, the examples and the tests' data."""
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for number, block in enumerate(re.findall(r"^```edn\n(.*?)^```", text, re.M | re.S)):
            try:
                yield f"{page.name} {number}", load_history(io.BytesIO(block.encode()), "edn")
            except IsolangError:  # an extract
                continue
    for folder in ("docs", "examples", "tests"):
        for path in sorted((ROOT / folder).rglob("*.edn")):
            if path.stat().st_size > 20_000:
                continue
            try:
                history = load_history(path)
            except IsolangError:  # what a reader refuses
                continue
            if history.counts()["transactions"] <= LARGEST:
                yield str(path.relative_to(ROOT)), history


@pytest.mark.slow
@pytest.mark.parametrize("part", quick_first(range(SLICES), rest="campaign"))
def test_every_level_on_every_history(part: int) -> None:
    """No verdict is unknown because of an error of the tool, and no certificate is rejected."""
    levels, histories = list(_levels()), list(_histories())
    assert len(levels) > 40
    assert len(histories) > 100
    wrong: list[str] = []
    seen: Counter[str] = Counter()
    for level, way in levels:
        pairs = [] if way.kind == "relational" else list(supported_pairs(way))
        for name, history in histories[part::SLICES]:
            pair = f"{level} on {name}"
            try:
                verdict = check(history, way, timeout=1, simplest=False)
            except IsolangError:  # for example, a level of labels, and a history without any
                seen["refused"] += 1
                continue
            seen[verdict.outcome] += 1
            if verdict.outcome == "unknown":
                if verdict.cause in ("crash", "certificate rejected", "disagreement"):
                    wrong.append(f"{pair}: {verdict.reason}")
            elif "rejected" in (verdict.certified_reason or ""):
                wrong.append(f"{pair}: {verdict.certified_reason}")
            elif (
                pairs
                and seen[verdict.outcome] % EVERY == 0
                and history.counts()["transactions"] <= 10
            ):
                encoding, solver = pairs[seen[verdict.outcome] // EVERY % len(pairs)]
                other = check(history, way, timeout=5, encoding=encoding, solver=solver)
                seen[f"by another encoding {other.outcome}"] += 1
                if other.outcome not in (verdict.outcome, "unknown"):
                    wrong.append(f"{pair}: {verdict.outcome}, by {encoding} {other.outcome}")
    assert not wrong, "\n".join(wrong[:20])
    assert min(seen["valid"], seen["invalid"]) > 1_000 / SLICES, seen
    assert min(seen[f"by another encoding {v}"] for v in ("valid", "invalid")) > 2, seen
