"""Measures how fast the page of a report opens and moves in a browser, by history size.

``python benchmarks/page.py`` prints a row for each size: the size of the page, the time until the
timeline is drawn, and the median and the longest time of a pan step. A pan step is the time from a
key press until the moved timeline is drawn. It is measured with the whole history in sight, and
with a part of it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.pages import browser

import isolang
from isolang.report import page
from isolang.simulator import Workload, generate

PAN = """async () => {
  const canvas = document.querySelector('canvas');
  const times = [];
  for (let i = 0; i < 40; i++) {
    const start = performance.now();
    canvas.dispatchEvent(new KeyboardEvent('keydown', { key: i % 2 ? 'ArrowLeft' : 'ArrowRight' }));
    await new Promise((done) => requestAnimationFrame(() => {
      canvas.getContext('2d').getImageData(0, 0, 1, 1); // waits for what was drawn
      done(null);
    }));
    times.push(performance.now() - start);
  }
  return times;
}"""
DRAWN = "performance.getEntriesByName('drawn')[0].startTime"


def main() -> int:
    parser = argparse.ArgumentParser(description="Time the report's page in a browser.")
    parser.add_argument("sizes", nargs="*", type=int, default=[1_000, 10_000, 100_000])
    options = parser.parse_args()
    print("| transactions | page, MB | drawn after, ms | pan, all: median, most | pan, zoomed |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, browser() as running:
        for size in options.sizes:
            history = generate(
                Workload(rule="serializable", transactions=size, sessions=50, keys=1000, seed=1)
            )
            file = Path(folder, f"{size}.html")
            file.write_text(page(isolang.check(history, "pl-1")), encoding="utf-8")
            tab = running.new_page(viewport={"width": 1600, "height": 900})
            tab.goto(file.as_uri())
            tab.wait_for_function("document.title !== 'isocheck'")
            tab.wait_for_timeout(200)
            drawn = tab.evaluate(DRAWN)
            every = tab.evaluate(PAN)
            tab.focus("canvas")
            for _ in range(8):
                tab.keyboard.press("+")
            near = tab.evaluate(PAN)
            tab.close()
            print(
                f"| {size:,} | {file.stat().st_size / 1e6:.1f} | {drawn:.0f} "
                f"| {statistics.median(every):.0f}, {max(every):.0f} "
                f"| {statistics.median(near):.0f}, {max(near):.0f} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
