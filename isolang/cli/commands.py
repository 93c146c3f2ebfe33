"""The commands of ``isocheck``: what each is given, and where it is done.

What a command does is imported when it runs, so that ``--help`` and typing errors cost nothing.
"""

from __future__ import annotations

from typing import Final

from isolang.cli import arguments, spec
from isolang.cli.arguments import Command, Group, Parser, at_least, positive
from isolang.cli.generate import declare as declare_generate


def _check(p: Parser) -> None:
    p.argument("histories", "HISTORY", "Files, folders of logs, or -.", nargs="+")
    p.repeated(
        "--spec", "-s", dest="specs", metavar="SPEC", required=True,
        help="A level (si, ser, …) or a .iso file; may be repeated.",
    )  # fmt: skip
    arguments.output(p, "text", "json", "edn")
    arguments.reading(p)
    p.option(
        "--timeout", metavar="S", type=positive, help="Seconds for each verdict, reading included."
    )
    p.option("--memory", metavar="MB", type=positive, help="Megabytes for each history.")
    arguments.no_certify(p)
    p.option(
        "--certificate", dest="certificates", metavar="DIR", default="",
        help="Save certificates here.",
    )  # fmt: skip
    p.option(
        "--minimal", metavar="FILE", default="",
        help="Write the smallest part found that is still invalid (EDN).",
    )  # fmt: skip
    p.option("--jobs", "-j", metavar="N", type=at_least(1), default=1, help="Histories at a time.")
    p.option(
        "--threads", metavar="N", type=at_least(1),
        help="On one history at a time; by default all processors, up to 8.",
    )  # fmt: skip
    arguments.seed(p)
    p.switch("--profile", help="Say where the time went (text output; JSON has it).")
    p.option(
        "--solver", metavar="NAME", default="auto",
        help="What decides: auto, native, sat, clingo, z3, pysmt; sat:NAME and pysmt:NAME for one "
        "of theirs.",
    )  # fmt: skip
    p.option(
        "--encoding", metavar="NAME", default="auto",
        help="How the problem is put to it: auto, event-graph, one_variable, monosat, relational, "
        "…",
    )  # fmt: skip
    arguments.prune(p)
    p.option(
        "--cross-check", metavar="[PAIR|all]", default="",
        help="Ask other pairs, too: one that shares nothing with the first, all, or "
        "encoding/solver/prune.",
    )  # fmt: skip
    arguments.include(p)


def _verify(p: Parser) -> None:
    p.argument("certificate", "CERT", "Of --certificate.")
    p.argument("history", "HISTORY", "What it is about.")


def _convert(p: Parser) -> None:
    p.argument("source", "IN", "A history.")
    p.argument("target", "OUT", "Where to write it.")
    p.option(
        "--to", metavar="FORMAT", required=True,
        help="edn, jepsen-json, dbcop, dbcop-json, hist, cobra, viper, plume or awdit.",
    )  # fmt: skip
    arguments.reading(p)
    p.switch("--renumber", help="Give numbers to keys and values that OUT cannot name.")
    p.repeated(
        "--drop", metavar="WHAT",
        help="Leave out what OUT cannot say: real-time, failed-operations, unknown-reads, "
        "empty-transactions, order-after-unknown.",
    )  # fmt: skip


def _levels(p: Parser) -> None:
    arguments.history(p)
    arguments.output(p, "text", "json")
    arguments.reading(p)
    p.option("--timeout", metavar="S", type=positive, help="Seconds for each level.")
    arguments.no_certify(p)
    arguments.seed(p)


def _stats(p: Parser) -> None:
    arguments.history(p)
    arguments.output(p, "text", "json")
    arguments.reading(p)


