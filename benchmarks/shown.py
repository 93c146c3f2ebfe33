"""Checks that everything printed and exported together with a verdict agrees with the verdict.

``campaign.py shown`` draws histories with any mixture of features, and some levels for each. For an
invalid history, the file with the smallest part is read with the options that it names. It must be
invalid with the same anomaly, and certified. Text, JSON, page, DOT and the other forms must be
written without an exception, and may mention only transactions of the counterexample. If a format
accepts a history, the history must get the same verdicts when it is read again.
"""

from __future__ import annotations

import io
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from oracle.before import Before
from oracle.generate import any_history
from oracle.generate_crossed import Crossed, crossed_history
from oracle.pipeline import to_tool

from isolang.api import check, load_history, load_spec
from isolang.errors import IsolangError
from isolang.history import History, write_history
from isolang.history.writers import WRITABLE
from isolang.language.classify.route import Route, route
from isolang.output.records import report_of
from isolang.output.text import text_of_report
from isolang.pipeline.exported import export_part
from isolang.pipeline.minimal import anomaly_of, minimise
from isolang.report import page
from isolang.report.forms import FORMS
from isolang.verdict import Invalid, Valid, Verdict

LEVELS: Final = (
    "ser", "si", "sser", "ra", "cc", "psi", "pl-1", "pl-2", "pl-2-99", "rc", "strong-si-nosession",
    "consistent-read", "wfr", "pl-3u", "update-atomic", "strong-partition-si",
    "postgresql-read-committed",
)  # fmt: skip

#: The number of levels for each history.
SOME: Final = 4


def drawn(seed: int, number: int) -> Crossed:
    """Return the history that a seed and a number determine.

    It has any mixture of features, or predicate reads, or only plain operations.
    """
    rng = random.Random(f"{seed} {number}")
    if number % 4 == 3:
        return Crossed(any_history(rng))  # more formats can express such histories
    wanted: tuple[set[str], ...] = (set(), {"predicates"}, {"unwritten initial"})
    return crossed_history(rng, wanted=frozenset(wanted[number % 4]))


class Shown:
    """Judges histories, and checks their printed and exported forms."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plans = {name: route(load_spec(name)) for name in LEVELS}
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    def look(self, seed: int, number: int) -> None:
        """Check one history."""
        crossed = drawn(seed, number)
        rng = random.Random(f"{seed} {number} levels")
        try:
            history = to_tool(crossed.history, crossed.initial, crossed.error)
        except IsolangError:
            self.counts["histories refused"] += 1
            return
        if isinstance(crossed.initial, Before) and crossed.initial.told:
            history = replace(history, options={"unwritten_initial": True})
        self.counts["histories"] += 1
        verdicts: dict[str, str] = {}
        for name in rng.sample(LEVELS, SOME):
            with suppress(IsolangError):
                verdict = check(history, self.plans[name], threads=1)
                verdicts[name] = str(verdict.outcome)
                self.counts[str(verdict.outcome)] += 1
                if isinstance(verdict, Valid | Invalid) and not verdict.certified:
                    self.counts[f"{verdict.outcome}, not certified"] += 1
                for problem in self._problems(verdict, self.plans[name]):
                    self.wrong.append(f"{seed} {number} {name}: {problem}")
        for problem in self._converted(history, verdicts, drop=number % 4 == 3):
            self.wrong.append(f"{seed} {number}: {problem}")

    def _problems(self, verdict: Verdict, plan: Route) -> Iterator[str]:
        report = report_of("history", "level", verdict)
        texts = {
            "text": text_of_report(replace(report, anomalies=())),  # they mention more transactions
            "JSON": msgspec.json.encode(report).decode(),
            **{name: form(verdict) for name, form in FORMS.items()},
        }
        page(verdict, name="history")
        if not isinstance(verdict, Invalid):
            return
        history = verdict.history
        shown = {one.name for one in verdict.violation.transactions} | {"T0"}
        every = {history.name_of(txn) for txn in range(history.t0)}
        for name in ("text", "dot", "mermaid"):
            more = {one for one in re.findall(r"\bT\d+\b", texts[name]) if one in every} - shown
            if more:
                yield f"{name} mentions {', '.join(sorted(more))}, which is not shown"
        part = minimise(verdict, plan)
        expected = anomaly_of(part, plan)
        self.counts["parts"] += 1
        if not expected:
            yield "the smallest part has no anomaly"
        try:
            found = export_part(part, plan)
        except IsolangError:
            self.counts["parts refused"] += 1
            return
        unwritten = "--unwritten-initial" in found.reading
        back = load_history(io.BytesIO(found.text), "edn", unwritten_initial=unwritten)
        again = check(back, plan, threads=1)
        self.counts["files"] += 1
        if not isinstance(again, Invalid) or again.certified < verdict.certified:
            yield f"the file of the smallest part is {again.outcome}"
        elif again.violation.anomaly != expected:
            yield f"the file has the anomaly {again.violation.anomaly}, not {expected}"

    def _converted(
        self, history: History, verdicts: dict[str, str], *, drop: bool
    ) -> Iterator[str]:
        for form in WRITABLE:
            path = self.folder / f"{self.counts['conversions']}-{form}"
            dropped = ["real-time"] if drop else []
            try:
                report = write_history(history, path, format=form, renumber=True, drop=dropped)
            except IsolangError:
                continue
            self.counts["conversions"] += 1
            self.counts[f"to {form}"] += 1
            declared = any("--initial 1" in note for note in report.notes)
            back = load_history(path, format=form, initial=1 if declared else None)
            for name, outcome in verdicts.items():
                try:
                    got = str(check(back, self.plans[name], threads=1).outcome)
                except IsolangError as error:
                    got = f"refused: {error}"
                    if drop:
                        continue
                if got != outcome and "unknown" not in (got, outcome):
                    yield f"{name} is {outcome}, but {got} in {form}"


def shown(seed: int, first: int, histories: int) -> tuple[dict[str, int], Sequence[str]]:
    """Check histories, and return what was checked how often, and a message for each problem."""
    with tempfile.TemporaryDirectory() as folder:
        looked = Shown(Path(folder))
        for number in range(first, first + histories):
            try:
                looked.look(seed, number)
            except Exception as error:
                looked.wrong.append(f"{seed} {number}: {type(error).__name__}: {error}")
    return dict(looked.counts), looked.wrong
