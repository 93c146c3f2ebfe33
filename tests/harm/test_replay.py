"""``isocheck observe --replay``: a command makes the requests of a violation again."""

import json
import sys

import pytest
from support.cli import run_here

pytestmark = pytest.mark.slow

SHOP = r"""
import json, os, sys, threading
if sys.argv[1] == "fail":
    sys.exit(f"no such request: {input()}")
import psycopg

def setup(stock):
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as c:
        c.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        c.execute("CREATE TABLE stock (id int PRIMARY KEY, n int NOT NULL, seen int DEFAULT 0)")
        c.execute("CREATE TABLE orders (id serial PRIMARY KEY, who text)")
        c.execute("INSERT INTO stock VALUES (1, %s)", (stock,))

def buy(who, meeting=None):
    tag = f"/*unit='buy {who}',route='/buy'*/"
    with psycopg.connect(os.environ["DATABASE_URL"]) as c:
        (n,) = c.execute(f"SELECT n FROM stock WHERE id = 1 {tag}").fetchone()
        if meeting:
            meeting.wait()
        if n < 1:
            return {"error": "sold out"}
        c.execute(f"UPDATE stock SET n = n - 1 WHERE id = 1 {tag}")
        query = f"INSERT INTO orders (who) VALUES (%s) RETURNING id {tag}"
        return {"order": c.execute(query, (who,)).fetchone()[0]}

match sys.argv[1:]:
    case ["setup", stock]:
        setup(int(stock))
    case ["request"]:
        answer = buy(input().split()[1])
        print(json.dumps(answer))
        sys.exit("error" in answer)
    case ["at-once"]:
        meeting = threading.Barrier(2)
        for who in ("ann", "bob"):
            threading.Thread(target=buy, args=(who, meeting)).start()
"""


@pytest.fixture
def observe(tmp_path, embedded, capfd):
    """Observes a shop with some stock, in which two customers buy at once."""
    path = tmp_path / "shop.py"
    path.write_text(SHOP)
    url = f"postgresql://postgres@/postgres?host={embedded}"

    def run(stock, *options, makes="request"):
        shop = f"{sys.executable} {path}"
        return run_here(
            capfd, "observe", url, "--spec", "ser", "--setup", f"{shop} setup {stock}",
            "--replay", f"{shop} {makes}", *options, "--", sys.executable, path, "at-once",
        )  # fmt: skip

    return run


def test_the_first_line_says_the_harm(observe, tmp_path):
    """Answers with a field named error are compared, too; the page says the same."""
    page = tmp_path / "page.html"
    run = observe(1, "--html", page)
    assert run.code == 1, run.err
    first = " ".join(run.out.split("  observed.edn")[0].split())
    assert first == (
        "INVALID, harmful: stock/1 n -1, every order gives 0 and one refusal; orders: 2 new rows, "
        "every order gives 1; and 1 more"
    )
    assert "varying" not in run.out
    assert "(/buy)" in run.out
    assert '"word":"harmful"' in page.read_text()


def test_harmless_violations_are_noted_if_asked(observe):
    """The verdict stays invalid; only the exit code is another."""
    run = observe(1000, "--harmless", "note", "-o", "json")
    assert run.code == 0, run.err
    (report,) = map(json.loads, run.out.splitlines())
    assert (report["verdict"], report["noted"]) == ("invalid", True)
    assert report["harm"]["kind"] == "harmless"
    assert sorted(report["harm"]["order"]) == ["buy ann", "buy bob"]
    assert report["harm"]["played_again"]
    assert report["groups"]["groups"][0]["programs"] == ["/buy"]


def test_a_command_that_fails_is_named(observe):
    """The harm is unknown, and the first line says how the command failed."""
    run = observe(1, "--harmless", "note", makes="fail")
    assert run.code == 1, run.err
    assert run.out.startswith("INVALID, harm unknown: the violation did not occur again")
    assert "a request failed (exit code 1: no such request: buy " in " ".join(run.out.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--harmless", "note"), "--harmless note needs --replay"),
        (("--ignore", "stock.seen"), "--ignore needs --replay"),
        (("--replay", "no-such-program x"), "--replay: cannot run the command"),
        (("--replay", "'"), "--replay: not a command"),
        (("--setup", "no-such-program"), "--setup: cannot run the command"),
        (("--prepare", "no-such-program"), "--setup: cannot run the command"),
    ],
)
def test_mistakes_of_the_command_line(capfd, options, message):
    run = run_here(capfd, "observe", "postgres", "--spec", "ser", *options, "--", "true")
    assert run.code == 2
    assert message in run.err
