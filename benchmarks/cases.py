"""Defines the histories that the benchmark checks: real, simulated, and from the hard region."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

PARTS = ("corpora", "published", "simulated", "hidden", "mini", "weak", "hard")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One history and the levels to check.

    Attributes:
        part: the part of the suite to which the history belongs.
        name: the name in tables.
        levels: the levels to check, each by a separate command.
        form: the format of the history.
        path: the file; ``None`` if the history must be generated.
        options: the options for ``isocheck generate``, separated by blanks.
        changed: how many reads are changed after the history was generated.
        expected: the known verdicts by level; a different verdict is an error.
        shape: the properties of the history by name, which are columns of tables and plots.
    """

    part: str
    name: str
    levels: tuple[str, ...]
    form: str
    path: Path | None = None
    options: dict[str, Any] = field(default_factory=dict)
    changed: int = 0
    expected: dict[str, str] = field(default_factory=dict)
    shape: dict[str, Any] = field(default_factory=dict)

    def command(self) -> str:
        """Return the command that generates the history."""
        words = ["isocheck generate", f"{self.name.replace(' ', '-')}.{self.form}"]
        words.append(f"--to {self.form}")
        for name, value in self.options.items():
            option = "--" + name.replace("_", "-")
            if name == "bugs":
                words += [f"--bug '{bug}'" for bug in value]
                continue
            words.append(option if value is True else f"{option} {value}")
        return " ".join(words)

    def make(self, folder: Path) -> Path:
        """Return the file with the history; generate the history if the file does not exist."""
        if self.path is not None:
            return self.path

        from isolang.history import write_history
        from isolang.run.play.simulate import simulate
        from isolang.run.workloads import Shape
        from isolang.simulator import Workload, generate

        target = folder / f"{self.part}-{self.name.replace(' ', '-').replace('%', '')}.{self.form}"
        if target.exists():
            return target
        history: Any
        if "workload" in self.options:
            name, transactions, seed = (
                self.options[n] for n in ("workload", "transactions", "seed")
            )
            history = simulate(
                name,
                rule="strict-serializable",
                shape=Shape(),
                transactions=transactions,
                sessions=self.options["sessions"],
                seed=seed,
            )
        else:
            known = set(Workload.__struct_fields__)
            workload = Workload(**{name: x for name, x in self.options.items() if name in known})
            history = generate(workload)
            if self.changed:
                history = _changed(history, self.changed, workload.seed)
        half = target.with_suffix(".part")
        drop = () if self.form == "edn" else ("real-time",)
        write_history(history, half, format=self.form, drop=drop)
        half.rename(target)
        return target


_TRIES, _TRY_SECONDS = 12, 1.0


def _changed(history: Any, count: int, seed: int) -> Any:
    """Change reads of a history such that pruning alone does not refute the result.

    A changed history that still satisfies the level is not used either. The choice depends on how
    much pruning finds. Therefore, a comparison of two revisions must use the histories of one
    revision.
    """
    from hard_region import refuted_by_pruning

    from isolang import check, load_spec
    from isolang.problem import build_problem
    from isolang.simulator import change_reads

    spec = load_spec("ser")
    changed = None
    for attempt in range(_TRIES):
        changed = change_reads(history, count, seed=seed + 1000 * attempt)
        if refuted_by_pruning(build_problem(changed), "ser"):
            continue
        verdict = check(changed, spec, timeout=_TRY_SECONDS, certify=False)
        if verdict.outcome != "valid":
            break
    return changed


def corpora(folder: Path) -> Iterator[Case]:
    """Yield the larger histories that a folder lists in ``LABELS.tsv``.

    Its columns are the path, the format, the level, and the verdict.
    """
    with (folder / "LABELS.tsv").open(newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f, delimiter="\t"))
    for row in rows:
        path = folder / row["path"]
        size = sum(p.stat().st_size for p in path.rglob("*")) if path.is_dir() else 0
        size = size or (path.stat().st_size if path.is_file() else 0)
        # Small histories would measure only the start of the interpreter. Histories whose label is
        # about SER or SI are checked at both levels.
        if row["level"] not in ("ser", "si") or size < 500_000:
            continue
        expected = {row["level"]: row["verdict"]}
        if (row["level"], row["verdict"]) == ("ser", "valid"):
            expected["si"] = "valid"
        yield Case(
            part="corpora",
            name=row["path"].removesuffix(".bincode"),
            levels=("ser", "si"),
            form=row["format"],
            path=path,
            expected=expected,
        )


