"""The pictures of the report in ``docs/images``, made from real histories.

``python benchmarks/screenshots.py`` needs Chromium, and the recorded histories that
``ISOLANG_CORPORA`` names for those that are no examples; it says what it leaves out.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.pages import browser
from support.paths import CORPORA, ROOT

import isolang
from isolang.levels import levels_of
from isolang.report import page

IMAGES = ROOT / "docs" / "images"
RECORDED = CORPORA / "recorded"

# Name, history, level, what is chosen, which view, and the colours.
PICTURES = (
    ("write-skew", ROOT / "examples/on-call.edn", "ser", "#e=0", "verdict", "light"),
    ("write-skew-dark", ROOT / "examples/on-call.edn", "ser", "#e=0", "verdict", "dark"),
    ("levels", ROOT / "examples/on-call.edn", "ser", "", "levels", "light"),
    ("long-fork", ROOT / "examples/long-fork.bincode", "si", "#e=1", "verdict", "light"),
    (
        "postgresql-serializable",
        RECORDED / "pg18.6-serializable-write-skew.edn.gz",
        "ser-nosession",
        "#e=1",
        "verdict",
        "light",
    ),
    ("mariadb-valid", RECORDED / "mariadb-10.11-rr.json", "pc", "", "verdict", "light"),
)


def main() -> int:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser() as running:
        for name, path, level, fragment, view, scheme in PICTURES:
            if not path.exists():
                print(f"{name}: left out, {path} is not here")
                continue
            history = isolang.load_history(path)
            verdict = isolang.check(history, level)
            levels = levels_of(history) if view == "levels" else None
            file = Path(folder, f"{name}.html")
            file.write_text(page(verdict, name=path.name, levels=levels), encoding="utf-8")
            tab = running.new_page(viewport={"width": 1360, "height": 800}, color_scheme=scheme)
            tab.goto(file.as_uri() + fragment)
            tab.wait_for_function("performance.getEntriesByName('drawn').length")
            tab.click(f"#tab-{view}")
            tab.wait_for_timeout(200)
            tab.screenshot(path=str(IMAGES / f"{name}.png"))
            tab.close()
            print(f"{name}: {verdict.outcome}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
