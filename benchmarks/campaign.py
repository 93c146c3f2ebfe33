"""Compares the tool with the brute-force oracle, for a whole night or for a slice of histories.

    python benchmarks/campaign.py night --pairs 20e6 --seed 0 --folder campaign
    python benchmarks/campaign.py night --kinds sets,cas,rows --folder campaign
    python benchmarks/campaign.py night --kinds crossed --both-checkers 1 --pairs 2e5
    python benchmarks/campaign.py again campaign/NAME.json
    python benchmarks/campaign.py small --step 10 --offset 3 --log runs.jsonl
    python benchmarks/campaign.py small --weak --step 10 --log runs.jsonl
    python benchmarks/campaign.py small --scope rows --step 10 --log runs.jsonl
    python benchmarks/campaign.py expressions --specs 2000 --seed 0 --log runs.jsonl
    python benchmarks/campaign.py expressions --operations --specs 500 --log runs.jsonl
    python benchmarks/campaign.py expressions --beside --specs 500 --log runs.jsonl
    python benchmarks/campaign.py expressions --users --specs 5e3 --per-spec 5 --log runs.jsonl
    python benchmarks/campaign.py expressions --levels --seconds 60 --log runs.jsonl
    python benchmarks/campaign.py report --log runs.jsonl
    python benchmarks/campaign.py forge --pairs 1e5 --kinds times,rows
    python benchmarks/campaign.py shown --histories 2000 --seed 0

``night`` judges random histories at every level of the library, each time in one of the level's
styles. The oracle computes the verdicts of all levels on a history at once. For each pair of a
history and a level, the settings of the engine (strategy, presolve, threads, seed) are drawn at
random, and the native certificate checker checks the engine's answer. Some histories also go
through the whole tool, with a random encoding, solver and stage of pruning. The proofs of one
history in ``--both-checkers`` are also checked by the checker by definition; proofs that are too
large for it are counted. ``--kinds`` selects the kinds of histories: registers and lists, reads of
sets, compare-and-set registers, rows with predicates and deletes, equal rows, times, wrong clocks,
and examples from the literature. The kind ``crossed`` mixes all of these features, and
``predicates`` mixes them in histories with predicate reads. For histories with predicate reads,
each level is judged again with implicit set-reads. The seed, the kinds and the number of a history
determine the history. The progress is saved in ``FOLDER/state.json``, and the same command
continues from there.

``small`` compares verdicts on every STEP-th history of at most three transactions and two
registers. With ``--weak``, it uses RC, RA, CC and PSI in all styles and the session guarantees;
with ``--scope``, it uses another scope of ``tests/oracle/small_scopes.py``. ``expressions``
compares random specifications. With ``--users``, these use every relation and filter of the
language, names in quotes, and degenerate expressions, on histories with any mixture of features.
With ``--levels``, they are levels of several checks that share their relations, and both
certificate checkers must accept each proof. ``--seconds`` ends a slice after this CPU time. The
pair that is being compared stands in a file beside the log, for the case that the tool crashes.
Each slice appends one line to the log. ``report`` adds up the slices, and prints how many histories
separate each pair of adjacent levels.

``forge`` tampers with proofs: it changes a few fields of each proof, and it presents each proof for
a history that differs in one place. Both checkers must agree on each of them, and must reject every
proof of a claim that the oracle refutes.

``shown`` checks that everything that is printed and exported together with a verdict has the same
meaning: the file with the smallest part, the forms of the counterexample, and the history in other
formats (``shown.py``).

If tool and oracle differ on a history, it is shrunk, saved and printed, and the exit code is 1.
``night`` saves it under ``FOLDER`` with all data that ``again`` needs. The slices save it under
``tests/regressions`` with the oracle's verdict.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn
from unittest.mock import patch

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from oracle import moments, semantics, users
from oracle.before import Before
from oracle.expressions import (
    HARD,
    Checks,
    named_text,
    random_checks,
    random_named_checks,
    random_operation_spec,
    spec_text,
)
from oracle.forging import tampered_arrays, tampered_history, tampered_snapshots, tampered_steps
from oracle.generate import (
    any_history,
    every_small_history,
    random_times,
    separating,
    unusual,
    well_formed,
)
from oracle.generate_crossed import Crossed, changed, crossed_history, features
from oracle.generate_crossed import pairs as pairs_of_features
from oracle.generate_literature import literature_history
from oracle.generate_rows import cas_history, equal_row_history, row_history, set_history
from oracle.history import History, parse, show, timed, to_edn
from oracle.judged import judged, judged_by_names, judged_by_operations
from oracle.levels import (
    ADJACENT,
    DATABASES,
    GUARANTEES,
    LEVELS,
    PREDICATES,
    STATEMENTS,
    WEAK,
    WEAK_ADJACENT,
    WEAK_STYLES,
)
from oracle.parts import compare as compare_in_parts
from oracle.pipeline import (
    DEFINED,
    Levels,
    initial_of,
    keep,
    level_of,
    shrink,
    to_tool,
    tool_verdict,
    tool_verdict_of,
)
from oracle.simulate import disturbed, partly_noted, timed_history
from oracle.small_scopes import SCOPES, small_histories
from oracle.specifications import random_text_beside_a_level

from isolang._native import OutOfTime, strategies
from isolang.api import check, load_spec
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.native import native_checks
from isolang.certify.proofs import Refutation, Witness, check_proof
from isolang.certify.refutation import check_refutation
from isolang.errors import IsolangError, UnsupportedError
from isolang.history import History as ToolHistory
from isolang.language.classify.event_graph import NotAnEventGraph, Plan, classify
from isolang.language.classify.route import native_plan
from isolang.language.library import list_library
from isolang.pipeline import implicit
from isolang.pipeline.pair_run import contradiction, written_spec
from isolang.problem import Problem, build_problem
from isolang.solvers import engine
from isolang.solvers.registry import stages_of, supported_pairs

WANTED = 200

#: One of this many histories goes through the whole tool, or by default through both checkers.
WHOLE_TOOL: Final = 64
BOTH_CHECKERS: Final = 64
#: At most this many disagreements of one kind are shrunk and saved; all are counted.
SAVED: Final = 5
EXHAUSTION: Final = "not certified: an exhaustive search"
#: After this many assignments, the oracle gives up on a history, and the history is counted.
LARGEST: Final = 3_000
SECONDS: Final = 20.0  # for one check; a slower check is counted as undecided


# --- `night` ---


def registers(rng: random.Random) -> History:
    """Return a random history of registers and lists."""
    history = (any_history if rng.random() < 0.6 else separating)(rng)
    return unusual(rng, history) if rng.random() < 0.4 else history


def times(rng: random.Random) -> History:
    """Return a random history with the times of all or some operations.

    The history is that of a simulated database, with or without a bug.
    """
    kind = rng.choice(list(moments.KINDS.values()))
    history = timed_history(rng, kind, fault=rng.random() < 0.5)
    for _ in range(rng.choice((0, 1, 1, 2))):
        history = disturbed(rng, history)
    return partly_noted(rng, history) if rng.random() < 0.5 else history


def clocks(rng: random.Random) -> History:
    """Return a random history whose times may be wrong, for operations or only for transactions.

    The times of one session may contradict session order, which no clock error can explain.
    """
    history = (times if rng.random() < 0.5 else any_history)(rng)
    return history if timed(history) else random_times(rng, history)


#: For each kind of history, the function that generates it.
KINDS: Final[dict[str, Callable[[random.Random], History]]] = {
    "registers": registers,
    "sets": set_history,
    "cas": cas_history,
    "rows": row_history,
    "equal rows": equal_row_history,
    "times": times,
    "clocks": clocks,
    "literature": literature_history,
    "crossed": lambda rng: crossed_history(rng).history,
    "predicates": lambda rng: crossed_history(rng, wanted=CROSSED["predicates"]).history,
}


#: The kinds that mix all features, with the features that each of their histories must have. These
#: histories have their own initial values and clock errors.
CROSSED: Final[dict[str, frozenset[str]]] = {
    "crossed": frozenset(),
    "predicates": frozenset(("predicates",)),
}

#: How long set-reads stay implicit: as by default; until the first of them is contradicted; until
#: the rounds are used up; or until each is contradicted itself, in any number of rounds.
IMPLICIT: Final[dict[str, dict[str, int]]] = {
    "usual": {},
    "once": {"_ROUNDS": 0},
    "long": {"_COUNTED": 0},
    "each": {"_COUNTED": 0, "_AT_ONCE": 0, "_ROUNDS": 10_000},
}

USUAL: Final = {name: getattr(implicit, name) for name in ("_ROUNDS", "_COUNTED", "_AT_ONCE")}

#: The error between any two clocks, or the error of each session's clock.
ClockError = int | dict[int, int]


class Setting(Struct, frozen=True, kw_only=True):
    """The settings with which one pair of a history and a level is judged.

    Attributes:
        style: the name of the level in the library, in one of its styles.
        seed: the number that breaks ties in the search.
        strategy: the strategy of the engine's search; ``auto`` is the default of users.
        presolve: whether stronger checks are tried first.
        threads: the number of threads.
        pair: the encoding, the solver and the stage of pruning; empty if only the engine runs.
        twice: whether the checker by definition must accept the proof, too.
        implicit: if the set-reads of predicate reads stay implicit, a key of ``IMPLICIT``;
            otherwise empty. If it is set, the pair goes through the whole tool.
    """

    style: str
    seed: int = 0
    strategy: str = "auto"
    presolve: bool = True
    threads: int = 1
    pair: tuple[str, ...] = ()
    twice: bool = False
    implicit: str = ""


class Case(Struct, frozen=True, kw_only=True):
    """A disagreement, with all data that are needed to reproduce it."""

    setting: Setting
    expected: str
    got: str
    operations: str
    initial: int | Before | None
    as_found: str
    kind: str = "registers"
    error: int | dict[int, int] = 0
    seed: int
    number: int
    edn: str


class Totals(Struct, kw_only=True):
    """The progress and the counts of a night."""

    seed: int
    kinds: tuple[str, ...] = ("registers",)
    number: int = 0
    seconds: float = 0.0
    counts: dict[str, int] = {}
    verdicts: dict[str, int] = {}
    separated: dict[str, int] = {}
    crossed: dict[str, int] = {}
    disagreements: dict[str, int] = {}


def in_library(name: str) -> bool:
    """Return whether the library has a specification with this name."""
    with suppress(IsolangError):
        load_spec(name)
        return True
    return False


class Judges:
    """The oracle, and the tool with any settings."""

    def __init__(self, levels: Collection[str] = ()) -> None:
        self.strategies = strategies()
        self.styles: dict[str, list[str]] = {}
        known = {*LEVELS, *WEAK, *GUARANTEES, *PREDICATES, *DEFINED, "rc", "rc-nosession"}
        own = [entry.name for entry in list_library() if not entry.alias_of]
        names = [name for name in own if level_of(name) in known]
        names += [name for name in (*DATABASES, *STATEMENTS) if in_library(name)]
        names = [name for name in names if not levels or level_of(name) in levels]
        for name in names:
            self.styles.setdefault(level_of(name), []).append(name)
        self.levels = Levels(names)
        self.oracle = Levels(self.styles)
        self.checks = {n: native_checks(plan.spec) for n, plan in self.levels.plans.items()}
        self.beyond: Counter[str] = Counter()
        self.implicit: Counter[str] = Counter()
        self.pairs = {n: list(supported_pairs(plan)) for n, plan in self.levels.plans.items()}

    def got(self, given: ToolHistory, setting: Setting, problem: Problem | None = None) -> str:
        """Return the tool's verdict, ``valid`` or ``invalid``; otherwise, the error as text."""
        try:
            if setting.implicit:
                return self._implicit(given, setting)
            if setting.pair:
                return self._whole_tool(given, setting)
            return self._engine(given, problem or build_problem(given), setting)
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def _implicit(self, given: ToolHistory, setting: Setting) -> str:
        """Return the verdict on the history with as many implicit set-reads as possible."""
        columns = given.columns.implied()
        with patch.multiple(implicit, **(USUAL | IMPLICIT[setting.implicit])):
            verdict = check(
                given if columns is None else replace(given, columns=columns),
                self.levels.plans[setting.style],
                timeout=SECONDS,
                seed=setting.seed,
                threads=setting.threads,
            )
        if verdict.outcome == "unknown":
            return f"unknown: {verdict.reason}"
        if not verdict.certified:
            return f"{verdict.outcome}, not certified: {verdict.certified_reason}"
        rest = "some" if verdict.history.columns.implicit else "no"
        made = "" if rest == "no" or not verdict.history.set_reads else ", and some made"
        self.implicit[f"{verdict.outcome} with {rest} implicit set-reads{made}"] += 1
        proof = verdict.certificate().proof
        try:
            check_proof(
                verdict.history, written_spec(self.levels.plans[setting.style]), proof, SECONDS
            )
        except CertificateRejected as error:
            return f"{verdict.outcome}, not certified: by definition: {error}"
        except NotCertifiedError:
            self.beyond[f"{verdict.outcome} beyond the checker by definition"] += 1
        return str(verdict.outcome)

    def _whole_tool(self, given: ToolHistory, setting: Setting) -> str:
        encoding, solver, prune = setting.pair
        verdict = check(
            given,
            self.levels.plans[setting.style],
            timeout=SECONDS,
            encoding=encoding,
            solver=solver,
            prune=prune,
            seed=setting.seed,
            threads=setting.threads,
        )
        if verdict.outcome == "unknown":
            return f"unknown: {verdict.reason}"
        if verdict.certified:
            return str(verdict.outcome)
        return f"{verdict.outcome}, not certified: {verdict.certified_reason}"

    def proof(self, given: ToolHistory, problem: Problem, setting: Setting) -> Any:
        """Return the proof that the engine gives, or the refutation of the pre-pass."""
        plan = self.levels.plans[setting.style]
        assert isinstance(plan, Plan)
        found = contradiction(problem, plan)
        return (
            found
            or engine.solve(
                given.columns,
                problem.native,
                plan.automata,
                seconds=SECONDS,
                seed=setting.seed,
                presolve=setting.presolve,
                strategy=setting.strategy,
                threads=setting.threads,
            ).result
        )

    def _engine(self, given: ToolHistory, problem: Problem, setting: Setting) -> str:
        from isolang._native import verify_refutation, verify_witness

        plan, checks = self.levels.plans[setting.style], self.checks[setting.style]
        assert isinstance(plan, Plan)
        proof = self.proof(given, problem, setting)
        if isinstance(proof, Witness):
            outcome = "valid"
            reason = verify_witness(
                given.columns,
                checks,
                proof.source,
                proof.order_start,
                proof.order_txn,
                seconds=SECONDS,
            )
        else:
            outcome = "invalid"
            reason = verify_refutation(given.columns, checks, proof.plain(), SECONDS)
        if not reason and setting.twice:
            try:
                check_proof(given, written_spec(plan), proof, SECONDS)
            except CertificateRejected as error:
                reason = f"by definition: {error}"
            except NotCertifiedError:  # this checker supports only small proofs
                self.beyond[f"{outcome} beyond the checker by definition"] += 1
        if setting.strategy == "states" and reason.startswith(EXHAUSTION):
            return outcome  # this search gives no proof, and only campaigns run it alone
        return f"{outcome}, not certified: {reason}" if reason else outcome

    def told(self, given: ToolHistory, setting: Setting, proof: Any) -> tuple[str, str, str]:
        """Return the answers of the Python checker and the native checker, and the native reason.

        An answer is ``accepted``, ``rejected`` or ``not certified``.
        """
        from isolang._native import verify_refutation, verify_witness

        plan, checks = self.levels.plans[setting.style], self.checks[setting.style]
        try:
            if isinstance(proof, list):
                check_refutation(given, written_spec(plan), proof)
            else:
                check_proof(given, written_spec(plan), proof, SECONDS)
            python = ""
        except CertificateRejected as error:
            python = str(error) or "rejected"
        except NotCertifiedError:
            python = EXHAUSTION
        if isinstance(proof, Witness):
            arrays = (proof.source, proof.order_start, proof.order_txn, proof.commits, proof.seen)
            native = verify_witness(given.columns, checks, *arrays, SECONDS)
        else:
            steps = proof if isinstance(proof, list) else proof.plain()
            native = verify_refutation(given.columns, checks, steps, SECONDS)
        return verdict_of(python), verdict_of(native), native

    def expected(
        self, history: History, initial: int | Before | None, style: str, error: ClockError = 0
    ) -> str:
        """Return the oracle's verdict for one level."""
        return self.oracle.expected(history, initial, error=error)[level_of(style)]

    def draw(self, rng: random.Random, level: str) -> Setting:
        """Return random settings for the engine."""
        return Setting(
            style=rng.choice(self.styles[level]),
            seed=rng.randrange(1000),
            strategy="auto" if rng.random() < 0.5 else rng.choice(self.strategies),
            presolve=rng.random() < 0.5,
            threads=2 if rng.random() < 0.1 else 1,
        )

    def draw_whole(self, rng: random.Random, level: str) -> Setting:
        """Return random settings for the whole tool."""
        style = rng.choice(self.styles[level])
        encoding, solver = rng.choice(self.pairs[style])
        prune = rng.choice(stages_of(encoding))
        return Setting(
            style=style,
            seed=rng.randrange(1000),
            threads=rng.choice((1, 2)),
            pair=(encoding, solver, prune),
        )


