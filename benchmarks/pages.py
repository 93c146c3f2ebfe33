"""Opens pages of recorded anomalies in a browser, and compares their edges with certificates.

``python benchmarks/pages.py`` needs Chromium and the labelled histories that ``ISOLANG_CORPORA``
names. Each history is judged by the level of its label, and its page is opened. For an invalid
history, the figure is drawn too. The program prints and counts complaints of the browser, edges of
a page that are not in the certificate, and overlapping labels on a narrow, a medium and a wide
screen.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.labels import WIDTHS, open_drawn_page, overlapping_labels
from support.pages import browser
from support.paths import CORPORA

import isolang
from isolang.report import page
from isolang.report.figure import figure
from isolang.report.picture import svg
from isolang.verdict import Invalid

SHOWN = "EDGES.map((e) => [e.relation, e.from, e.to])"


def main() -> int:
    wrong = judged = invalid = 0
    with tempfile.TemporaryDirectory() as folder, browser() as running:
        tab = running.new_page()
        said: list[str] = []
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        for path, level, outcome in labelled():
            verdict = isolang.check(isolang.load_history(path), level)
            assert verdict.outcome == outcome, f"{path}: {verdict.outcome}"
            judged += 1
            file = Path(folder, "page.html")
            file.write_text(page(verdict, certificate="not saved"), encoding="utf-8")
            tab.goto(file.as_uri())
            tab.wait_for_function("performance.getEntriesByName('drawn').length")
            shown = {tuple(edge) for edge in tab.evaluate(SHOWN)}
            if isinstance(verdict, Invalid):
                invalid += 1
                if shown != edges_of_page(verdict):
                    said.append("the browser has other edges than the verdict")
                if more := shown - edges_of_certificate(verdict):
                    said.append(f"edges that the certificate has not: {sorted(more)}")
                svg(figure(verdict))
                for width in WIDTHS:
                    sized = open_drawn_page(running, file, width)
                    said += [
                        f"labels at {width} pixels: {pair}" for pair in overlapping_labels(sized)
                    ]
                    sized.close()
            elif shown:
                said.append("a valid history has edges")
            wrong += bool(said)
            for one in said:
                print(f"{path}: {one}")
            said.clear()
    print(f"{judged} histories, {invalid} of them invalid; {wrong} with something wrong")
    return wrong > 0


def edges_of_page(verdict: Invalid) -> set[tuple[str, int, int]]:
    """Return the edges of a violation's argument as (relation, transaction, transaction)."""
    cycles = [cycle for _, cycle in verdict.violation.cycles()]
    return {(edge.relation, *edge.ends) for cycle in cycles for edge in cycle.edges}


def edges_of_certificate(verdict: Invalid) -> set[tuple[str, int, int]]:
    """Return the edges of all cycles in a refutation, in the same form."""
    steps = getattr(verdict.refutation, "steps", ())
    return {(e.relation, e.a, e.b) for step in steps for e in getattr(step, "edges", ())}


def labelled() -> Iterator[tuple[Path, str, str]]:
    """Yield each labelled history with its level and its expected verdict."""
    with (CORPORA / "LABELS.tsv").open(encoding="utf-8") as rows:
        for row in csv.DictReader(rows, delimiter="\t"):
            if row["path"].startswith("anomalies/"):
                yield CORPORA / row["path"], row["level"], row["verdict"]


if __name__ == "__main__":
    sys.exit(main())
