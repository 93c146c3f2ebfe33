"""Logs of a recorder, whose threads write lines in another order than that of the events."""

from __future__ import annotations

import random

import pytest
from support.watching import random_history

from isolang.api import check, load_history
from isolang.history import save_history
from isolang.watch import Stream, Watch


def disordered(rng, text):
    """The same events with :index, in another order of lines; those of a process stay in theirs."""
    lines = [line for line in text.splitlines() if line.startswith("{")]
    made = []
    for i, line in enumerate(lines):
        rest = line[1:].split(", ")
        rest = [part for part in rest if not part.startswith((":index", ":time "))]
        made.append(f"{{:index {i}, {', '.join(rest)}")
    process = [line.split(":process ")[1].split(",")[0] for line in made]
    # The first line is the recorder's mark; each later one may be late.
    late = [i if not i else i + rng.choice((0, 0, 3, 12)) * rng.random() for i in range(len(made))]
    last = {}
    for i, name in enumerate(process):
        late[i] = last[name] = max(late[i], last.get(name, -1.0))
    order = sorted(range(len(made)), key=lambda i: (late[i], i))
    return "".join(made[i] + "\n" for i in order)


@pytest.mark.slow
def test_lines_in_another_order_are_judged_in_that_of_index(tmp_path):
    """In pieces that end anywhere: the verdict is the whole file's, which :index puts in order."""
    outcomes = []
    for number in range(16):
        rng = random.Random(f"recorded {number}")
        path = tmp_path / f"{number}.edn"
        save_history(random_history(rng), path, format="edn")
        path.write_text(disordered(rng, path.read_text()))
        level = rng.choice(("sser", "ser", "strong-si", "si"))
        whole = check(load_history(path), level, simplest=False, timeout=5)
        stream = Stream([path], follow=False, batch=rng.choice((300, 1000)))
        watch = Watch(level, stream=stream, folder=tmp_path / str(number), round=10, timeout=5)
        for batch in stream:
            assert batch.clock in {"index", "none"}
            assert not batch.late.any()
            list(watch.feed(batch))
        if {whole.outcome, watch.report.outcome} <= {"valid", "invalid"}:
            assert watch.report.outcome == whole.outcome, number
            outcomes.append(whole.outcome)
    assert {"valid", "invalid"} <= set(outcomes)
    assert len(outcomes) > 12