def verdict_of(reason: str) -> str:
    """Return the answer of a checker, given the reason why it did not accept the proof."""
    if not reason:
        return "accepted"
    return "not certified" if reason.startswith("not certified") else "rejected"


def add_count(counts: dict[str, int], name: str, count: int = 1) -> None:
    """Add a number to a named count."""
    counts[name] = counts.get(name, 0) + count


class Night:
    """A campaign whose state is saved in a folder."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        kinds: tuple[str, ...] = ("registers",),
        levels: Collection[str] = (),
        both_checkers: int = BOTH_CHECKERS,
    ) -> None:
        self.folder = folder
        self.both_checkers = both_checkers
        self.state = folder / "state.json"
        folder.mkdir(parents=True, exist_ok=True)
        self.totals = Totals(seed=seed, kinds=kinds)
        if self.state.exists():
            self.totals = msgspec.json.decode(self.state.read_bytes(), type=Totals)
            before = (self.totals.seed, self.totals.kinds)
            if before != (seed, kinds):
                what = f"another seed or other kinds (got {seed}, {kinds}, expected {before})"
                raise SystemExit(f"{self.state}: {what}; choose another --folder")
        self.judges = Judges(levels)

    def history(
        self, number: int
    ) -> tuple[random.Random, str, History, int | Before | None, ClockError]:
        """Return the history with a number, its kind, its initial value and its clock error.

        The first result is the generator for all further random choices about this history.
        """
        rng = random.Random(self.totals.seed << 40 | number)
        kinds = self.totals.kinds
        kind = kinds[0] if len(kinds) == 1 else rng.choice(kinds)
        if kind in CROSSED:
            wanted = CROSSED[kind]
            while not well_formed((made := crossed_history(rng, wanted=wanted)).history):
                pass
            return rng, kind, made.history, made.initial, made.error
        while not well_formed(history := KINDS[kind](rng)):
            pass
        valued = kind in ("registers", "sets") and rng.random() < 0.1
        initial = rng.randint(1, 3) if valued else None
        error: ClockError = 0
        if kind == "clocks":
            error = rng.choice((1, 2, 3, 5))
            if rng.random() < 0.4:
                error = {s: rng.choice((0, 1, 2, 4)) for s in sorted({t.session for t in history})}
        return rng, kind, history, initial, error

    def one(self, number: int) -> None:
        """Judge one history at all levels."""
        rng, kind, history, initial, error = self.history(number)
        totals = self.totals
        try:
            expected = self.judges.oracle.expected(history, initial, LARGEST, error)
        except semantics.TooLargeError:
            add_count(totals.counts, "too large for the oracle")
            return
        given = to_tool(history, initial_of(history, initial), error)
        try:
            problem = build_problem(given)
        except UnsupportedError:  # the user gets the reason
            add_count(totals.counts, "refused")
            return
        twice = number % self.both_checkers == 0
        for level, verdict in expected.items():
            setting = self.judges.draw(rng, level)
            if twice:
                setting = replace(setting, twice=True)
            self.compare(setting, verdict, given, problem, number)
        if len(given.columns.statement_start) and given.columns.implied() is not None:
            for level, verdict in expected.items():
                setting = self.judges.draw(rng, level)
                setting = replace(setting, implicit=rng.choice(list(IMPLICIT)))
                self.compare(setting, verdict, given, problem, number)
            for what, count in self.judges.implicit.items():
                add_count(totals.counts, what, count)
            self.judges.implicit.clear()
        add_count(totals.counts, "histories")
        add_count(totals.counts, f"histories of {kind}")
        for pair in pairs_of_features(features(Crossed(history, initial, error))):
            add_count(totals.crossed, " and ".join(pair), len(expected))
        add_count(totals.counts, "pairs", len(expected))
        if twice:
            add_count(totals.counts, "proofs checked twice", len(expected))
            for what, count in self.judges.beyond.items():
                add_count(totals.counts, what, count)
            self.judges.beyond.clear()
        if number % WHOLE_TOOL == 0:
            for level, verdict in expected.items():
                setting = self.judges.draw_whole(rng, level)
                add_count(totals.counts, "through " + "/".join(setting.pair))
                self.compare(setting, verdict, given, problem, number)
            add_count(totals.counts, "through the whole tool", len(expected))
        for level, verdict in expected.items():
            add_count(totals.verdicts, f"{level} {verdict}")
        for weaker, stronger in (*ADJACENT, *WEAK_ADJACENT):
            if expected.get(weaker) == "valid" and expected.get(stronger) == "invalid":
                add_count(totals.separated, f"{weaker} < {stronger}")

    def compare(
        self, setting: Setting, verdict: str, given: ToolHistory, problem: Problem, number: int
    ) -> None:
        got = self.judges.got(given, setting, problem)
        if got == verdict:
            return
        if got.startswith("unknown: unsupported"):
            add_count(self.totals.counts, "refused")
            return
        if "timeout" in got or "the time ran out" in got:
            add_count(self.totals.counts, "undecided")
            return
        if got.startswith(UnsupportedError.__name__):  # the encoding does not support it
            add_count(self.totals.counts, "refused")
            return
        kind = f"{verdict}, got {re.sub(r'[0-9]+', 'N', got)[:100]}"
        add_count(self.totals.disagreements, kind)
        if self.totals.disagreements[kind] <= SAVED:
            self.save_case(setting, number)

    def save_case(self, setting: Setting, number: int) -> None:
        """Shrink a disagreement and save it."""
        _, history_kind, found, initial, error = self.history(number)

        def differs(history: History, initial: int | Before | None) -> bool:
            if not well_formed(history):
                return False
            # The last three: no times are left, or none of a clock.
            with suppress(semantics.TooLargeError, KeyError, ValueError, IsolangError):
                given = to_tool(history, initial_of(history, initial), error)
                expected = self.judges.expected(history, initial, setting.style, error)
                return self.judges.got(given, setting) != expected
            return False

        if initial is not None and differs(found, None):
            initial = None
        small = shrink(found, lambda h: differs(h, initial)) if differs(found, initial) else found
        case = Case(
            setting=setting,
            expected=self.judges.expected(small, initial, setting.style, error),
            got=self.judges.got(to_tool(small, initial_of(small, initial), error), setting),
            operations=show(small),
            initial=initial,
            as_found=show(found),
            error=error,
            kind=history_kind,
            seed=self.totals.seed,
            number=number,
            edn=to_edn(small),
        )
        path = self.folder / f"{number}-{setting.style}.json"
        path.write_bytes(msgspec.json.format(msgspec.json.encode(case)) + b"\n")
        print(f"DISAGREEMENT {path}: {describe(case)}", flush=True)

    def save(self) -> None:
        """Write the state completely or not at all."""
        new = self.state.with_suffix(".new")
        new.write_bytes(msgspec.json.format(msgspec.json.encode(self.totals)) + b"\n")
        os.replace(new, self.state)

    def line(self) -> str:
        """Return the counts as one line."""
        t = self.totals
        pairs, wrong = t.counts.get("pairs", 0), sum(t.disagreements.values())
        return (
            f"{pairs:,} pairs of {t.counts.get('histories', 0):,} histories, "
            f"{t.counts.get('through the whole tool', 0):,} also through the whole tool, "
            f"{t.counts.get('too large for the oracle', 0):,} too large for the oracle, "
            f"{t.counts.get('refused', 0):,} refused, "
            f"{t.counts.get('undecided', 0):,} undecided, {wrong:,} disagreements, "
            f"{pairs / max(t.seconds, 1e-9):,.0f} pairs a second"
        )

    def run(self, pairs: float) -> None:
        """Continue until this many pairs are done.

        Ctrl-C and SIGTERM save the state, so that the campaign can be continued.
        """

        def stop(*_: object) -> NoReturn:
            raise KeyboardInterrupt

        before_term = signal.signal(signal.SIGTERM, stop)
        shown = begun = time.process_time()
        before = self.totals.seconds
        try:
            while self.totals.counts.get("pairs", 0) < pairs:
                self.one(self.totals.number)
                self.totals.number += 1
                now = time.process_time()
                self.totals.seconds = before + now - begun
                if now - shown > 30:
                    shown = now
                    self.save()
                    print(self.line(), flush=True)
        except KeyboardInterrupt:
            print("stopped; the same command goes on from here", flush=True)
        finally:
            signal.signal(signal.SIGTERM, before_term)
        self.save()
        print(self.line(), flush=True)


# --- tampering ---


#: The number of changed proofs for each pair of a history and a level.
FORGED: Final = 4
#: Reasons for which only the native checker rejects a cycle: it requires that each edge begins at
#: the statement where the previous edge ends, without implied steps inside a transaction, and that
#: each edge belongs to the check even if fewer edges suffice (docs/certificates.md).
OTHERWISE_WRITTEN: Final = (
    "an edge ends at another statement than the next begins at",
    "the edges spell no word of",
)


class Forger:
    """Presents changed proofs, and proofs for changed histories, to both checkers."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.night = Night(
            arguments.folder, arguments.seed, kinds_of(arguments), levels_of(arguments)
        )
        self.judges = self.night.judges
        self.counts: Counter[str] = Counter()

    def one(self, number: int) -> int:
        """Forge proofs for all levels of one history, and return the number of levels.

        The proofs are also presented for a slightly changed history.
        """
        rng, kind, history, initial, error = self.night.history(number)
        tamper = changed if kind in CROSSED else tampered_history
        try:
            both = [(history, self.judges.oracle.expected(history, initial, LARGEST, error))]
            other = tamper(rng, history)
            if well_formed(other):
                with suppress(KeyError, ValueError):
                    both.append(
                        (other, self.judges.oracle.expected(other, initial, LARGEST, error))
                    )
        except semantics.TooLargeError:
            return 0
        given = [to_tool(h, initial_of(h, initial), error) for h, _ in both]
        for level in both[0][1]:
            setting = self.judges.draw(rng, level)
            self.implicit(rng, number, setting, level, given, [found for _, found in both])
            with suppress(IsolangError, OutOfTime):  # the limit was reached
                proof = self.judges.proof(given[0], build_problem(given[0]), setting)
                if not isinstance(proof, (Witness, Refutation)):
                    continue
                for shown, (_, expected) in zip(given, both, strict=True):
                    if level in expected:
                        self.show(rng, number, setting, proof, shown, expected[level])
        return len(both[0][1])

    def implicit(  # noqa: PLR0917 - histories, and what is true
        self,
        rng: random.Random,
        number: int,
        setting: Setting,
        level: str,
        given: Sequence[ToolHistory],
        expected: Sequence[dict[str, str]],
    ) -> None:
        """Present proofs with implicit set-reads, for both histories with the same set-reads."""
        import numpy as np

        if not len(given[0].columns.statement_start):
            return
        implied = [h.columns.implied() for h in given]
        if implied[0] is None:
            return
        plan = self.judges.levels.plans[setting.style]
        with suppress(IsolangError):
            verdict = check(replace(given[0], columns=implied[0]), plan, timeout=SECONDS)
            if verdict.outcome == "unknown" or not verdict.history.columns.implicit:
                return
            proof = verdict.certificate().proof
            pairs = np.array(verdict.history.set_reads, np.int32).reshape(-1, 2)
            for columns, h, found in zip(implied, given, expected, strict=True):
                if columns is None or level not in found:
                    continue
                with suppress(ValueError):  # the changed history lacks a predicate read
                    shown = replace(h, columns=columns).with_set_reads(pairs)
                    if isinstance(proof, (Witness, Refutation)):
                        self.counts["implicit"] += 1
                        self.show(rng, number, setting, proof, shown, found[level])

    def show(  # noqa: PLR0917 - a proof, a history, and what is true
        self,
        rng: random.Random,
        number: int,
        setting: Setting,
        proof: Witness | Refutation,
        given: ToolHistory,
        expected: str,
    ) -> None:
        """Present the proof and changed copies of it to both checkers, and count their answers."""
        claims = "valid" if isinstance(proof, Witness) else "invalid"
        n = given.columns.transactions()
        for change in range(FORGED + 1):
            forged = tampered(rng, n, proof) if change else proof
            *told, why = self.judges.told(given, setting, forged)
            kind = f"{claims} of what is {expected}: {', '.join(told)}"
            wrong = claims != expected and "accepted" in told
            free = (
                claims == expected == "invalid"
                and told == ["accepted", "rejected"]
                and any(reason in why for reason in OTHERWISE_WRITTEN)
            )
            self.counts[f"{kind}{', which is otherwise written' if free else ''}"] += 1
            if wrong or (set(told) == {"accepted", "rejected"} and not free):
                self.counts["WRONG"] += 1
                print(f"WRONG {number} {setting.style}: {kind}: {forged}", flush=True)


