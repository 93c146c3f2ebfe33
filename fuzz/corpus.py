"""Makes the seeds of the fuzzers' corpus from the histories of the tests and a few certificates.

    python fuzz/corpus.py FOLDER   # needs the installed package and atheris

The program writes ``FOLDER/TARGET/NAME``, and ``fuzz/run --minimise`` keeps the files that add
coverage. The fuzzer of specifications needs no copies, because it reads the specifications of the
repository.
"""

from __future__ import annotations

import hashlib
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.fuzz_readers import COBRA, readers
from support.paths import HISTORIES, TESTS

from isolang import check

BETWEEN = b"\0\0\0\n"  # separates the files of one history, see fuzz/readers.cpp
PATTERNS = {
    "edn": ("*.edn", "*.json"),
    "registers": ("registers/*",),
    "bincode": ("*.bincode",),
    "plume": ("plume.txt", "isovista/*"),
    "awdit": ("awdit.txt",),
    "viper": ("viper*/*.log",),
    "dbcop_json": ("*.json",),
    "hist": ("*.hist",),
}
PROOFS = ("witness", "refutation", "both", "expression")


def seeds(target: str) -> list[bytes]:
    """Return the inputs for a target."""
    if target in PROOFS:  # longer inputs encode larger histories
        rng = random.Random(target)
        return [rng.randbytes(size) for size in (16, 64, 128, 256, 512, 1024, 2048)]
    if target == "certificate":
        from loaders import HISTORY

        levels = ("ser", "pl-2", "cc", "si-vis", "rc")
        verdicts = [check(HISTORY, level) for level in levels]
        return [v.certificate().to_json().encode() for v in verdicts]
    if target.startswith("cobra"):
        folders = sorted(HISTORIES.glob("cobra*"))
        found = [BETWEEN.join(p.read_bytes() for p in sorted(f.glob("*.log"))) for f in folders]
        return found + [BETWEEN.join(pair) for pair in COBRA]
    found = [p.read_bytes() for g in PATTERNS[target] for p in sorted(HISTORIES.rglob(g))]
    if target == "edn":
        for folder in (TESTS / "litmus", TESTS / "regressions"):
            found += [p.read_bytes() for p in sorted(folder.glob("*.edn"))]
    return found + [data for name, _, data in readers() if name.startswith(target)]


def main() -> None:
    """Write the seeds of all targets."""
    for target in (*PATTERNS, "cobra", "cobra_times", "certificate", *PROOFS):
        folder = Path(sys.argv[1]) / target
        folder.mkdir(parents=True, exist_ok=True)
        for seed in seeds(target):
            (folder / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)


if __name__ == "__main__":
    main()