def _compare(p: Parser) -> None:
    p.argument("histories", "HISTORY", "Files or folders of logs.", nargs="+")
    arguments.spec(p)
    arguments.output(p, "text", "json", "csv")
    p.repeated(
        "--only", metavar="NAME",
        help="Only pairs with this encoding, solver or encoding/solver; may be repeated.",
    )  # fmt: skip
    p.repeated(
        "--prune", metavar="STAGE",
        help="Stages of pruning, by default fixpoint; may be repeated.",
    )  # fmt: skip
    p.option(
        "--repeat", metavar="N", type=at_least(1), default=1,
        help="Runs of each; the median counts.",
    )  # fmt: skip
    p.option("--timeout", metavar="S", type=positive, default=60.0, help="Seconds for each run.")
    p.option("--memory", metavar="MB", type=positive, help="Megabytes for each run.")
    p.option("--plot", metavar="FILE", default="", help="Draw time against size (.svg, .png …).")
    arguments.seed(p)
    arguments.reading(p)
    arguments.include(p)


def _run(p: Parser) -> None:
    p.argument(
        "target",
        "TARGET",
        "postgres, mariadb, sqlite, duckdb, redis, etcd, exec:COMMAND; or a URL.",
    )
    p.option("--level", metavar="LEVEL", default="", help="Of the database.")
    p.option("--claims", metavar="SPEC", default="", help="What to judge by.")
    p.option("--workload", "-w", metavar="NAME", default="auto", help="What clients do.")
    p.option("--seconds", metavar="S", type=positive, default=30.0, help="How long.")
    p.option("--transactions", metavar="N", type=at_least(1), help="Stop after so many.")
    p.option("--sessions", metavar="N", type=at_least(1), default=10, help="Clients at a time.")
    p.option("--keys", metavar="N", type=at_least(1), help="Of the workload.")
    p.option("--operations", metavar="N", type=at_least(1), help="Of a transaction.")
    p.option(
        "--table-prefix",
        dest="prefix",
        metavar="NAME",
        default="isocheck_",
        help="Names of tables begin so.",
    )
    p.option("--save", dest="folder", metavar="DIR", default="isocheck-runs", help="Where to save.")
    p.switch("--to-the-end", help="Go on after a violation.")
    arguments.output(p, "text", "json")
    arguments.seed(p)


def _encode(p: Parser) -> None:
    arguments.history(p)
    p.argument("target", "FILE", "Where to write; - for stdout.")
    arguments.spec(p)
    p.option(
        "--to",
        choices=("dimacs", "smt2", "gnf"),
        metavar="dimacs|smt2|gnf",
        required=True,
        help="What to write.",
    )
    p.option("--encoding", metavar="NAME", required=True, help="One of docs/encodings.md.")
    arguments.prune(p)
    arguments.reading(p)
    arguments.include(p)


ISOCHECK: Final = Group(
    about="Tell whether a database gives the isolation it promises. "
    "`isocheck --spec si history.edn` is short for `isocheck check --spec si history.edn`.",
    epilog="Exit codes: 0 valid; 1 a history is invalid; 2 an input cannot be used; "
    "3 unknown; 4 a certificate was rejected, or solvers disagree. `isocheck --version` "
    "prints the version.",
    commands={
        "check": Command("Check histories against isolation levels.", _check, "check:check"),
        "verify": Command(
            "Check a certificate again, with the checkers in plain Python.",
            _verify,
            "verify:verify",
        ),
        "convert": Command("Write a history in another format.", _convert, "convert:convert"),
        "levels": Command(
            "Find the strongest levels that a history satisfies, and the weakest it violates.",
            _levels,
            "levels:levels",
        ),
        "stats": Command("Say what a history contains.", _stats, "stats:stats"),
        "generate": Command(
            "Write a simulated history whose truth is known.",
            declare_generate,
            "generate:generate",
        ),
        "compare": Command(
            "Run every encoding with every solver on the same histories.",
            _compare,
            "compare:compare",
        ),
        "encode": Command(
            "Write what a solver would get, for any solver there is.",
            _encode,
            "encode:encode",
        ),
        "run": Command("Test a real database.", _run, "run:command"),
        "spec": spec.SPEC,
    },
)