def anomalies(folder: Path) -> list[Path]:
    """Return the anomalous histories of the same folder, all of which are small."""
    with (folder / "LABELS.tsv").open(newline="", encoding="utf-8") as f:
        rows = [r for r in csv.DictReader(f, delimiter="\t") if r["path"].startswith("anomalies/")]
    return [folder / row["path"] for row in rows]


def published(folder: Path | None) -> Iterator[Case]:
    """Yield histories with shapes for which papers about checkers state times.

    The property ``published`` says what a paper states, with its table or figure. Some of the
    papers' own histories are in the corpora; the others are simulated.

    Args:
        folder: the folder with the corpora; ``None`` if it is not there.
    """
    if folder is not None:
        for name, form, verdict, stated in (
            ("anomalies/cobra/yuga-G2-a.cobra", "cobra", "invalid", "Cobra: 66.3 s"),
            ("blindw-rw/ser-10000.bincode", "dbcop", "valid", "Cobra: 14 s, with a GPU"),
        ):
            yield Case(
                part="published",
                name=name.removesuffix(".bincode"),
                levels=("ser",),
                form=form,
                path=folder / name,
                expected={"ser": verdict},
                shape={"published": stated},
            )
    for size, stated in (
        (10_000, "Vbox, Fig. 7: 0.31 s, 44 MB; Cobra there: 20 s"),
        (30_000, "Vbox, Fig. 7: Cobra 318 s"),
        (100_000, "Vbox, Fig. 7: 4.16 s, 417 MB; Cobra there: no verdict from 40,000 on"),
    ):
        yield Case(
            part="published",
            name=f"BlindW-WR {_size(size)}",
            levels=("ser", "sser"),
            form="edn",  # this format has times, which Vbox uses
            options={"workload": "blindw-wr", "transactions": size, "sessions": 24, "seed": 1},
            expected={"ser": "valid", "sser": "valid"},
            shape={"published": stated},
        )
    yield Case(
        part="published",
        name="100k transactions, 2M operations, repeated values",
        levels=("ser", "si"),
        form="dbcop",
        options={
            "rule": "serializable",
            "transactions": 100_000,
            "operations": 20,
            "keys": 50_000,
            "values": 100,
            "value_theta": 0.5,
            "sessions": 20,
            "seed": 1,
        },
        expected={"ser": "valid", "si": "valid"},
        shape={"published": "VeriStrong, Fig. 12: SER in less than 5 h and 64 GB"},
    )


READS = {"read-heavy": 0.9, "balanced": 0.5, "write-heavy": 0.1}
SESSIONS: dict[str, dict[str, Any]] = {
    "24 sessions": {"sessions": 24},
    "200 sessions": {"sessions": 200},
    "a session each": {"sessions": 24, "session_each": True},
}
VALUES = {"unique": 0, "repeated": 50}


def simulated_histories(*, quick: bool) -> Iterator[Case]:
    """Yield simulated histories for SER and SI.

    They have 8 operations in each transaction, and one key for ten transactions.
    """
    for size in (10_000,) if quick else (10_000, 100_000, 1_000_000):
        for reads, share in READS.items():
            for values, number in VALUES.items():
                for clients, sessions in SESSIONS.items():
                    if quick and (reads != "balanced" or clients == "a session each"):
                        continue
                    for rule, level in (("serializable", "ser"), ("snapshot", "si")):
                        yield Case(
                            part="simulated",
                            name=f"{_size(size)} {reads} {values} {clients} {level}",
                            levels=(level,),
                            form="dbcop",
                            options={
                                "rule": rule,
                                "transactions": size,
                                "keys": size // 10,
                                "read_share": share,
                                "values": number,
                                **sessions,
                                "seed": 1,
                            },
                            expected={level: "valid"},
                            shape={"size": size, "reads": reads, "values": values,
                                   "sessions": clients},
                        )  # fmt: skip


