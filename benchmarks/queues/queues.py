"""Drives job queues through the proxy, as they are and with a planted second claim.

Without SKIP LOCKED and its lock, two workers take the same job. The script shows the verdicts, what
was not seen, and how often each write of a job is in the history (docs/observe.md).

    npm install --prefix FOLDER benchmarks/queues
    python benchmarks/queues/queues.py --modules FOLDER/node_modules --procrastinate PYTHON
"""

from __future__ import annotations

import argparse
import csv
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
HARMLESS = {"definitions", "catalogue", "decided", "unread", "temporary"}
# For each package: the file with its claim, and the table of its jobs.
PACKAGES = {
    "graphile-worker": ("dist/sql/getJobs.js", "graphile_worker._private_jobs"),
    "pg-boss": ("src/plans.js", "pgboss.job"),
}
WRITE = r"\[:(insert|w|delete) \[\"{}\" "


def prepared(package: str, modules: Path, folder: Path, *, planted: bool) -> list[str]:
    """Return the command that drives a queue, after copying what it needs to a folder."""
    packages = folder / "node_modules"
    packages.mkdir(parents=True)
    for module in modules.iterdir():
        if module.name != package:
            (packages / module.name).symlink_to(module.resolve())
    shutil.copytree(modules / package, packages / package)
    claim = packages / package / PACKAGES[package][0]
    text, number = re.subn(r"(?i)for update\s+skip locked", "", claim.read_text(encoding="utf-8"))
    assert number, f"{claim}: no claim"
    if planted:
        claim.write_text(text, encoding="utf-8")
    script = shutil.copy(HERE / f"{package.replace('-', '_')}.mjs", folder)
    shutil.copy(HERE / "package.json", folder)
    return ["node", str(script)]


def drive(name: str, command: list[str], table: str, folder: Path) -> None:
    """Run a command through the proxy, and print a paragraph on what was seen."""
    history, unseen = folder / "observed.edn", folder / "unseen.tsv"
    isocheck = [sys.executable, "-m", "isolang", "observe", "postgres"]
    options = ["--spec", "ser", "--into", str(history), "--unseen", str(unseen), "--", *command]
    done = subprocess.run([*isocheck, *options], capture_output=True, text=True, check=False)
    lines = (done.stdout + done.stderr).splitlines()
    results = [line.split("  ")[0] for line in lines if re.match("(IN)?VALID|UNKNOWN|jobs ", line)]
    counts: Counter[str] = Counter()
    with unseen.open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["kind"] not in HARMLESS:
                counts[row["what"]] += int(row["count"])
    writes: Counter[str] = Counter()
    for line in history.read_text(encoding="utf-8").splitlines():
        if ":type :ok" in line:
            writes.update(re.findall(WRITE.format(re.escape(table)), line.partition(":callers")[0]))
    print(f"{name}: {', '.join(results)}; writes {dict(writes)}; unseen {counts.total()}")
    for kind, number in counts.most_common():
        print(f"    {number} {kind}")


def main() -> None:
    """Drive the queues that are installed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", type=Path, help="a folder node_modules")
    parser.add_argument("--procrastinate", metavar="PYTHON", help="a Python that has procrastinate")
    arguments = parser.parse_args()
    for planted in (False, True):
        suffix = ", planted" * planted
        for package, (_, table) in PACKAGES.items() if arguments.modules else ():
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                command = prepared(package, arguments.modules, folder / "run", planted=planted)
                drive(package + suffix, command, table, folder)
        if arguments.procrastinate:
            script = str(HERE / "procrastinate_jobs.py")
            command = [arguments.procrastinate, script, *["planted"] * planted]
            with tempfile.TemporaryDirectory() as name:
                drive("procrastinate" + suffix, command, "procrastinate_jobs", Path(name))


if __name__ == "__main__":
    main()
