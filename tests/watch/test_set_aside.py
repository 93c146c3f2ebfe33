"""Operations that never end, kills and several logs: three checkers agree on each chain."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from support.chains import compare_answers
from support.kernel import build_kernel
from support.watching import LEVELS, random_history, split_by_client, watch_in_rounds, with_crashes

from isolang.api import check, load_history
from isolang.certify.kernel import VARIABLE
from isolang.history import save_history


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(build_kernel(tmp_path_factory.mktemp("kernel")))


def cross(rng: random.Random, folder: Path, counts: Counter[str]) -> None:
    """Watch a random log in which some operations never end, and check its chain, and forged ones.

    The log is one file or a file for each client, of registers or lists, with aborted and
    indeterminate transactions. The watch may be killed and resumed.
    """
    level = rng.choice(LEVELS)
    one = folder / "log.edn"
    save_history(random_history(rng), one, format="edn")
    text = with_crashes(rng, one.read_text())
    one.write_text(text)
    whole = check(load_history(one), level, simplest=False, timeout=3)
    path = one
    if rng.random() < 0.4:
        path = folder / "logs"
        split_by_client(text, path)
        counts["several logs"] += 1
    state = folder / "state"
    found = watch_in_rounds(rng, path, level, state, counts)
    counts[found.outcome] += 1
    if {whole.outcome, found.outcome} <= {"valid", "invalid"}:
        assert found.outcome == whole.outcome
        counts["compared"] += 1
    if found.outcome != "valid":
        return
    counts["parts"] += found.parts
    compare_answers(rng, state, path, counts)


@pytest.mark.slow
def test_three_checkers_agree(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict is that of the whole log, and no checker accepts what another refuses."""
    monkeypatch.setenv(VARIABLE, str(program))
    counts: Counter[str] = Counter()
    for number in range(8):
        folder = tmp_path / str(number)
        folder.mkdir()
        cross(random.Random(f"set aside {number}"), folder, counts)
    wanted = ("compared", "valid", "several logs", "gone on", "kernel: accepted")
    assert all(counts[kind] for kind in (*wanted, "forged, kernel: rejected")), counts