def hidden_violations(*, quick: bool) -> Iterator[Case]:
    """Yield histories of the balanced shape with one violation in the middle."""
    for size in (10_000,) if quick else (10_000, 100_000, 1_000_000):
        for clients, sessions in SESSIONS.items():
            for bug, rule, level in (("write skew", "serializable", "ser"),
                                     ("lost update", "snapshot", "si")):  # fmt: skip
                yield Case(
                    part="hidden",
                    name=f"{_size(size)} {bug} {clients} {level}",
                    levels=(level,),
                    form="dbcop",
                    options={
                        "rule": rule,
                        "bugs": (bug,),
                        "transactions": size,
                        "keys": size // 10,
                        **sessions,
                        "seed": 1,
                    },
                    expected={level: "invalid"},
                    shape={"size": size, "reads": f"balanced, one {bug}", "values": "unique",
                           "sessions": clients},
                )  # fmt: skip


def mini(*, quick: bool) -> Iterator[Case]:
    """Yield histories of mini-transactions with unique values, which leave no choices open."""
    for size in (10_000,) if quick else (10_000, 100_000, 1_000_000):
        yield Case(
            part="mini",
            name=f"{_size(size)} mini-transactions",
            levels=("ser", "si", "sser"),
            form="edn",  # this format has times
            options={
                "rule": "strict-serializable",
                "mini_transactions": True,
                "read_share": 0.6,
                "transactions": size,
                "keys": size // 10,
                "sessions": 24,
                "seed": 1,
            },
            expected=dict.fromkeys(("ser", "si", "sser"), "valid"),
            shape={"size": size, "reads": "mini", "values": "unique", "sessions": "24 sessions"},
        )


def weak_levels(*, quick: bool) -> Iterator[Case]:
    """Yield a history for each weak level, simulated under its rule and under the strictest."""
    for size in (16_000,) if quick else (16_000, 100_000, 1_000_000):
        for values, number in VALUES.items():
            for level, own in (("rc", "read-committed"), ("ra", "read-atomic"), ("cc", "causal")):
                for rule in (own, "serializable"):
                    yield Case(
                        part="weak",
                        name=f"{_size(size)} {rule} {values} {level}",
                        levels=(level,),
                        form="dbcop",
                        options={
                            "rule": rule,
                            "transactions": size,
                            "keys": size // 10,
                            "values": number,
                            "sessions": 24,
                            "seed": 1,
                        },
                        expected={level: "valid"},
                        shape={"size": size, "reads": rule, "values": values,
                               "sessions": "24 sessions"},
                    )  # fmt: skip


def hard(*, quick: bool, seeds: range) -> Iterator[Case]:
    """Yield histories of the hard region, valid ones and ones with changed reads.

    They have few values, few keys, many sessions, and 4 operations in each transaction.
    """
    for transactions, keys, sessions, values, share, rmw, changes, seed in product(
        (500,) if quick else (500, 1000, 2000),
        (100,) if quick else (20, 100),
        (20,) if quick else (20, 50),
        (2, 3, 5),
        (0.5, 0.7),
        (0.0, 1.0),
        (False, True),
        seeds,
    ):
        changed = max(1, transactions // 500) if changes else 0
        shape = {
            "transactions": transactions,
            "keys": keys,
            "sessions": sessions,
            "values": values,
            "reads": f"{share:.0%}",
            "writes": "read-modify-write" if rmw else "blind",
            "made": f"{changed} changed" if changed else "valid",
        }
        yield Case(
            part="hard",
            name=" ".join(
                (f"{transactions}t {keys}k {sessions}s {values}v {share:.0%}",
                 "rmw" if rmw else "blind", f"{changed} changed" if changed else "valid",
                 f"seed {seed}")
            ),
            levels=("ser",),
            form="dbcop",
            options={
                "rule": "strict-serializable",
                "transactions": transactions,
                "operations": 4,
                "keys": keys,
                "sessions": sessions,
                "values": values,
                "read_share": share,
                "read_modify_write": rmw,
                "seed": seed,
            },
            changed=changed,
            expected={} if changed else {"ser": "valid"},
            shape=shape,
        )  # fmt: skip


def _size(n: int) -> str:
    return f"{n // 1000}k" if n < 1_000_000 else f"{n // 1_000_000}M"