def tampered(rng: random.Random, transactions: int, proof: Witness | Refutation) -> Any:
    """Return a changed copy of a witness, or of a refutation as plain steps."""
    if isinstance(proof, Witness):
        arrays = (proof.source, proof.order_start, proof.order_txn)
        if proof.commits is None or proof.seen is None:
            return Witness.of(*tampered_arrays(rng, transactions, *arrays))
        if rng.random() < 0.3:
            snapshots = (proof.commits, proof.seen)
            return Witness.of(*tampered_arrays(rng, transactions, *arrays), *snapshots)
        return Witness.of(
            *arrays, *tampered_snapshots(rng, transactions, proof.commits, proof.seen)
        )
    return tampered_steps(rng, transactions, list(proof.plain()))


def forge(arguments: argparse.Namespace) -> int:
    """Forge proofs until this many pairs are done, and return the exit code."""
    forger, pairs, number = Forger(arguments), 0, 0
    while pairs < arguments.pairs:
        pairs += forger.one(number)
        number += 1
        if number % 200 == 0:
            print(f"{pairs:,} pairs, {forger.counts.total():,} proofs", flush=True)
    for kind, count in sorted(forger.counts.items()):
        print(f"  {kind:<60} {count:>10,}")
    return 1 if forger.counts["WRONG"] else 0


