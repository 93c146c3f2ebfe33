"""Takes the pictures of reports in ``docs/images`` from real histories.

``python benchmarks/screenshots.py`` needs Chromium. Pictures of recorded histories also need the
folder that ``ISOLANG_CORPORA`` names; without it, the program says which pictures it leaves out.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.pages import browser
from support.paths import CORPORA, ROOT

import isolang
from isolang.pipeline.levels import levels_of
from isolang.report import page
from isolang.report.figure import figure
from isolang.report.picture import save_picture

IMAGES = ROOT / "docs" / "images"
FIGURE = IMAGES / "write-skew.svg"
RECORDED = CORPORA / "recorded"

ON_CALL = ROOT / "examples/on-call.edn"
POSTGRESQL = RECORDED / "pg18.6-serializable-write-skew.edn.gz"
COBRA = CORPORA / "blindw-rw" / "ser-10000.bincode"

# The name of the picture, the history, the level, and the selected edge, counted from the end.
PICTURES = (
    ("levels", ON_CALL, "ser", "v=levels"),
    ("postgresql-serializable", POSTGRESQL, "ser-nosession", "e=-2"),
    ("ten-thousand", COBRA, "ser", "t=5000"),
)


def main() -> int:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser() as running:
        for name, path, level, chosen in PICTURES:
            if not path.exists():
                print(f"{name}: left out, {path} is not here")
                continue
            history = isolang.load_history(path)
            verdict = isolang.check(history, level)
            levels = levels_of(history) if chosen == "v=levels" else None
            file = Path(folder, f"{name}.html")
            file.write_text(page(verdict, name=path.name, levels=levels), encoding="utf-8")
            fragment = chosen
            if chosen.startswith("e=-"):
                cycles = [cycle for _, cycle in verdict.violation.cycles()]
                fragment = f"e={sum(len(cycle.edges) for cycle in cycles) + int(chosen[2:])}"
            tab = running.new_page(viewport={"width": 1360, "height": 820})
            tab.goto(f"{file.as_uri()}#{fragment}")
            tab.wait_for_function("performance.getEntriesByName('drawn').length")
            tab.wait_for_timeout(200)
            tab.screenshot(path=str(IMAGES / f"{name}.png"))
            tab.close()
            print(f"{name}: {verdict.outcome}")
        file = Path(folder, "si.html")
        subprocess.run(
            [sys.executable, "-m", "isolang.cli.main", "spec", "explain", "si", "--html", file],
            check=True,
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
        )
        tab = running.new_page(viewport={"width": 1180, "height": 1140})
        tab.goto(file.as_uri())
        tab.screenshot(path=str(IMAGES / "specification.png"))
        tab.close()
    save_picture(figure(isolang.check(isolang.load_history(ON_CALL), "ser")), FIGURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