def describe(case: Case) -> str:
    """Return a disagreement as one line."""
    setting = {k: v for k, v in asdict(case.setting).items() if k != "style"}
    initial = "" if case.initial is None else f", initial value {case.initial}"
    return (
        f"{case.setting.style}: expected {case.expected}, got {case.got}: "
        f"{case.operations}{initial}{f', clock error {case.error}' if case.error else ''} {setting}"
    )


def kinds_of(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the kinds of histories that the command line selects."""
    kinds = tuple(arguments.kinds.split(","))
    if unknown := set(kinds) - set(KINDS):
        known = ", ".join(KINDS)
        raise SystemExit(f"--kinds: {', '.join(unknown)} is no kind (expected some of {known})")
    return kinds


def levels_of(arguments: argparse.Namespace) -> set[str]:
    """Return the levels that the command line selects; empty for all levels."""
    return {*arguments.levels.split(",")} - {""}


def night(arguments: argparse.Namespace) -> int:
    """Start or continue a campaign, print its counts, and return the exit code."""
    kinds, levels = kinds_of(arguments), levels_of(arguments)
    campaign = Night(arguments.folder, arguments.seed, kinds, levels, arguments.both_checkers)
    campaign.run(arguments.pairs)
    t = campaign.totals
    for title, table in (
        ("verdicts", t.verdicts),
        ("counts", t.counts),
        ("pairs of a history and a level, by two features of the history", t.crossed),
    ):
        print(title)
        for name, count in sorted(table.items()):
            print(f"  {name:<46} {count:>12,}")
    print_separated(Counter(t.separated))
    for kind, count in t.disagreements.items():
        print(f"DISAGREEMENTS {count:,}: expected {kind}")
    return 1 if t.disagreements else 0


def judge_again(arguments: argparse.Namespace) -> int:
    """Judge a saved disagreement again, and return the exit code."""
    case = msgspec.json.decode(arguments.case.read_bytes(), type=Case)
    judges = Judges()
    history = parse(case.operations)
    given = to_tool(history, initial_of(history, case.initial), case.error)
    got = judges.got(given, case.setting)
    expected = judges.expected(history, case.initial, case.setting.style, case.error)
    print(describe(replace(case, got=got, expected=expected)))
    return 0 if got == expected else 1


# --- slices ---


class Slice:
    """The counts and disagreements of one slice."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.what = {k: v for k, v in vars(arguments).items() if k != "log"}
        self.counts: Counter[str] = Counter()
        self.verdicts: Counter[str] = Counter()
        self.separated: Counter[str] = Counter()
        self.disagreements: list[str] = []
        self.started = time.process_time()
        self.shown = time.monotonic()

    def note(self, expected: dict[str, str]) -> None:
        self.counts["histories"] += 1
        for level, verdict in expected.items():
            self.verdicts[f"{level} {verdict}"] += 1
        for weaker, stronger in (*ADJACENT, *WEAK_ADJACENT):
            if expected.get(weaker) == "valid" and expected.get(stronger) == "invalid":
                self.separated[f"{weaker} < {stronger}"] += 1
        if time.monotonic() - self.shown > 30:
            self.shown = time.monotonic()
            print(f"  {self.counts['histories']} histories", file=sys.stderr, flush=True)

    def differs(self, history: History, name: str, spec: str, expected: str, got: str) -> None:
        text = f"{spec}: expected {expected}, got {got}: {show(history)}"
        self.disagreements.append(text)
        print(f"DISAGREEMENT {text}", flush=True)
        keep(name, history, {spec: expected})

    def save(self, log: Path) -> None:
        line = {
            "run": self.what,
            "cpu_seconds": round(time.process_time() - self.started, 1),
            "counts": self.counts,
            "verdicts": self.verdicts,
            "separated": self.separated,
            "disagreements": self.disagreements,
        }
        with log.open("a", encoding="utf-8") as f:
            f.write(json.dumps(line) + "\n")


def run_histories(
    histories: Iterator[History], result: Slice, name: str, names: Sequence[str], size: int
) -> None:
    """Compare the tool with the oracle at the named levels on each history."""
    levels = Levels(names, size=size)
    for number, history in enumerate(histories):
        try:
            expected, wrong = levels.compare(history, seed=number)
        except semantics.TooLargeError:
            result.counts["too large for the oracle"] += 1
            continue
        result.note(expected)
        for difference in wrong[:1]:
            spec = difference.spec

            def still(h: History, spec: str = spec) -> bool:
                return well_formed(h) and any(d.spec == spec for d in levels.compare(h)[1])

            small = shrink(history, still) if still(history) else history
            verdict = levels.expected(small)[spec]
            got = tool_verdict(small, levels.plans[spec])
            result.differs(small, f"{name}-{number}", spec, verdict, got)


def names_of(arguments: argparse.Namespace) -> Sequence[str]:
    """Return the names of the levels to judge: those of a scope, the weak levels, or all.

    The weak levels include their neighbours.
    """
    if arguments.scope:
        return [name for name in OF_SCOPE[arguments.scope] if in_library(name)]
    neighbours = ("pl-2", "pl-3", "pc", "si", "pc-nosession", "si-nosession")
    return (*WEAK_STYLES, *GUARANTEES, *neighbours) if arguments.weak else tuple(LEVELS)


_SNAPSHOTS = ("rc-nosession", "pl-2l", "pl-msr", "pl-cs", "pl-3u", "update-atomic-nosession")

#: For each scope, the levels that its histories separate.
OF_SCOPE: Final[dict[str, tuple[str, ...]]] = {
    "statements": ("pl-2", "psi-nosession", "pl-3", *_SNAPSHOTS),
    "readers": ("pl-2", "psi-nosession", "pl-3", *_SNAPSHOTS),
    "sessions": ("pram", "processor", "per-key-sequential", "per-key-causal", *GUARANTEES, "ser"),
    "rows": (
        *("pl-1", "pl-2", "pl-cs", "pl-2-99", "locking-repeatable-read", "pl-3", "pl-2l", "pl-msr"),
        *("rc-nosession", "ra-nosession", "psi-nosession", "si-nosession", "pl-3u"),
    ),
}


def small(arguments: argparse.Namespace, result: Slice) -> None:
    offset, step, scope = arguments.offset, arguments.step, arguments.scope
    histories = small_histories(scope, offset, step) if scope else every_small_history(offset, step)
    name = f"small-{scope}{'-' if scope else ''}{step}-{offset}"
    run_histories(histories, result, name, names_of(arguments), 6)


def compare_with_other_checks(arguments: argparse.Namespace, result: Slice) -> None:
    """Compare random specifications of which the engine can decide only a part."""
    rng = random.Random(arguments.seed)
    for _ in range(arguments.specs):
        text = random_text_beside_a_level(rng)
        spec = load_spec(text)
        for _ in range(arguments.per_spec):
            wrong, way = compare_in_parts(rng, spec)
            result.counts[way] += 1
            if wrong:
                result.disagreements.append(f"{text}{wrong}")


def expressions(arguments: argparse.Namespace, result: Slice) -> None:
    if arguments.beside:
        compare_with_other_checks(arguments, result)
        return
    rng = random.Random(arguments.seed)
    for number in range(arguments.specs):
        if time.process_time() - result.started > arguments.seconds:
            break
        if arguments.names:
            compare_named_checks(arguments, rng, number, result)
            continue
        if arguments.users or arguments.levels:
            compare_user_specs(arguments, rng, result)
            continue
        if arguments.operations:
            text = random_operation_spec(rng)
            histories = judged_by_operations(rng, text, arguments.per_spec, result.counts)
        else:
            checks: Checks = HARD[number] if number < len(HARD) else random_checks(rng)
            text = spec_text(checks)
            histories = judged(rng, checks, arguments.per_spec, result.counts)
        try:
            spec = load_spec(text)
            plan = native_plan(spec) if arguments.operations else classify(spec)
        except NotAnEventGraph as refusal:
            if not refusal.reason.strip():
                result.disagreements.append(f"no reason: {text}")
            result.counts["specifications refused"] += 1
            continue
        result.counts["specifications accepted"] += 1
        for history, expected in histories:
            got = tool_verdict(history, plan, seed=number)
            result.note({"random": expected})
            if arguments.operations and got == f"{expected}, not certified":
                result.counts["not certified"] += 1
            elif got != expected:
                result.differs(
                    history, f"expression-{arguments.seed}-{number}", text, expected, got
                )


def compare_named_checks(
    arguments: argparse.Namespace, rng: random.Random, number: int, result: Slice
) -> None:
    """Compare checks that distinguish keys and transactions by name, on mixed histories."""
    checks = random_named_checks(rng)
    text = named_text(checks)
    try:
        plan = native_plan(load_spec(text))
    except NotAnEventGraph as refusal:
        if not refusal.reason.strip():
            result.disagreements.append(f"no reason: {text}")
        result.counts["specifications refused"] += 1
        return
    result.counts["specifications accepted"] += 1
    for crossed, expected in judged_by_names(rng, checks, arguments.per_spec, result.counts):
        result.note({"random": expected})
        given = to_tool(
            crossed.history, initial_of(crossed.history, crossed.initial), crossed.error
        )
        got = tool_verdict_of(given, plan, seed=number)
        if got == f"{expected}, not certified":
            result.counts["not certified"] += 1
        elif got.startswith("unknown: unsupported"):
            result.counts["lists of unknown outcome"] += 1
        elif got != expected:
            name = f"names-{arguments.seed}-{number}"
            result.differs(crossed.history, name, text, expected, got)


def compared_beside(log: Path) -> Callable[[str, Crossed], None]:
    """Return a function that notes the current pair beside the log, where a crash leaves it."""
    note = log.with_suffix(".current")

    def write(text: str, crossed: Crossed) -> None:
        beside = f"initial {crossed.initial}, clock error {crossed.error}"
        note.write_text(f"{text}{show(crossed.history)}\n{beside}\n", encoding="utf-8")

    return write


def compare_user_specs(arguments: argparse.Namespace, rng: random.Random, result: Slice) -> None:
    """Compare specifications as users write them, by any route."""
    text = (users.random_level_text if arguments.levels else users.random_users_text)(rng)
    result.counts["specifications"] += 1
    for found in users.pairs(
        rng, text, arguments.per_spec, compared=compared_beside(arguments.log)
    ):
        result.counts["pairs"] += 1
        result.counts["wrong" if found.wrong else found.what] += 1
        if found.wrong:
            small = str(users.smaller(found))
            result.disagreements.append(small)
            print(f"DISAGREEMENT {small}", flush=True)
    if time.monotonic() - result.shown > 60:
        result.shown = time.monotonic()
        print(f"  {json.dumps(result.counts)}", file=sys.stderr, flush=True)


def print_separated(separated: Counter[str]) -> None:
    print("histories that separate (weaker valid, stronger invalid)")
    for weaker, stronger in (*ADJACENT, *WEAK_ADJACENT):
        count = separated[f"{weaker} < {stronger}"]
        few = "" if count >= WANTED else f"  fewer than {WANTED}"
        print(f"  {weaker + ' < ' + stronger:<46} {count:>9,}{few}")


def report(log: Path) -> int:
    totals: dict[str, Counter[str]] = {}
    disagreements: list[str] = []
    seconds = 0.0
    with log.open(encoding="utf-8") as f:
        for line in f:
            run: dict[str, Any] = json.loads(line)
            seconds += run["cpu_seconds"]
            disagreements += run["disagreements"]
            total = totals.setdefault(run["run"]["command"], Counter())
            for part in ("counts", "verdicts", "separated"):
                total.update({f"{part} {k}": v for k, v in run[part].items()})
    for command, total in totals.items():
        print(command)
        for key, value in sorted(total.items()):
            if not key.startswith("separated"):
                print(f"  {key.split(' ', 1)[1]:<40} {value:>9,}")
    separated: Counter[str] = Counter()
    for total in totals.values():
        separated.update({k.split(" ", 1)[1]: v for k, v in total.items() if k[:3] == "sep"})
    print_separated(separated)
    print(f"{len(disagreements)} disagreements, {seconds:,.0f} CPU seconds")
    for text in disagreements:
        print(f"  {text}")
    return 1 if disagreements else 0


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, pairs in (("night", 20e6), ("forge", 1e5)):
        run = commands.add_parser(name)
        run.add_argument("--pairs", type=float, default=pairs)
        run.add_argument("--seed", type=int, default=0)
        run.add_argument("--folder", type=Path, default=Path("campaign"))
        run.add_argument("--kinds", default="registers", help="some of " + ", ".join(KINDS))
        run.add_argument("--levels", default="", help="some levels; all, without")
    commands.choices["night"].add_argument(
        "--both-checkers", type=int, default=BOTH_CHECKERS, metavar="N", help="one history in N"
    )
    run = commands.add_parser("again")
    run.add_argument("case", type=Path)
    run = commands.add_parser("shown")
    run.add_argument("--seed", type=int, default=0)
    run.add_argument("--first", type=int, default=0, help="the number of the first history")
    run.add_argument("--histories", type=int, default=2_000)
    run = commands.add_parser("small")
    run.add_argument("--step", type=int, default=10)
    run.add_argument("--offset", type=int, default=0)
    run = commands.add_parser("expressions")
    run.add_argument("--specs", type=lambda text: int(float(text)), default=2_000)
    run.add_argument("--per-spec", type=int, default=15)
    run.add_argument("--operations", action="store_true", help="walks over single operations")
    run.add_argument("--names", action="store_true", help="labels, levels and keys by name")
    run.add_argument("--users", action="store_true", help="every word, as a user may write it")
    run.add_argument("--levels", action="store_true", help="several checks, as levels have them")
    run.add_argument("--seconds", type=float, default=float("inf"), help="of CPU time, at most")
    run.add_argument("--beside", action="store_true", help="any checks beside a native level")
    run.add_argument("--seed", type=int, default=0)
    commands.add_parser("report")
    commands.choices["small"].add_argument("--weak", action="store_true")
    commands.choices["small"].add_argument("--scope", choices=[*SCOPES], default="")
    for name in ("small", "expressions", "report"):
        commands.choices[name].add_argument("--log", type=Path, default=Path("campaign.jsonl"))
    arguments = parser.parse_args(words)
    if arguments.command in ("night", "again", "forge"):
        return {"night": night, "again": judge_again, "forge": forge}[arguments.command](arguments)
    if arguments.command == "shown":
        from shown import shown

        counts, wrong = shown(arguments.seed, arguments.first, arguments.histories)
        print(json.dumps({"cpu": round(time.process_time()), **counts}), *wrong, sep="\n")
        return 1 if wrong else 0
    if arguments.command == "report":
        return report(arguments.log)
    result = Slice(arguments)
    {"small": small, "expressions": expressions}[arguments.command](arguments, result)
    result.save(arguments.log)
    print(json.dumps({"cpu": round(time.process_time() - result.started), **result.counts}))
    return 1 if result.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
