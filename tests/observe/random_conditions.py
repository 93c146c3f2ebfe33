"""Random conditions and rows, to compare what the server says of images with its own answers.

An application asks each condition of a table, and afterwards changes all its rows. A row version is
in the answer if and only if the condition is true for it, so the conditions that the server
evaluates on images at the end must select exactly the versions of each answer.

    python -m tests.observe.random_conditions FIRST COUNT [CONDITIONS [ROWS]]
"""

import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

import psycopg

WORDS = [
    "", "a", "A", "abc", "ABC", "Äpfel", "zebra", "O'Hara", 'q"uote', "back\\slash", "com,ma",
    "(par)", "{br}", "  sp ", "NULL", "tab\tnl\n", "e\u0301", "ß", "10", "%", "a_b", "😀", "x" * 70,
]  # fmt: skip
TYPES = {
    "i": ("int", ["0", "1", "-1", "2", "3", "7", "2147480"]),
    "i8": ("bigint", ["0", "9007199254740993", "-9223372036854775808"]),
    "n": ("numeric", ["0", "1.0", "1.00", "-3.14159265358979323846264338", "NaN", "Infinity"]),
    "n2": ("numeric(8, 2)", ["0.10", "99.99", "-1.50"]),
    "f": ("float8", ["0", "-0", "0.1", "NaN", "Infinity", "1e300", "0.30000000000000004"]),
    "f4": ("real", ["0.1", "16777217", "NaN"]),
    "b": ("bool", ["t", "f"]),
    "s": ("text", WORDS),
    "v": ("varchar(8)", [word[:8] for word in WORDS]),
    "ch": ("char(6)", [word[:6] for word in WORDS]),
    "sc": ('text COLLATE "C"', WORDS),
    "d": ("date", ["2026-02-03", "2024-02-29", "0044-03-15 BC", "infinity", "9999-12-31"]),
    "ts": ("timestamp(3)", ["2026-11-01 01:30:00.123", "infinity", "0001-01-01 BC"]),
    "tz": ("timestamptz", ["2026-11-01 01:30:00-04", "2026-11-01 01:30:00-05", "infinity",
                           "2026-02-03 00:00:00.000001+00", "1880-01-01 00:00:00+00"]),
    "tm": ("time", ["00:00", "24:00", "13:14:15.000001"]),
    "iv": ("interval", ["1 mon", "30 days", "-1 day 2 hours", "P1Y2M3DT4H5M6.7S"]),
    "e": ("mood", ["sad", "ok", "happy"]),
    "dp": ("posint", ["1", "5", "9"]),
    "dl": ("lc", WORDS),
    "a": ("int[]", ["{}", "{1,2}", "{NULL,3}", "[5:6]={7,8}", "{{1,2},{3,4}}"]),
    "ta": ("text[]", ["{}", '{a,"b c",NULL,"NULL"}']),
    "j": ("json", ['{"a": 1, "a": 2}', "null", '"s"', "[1, 2.50]"]),
    "jb": ("jsonb", ['{"a":1,"b":[1,2]}', "null", "1.50", '{"k":{"z":[true,null]}}', "[]"]),
    "u": ("uuid", ["00000000-0000-0000-0000-000000000001", "ffffffff-ffff-ffff-ffff-ffffffffffff"]),
    "by": ("bytea", ["\\x00ff", "\\x", "\\x275c"]),
    "rg": ("int4range", ["[1,5)", "empty", "(,3)"]),
    "ip": ("inet", ["10.0.0.1", "10.0.0.0/8", "::1"]),
    "bt": ("bit(4)", ["1010", "0000"]),
    "tv": ("tsvector", ["'a':1A 'b':2", "'fat':2 'rat':3"]),
}  # fmt: skip
TEXTS = ["s", "v", "ch", "sc", "dl"]
CITEXT = ["ct = 'ABC'", "ct LIKE 'a%'", "lower(ct) = 'abc'", "ct < 'B'"]
# In each, {t} is a text column, {w} a word, {n} a small number, and {l} a pattern.
ATOMS = [
    "{t} LIKE {l}", "{t} ILIKE {l}", "{t} ~ '^[a-z]+$'", "{t} ~* 'abc|SS'", "{t} < {w}",
    "{t} >= {w}", "{t} <> {w}", "{t} BETWEEN 'a' AND {w}", "upper({t}) = upper({w})",
    "length({t}) % 2 = 0", "i + late > {n}", "i * 2 = gs", "COALESCE(i, {n}) > dp",
    "CASE WHEN b THEN i > 1 WHEN i IS NULL THEN NULL ELSE late = 7 END", "n = 1", "n2 * 3 > {n}",
    "f < 0.3", "f = 'NaN'", "f4 = 0.1", "f::text = '-0'", "d + 7 > date '2026-02-05'",
    "extract(dow from ts) > 3", "extract(epoch from tz) > {n}", "date_trunc('day', tz) = tz",
    "tz::date = date '2026-11-01'", "tz::text LIKE '%/2026%'", "tz AT TIME ZONE 'UTC' > ts",
    "d::text LIKE '%/02/%'", "iv > '29 days'", "iv::text LIKE 'P%'", "ts + iv > '2026-03-01'",
    "e > 'sad'", "e::text < 'ok'", "a @> ARRAY[{n}]", "a[1] = 1", "array_lower(a, 1) = 5",
    "array_ndims(a) = 2", "'NULL' = ANY(ta)", "ta[3] IS NULL AND ta IS NOT NULL",
    "j::text LIKE '%\"a\": 1%'", "j->>'a' = '2'", "json_typeof(j) = 'null'", "jb @> '{{\"a\":1}}'",
    "jb->'k'->'z'->>0 = 'true'", "jb::text = '1.50'", "u > '7fffffff-0000-0000-0000-000000000000'",
    "by::text LIKE '%\\\\%'", "length(by) = 0", "rg @> 2", "isempty(rg)", "ip << '10.0.0.0/8'",
    "host(ip) LIKE '10%'", "bt & B'1000' = B'1000'", "tv @@ to_tsquery('simple', 'fat|a:a')",
    "s = sc::text", "s || v = 'aa'", "octet_length(ch) > 3", "ch = 'a'", "ch || 'x' = 'ax'",
    "md5(s) < 'a'", "format('%s', d) = '03/02/2026'", "i IS DISTINCT FROM 1", "(i, late) > (1, 7)",
    "i = ANY('{{1,2,3}}')", "i IN ({n}, 2, NULL)", "10 / i > 1", "(jb->>'a')::int = 1",
    "to_char(tz, 'HH24') > '05'", "gv LIKE 'a%'", "s::int = 10", "tz < now()", "d = current_date",
    "num_nulls(i, n, f) > 1", "trim(ch) = 'a'", "position('b' in s) = 2", "d = 'today'",
    "lie(i) > 0", "i ### 1", "t IS NOT NULL", "s < current_user", "random() < 2", "dp > 4.5",
]  # fmt: skip
NEVER = ("lie(", "###", "t IS NOT NULL", "current_user", "random", "'today'")
ORDERS = ["s", "id DESC", "t.id", "n DESC", "lower(s), tz DESC NULLS LAST", "f, i", "e, j::text"]
SETTINGS = [
    ("UTC", "ISO, MDY", "postgres"), ("America/New_York", "SQL, DMY", "iso_8601"),
    ("Asia/Kolkata", "German", "sql_standard"),
]  # fmt: skip


def definitions(random, rows, *, citext):
    """Return the statements that define the table and its rows."""
    columns = {**TYPES, **({"ct": ("citext", WORDS)} if citext else {})}
    made = ", ".join(f"{name} {type_}" for name, (type_, _) in columns.items())
    yield "DROP SCHEMA public CASCADE"
    yield "CREATE SCHEMA public"
    if citext:
        yield "CREATE EXTENSION citext"
    yield "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')"
    yield "CREATE DOMAIN posint AS int CHECK (value > 0)"
    yield 'CREATE DOMAIN lc AS text COLLATE "C"'
    yield (
        f"CREATE TABLE t (id int PRIMARY KEY, dropped int, {made}, "
        "gs int GENERATED ALWAYS AS (i * 2) STORED, gv text GENERATED ALWAYS AS (s || '!') STORED)"
    )
    yield "ALTER TABLE t DROP COLUMN dropped"
    yield "ALTER TABLE t ADD COLUMN late int DEFAULT 7"
    yield "CREATE TABLE hidden (id int PRIMARY KEY, v int)"
    yield "INSERT INTO hidden VALUES (1, 1)"
    yield (
        "CREATE FUNCTION lie(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS "
        "'BEGIN RETURN $1 * (SELECT v FROM hidden WHERE id = 1); END'"
    )
    yield "CREATE OPERATOR ### (LEFTARG = int, RIGHTARG = int, FUNCTION = int4gt)"
    for number in range(rows):
        values = []
        for type_, texts in columns.values():
            text = random.choice(texts).replace("'", "''")
            cast = f"'{text}'::{type_.split(' COLL')[0]}"
            values.append("NULL" if random.random() < 0.2 else cast)
        yield f"INSERT INTO t VALUES ({number}, {', '.join(values)})"


def condition(random, depth=2, *, citext=False):
    """Return a random condition on the table."""
    draw = random.random()
    if depth and draw < 0.4:
        joined = random.choice(("AND", "OR"))
        parts = [condition(random, depth - 1, citext=citext) for _ in range(2)]
        return f"({parts[0]}) {joined} ({parts[1]})"
    if depth and draw < 0.5:
        return f"NOT ({condition(random, depth - 1, citext=citext)})"
    if citext and draw > 0.97:
        return random.choice(CITEXT)
    word = "'" + random.choice(WORDS).replace("'", "''") + "'"
    pattern = random.choice(["'a%'", "'%A%'", "'_'", "'O%'", "'%é%'", "'%ß'", "'%\\\\%'"])
    return random.choice(ATOMS).format(
        t=random.choice(TEXTS), w=word, n=random.randrange(-2, 12), l=pattern
    )


def play(observed, seed, conditions, rows, *, citext=False):
    """Run an application that asks random conditions; return counts, and what differs."""
    draw = random.Random(seed)
    observed.direct(*definitions(draw, rows, citext=citext))
    with psycopg.connect(observed._conninfo) as direct:
        versions = dict(direct.execute("SELECT id, xmin::text || ctid::text FROM t").fetchall())
    observed.start()
    counts, differing, in_block = Counter(), [], {}
    zone, dates, intervals = SETTINGS[seed % len(SETTINGS)]
    with observed.connect(autocommit=True, cursor_factory=psycopg.RawCursor) as session:
        session.execute(f"SET TimeZone = '{zone}'")
        session.execute(f"SET DateStyle = '{dates}'")
        session.execute(f"SET IntervalStyle = '{intervals}'")
        for n in range(conditions):
            text = condition(draw, citext=citext)
            order = draw.choice(ORDERS)
            more = f" ORDER BY {order} LIMIT {draw.randrange(1, 9)}" if n % 5 == 0 else ""
            block = f"WITH x{n} AS (SELECT id FROM t WHERE {text}) SELECT id FROM x{n}"
            is_block = n % 5 in (1, 2)
            try:
                asked = block if is_block else f"SELECT id FROM t WHERE {text}{more}"
                ids = [key for (key,) in session.execute(asked).fetchall()]
                if is_block:
                    in_block[f"WITH x{n} "] = {versions[key] for key in ids}
            except psycopg.Error:
                counts["errors"] += 1
        session.execute("UPDATE t SET i = COALESCE(i, 0) + 1, s = s || 'z', jb = '[1]'")
    history = observed.observer.history
    observed.stop()
    images = {number for number, _ in history.images.of("t", 0, rows)}
    for read in history.evaluated_reads:
        evaluated = read.condition
        if any(word in read.shown for word in NEVER):
            counts["must be refused"] += 1
            if not evaluated.reason:
                differing.append((read.shown, "accepted"))
            continue
        if evaluated.is_defect:
            differing.append((read.shown, evaluated.reason))
        elif evaluated.reason:
            counts["refused"] += 1
        elif evaluated.condition.order:
            counts["ordered pairs"] += len(images)
            answer = {*read.rows}
            inside, tied = evaluated.matches & images, evaluated.ties & images
            if not inside <= answer <= inside | tied:
                differing.append((read.shown, sorted(inside ^ answer)))
        else:
            counts["pairs in blocks" if read.is_loose else "pairs"] += len(images)
            answer = {*read.rows}
            if read.is_loose:
                answer = in_block[f"{read.shown.partition(' AS ')[0]} "]
            inside = evaluated.matches & images
            if inside != answer or not inside <= {*read.rows}:
                differing.append((read.shown, sorted(inside ^ answer)))
    return counts, differing


def main():
    """Play many applications, and print what differs."""
    sys.path[:0] = ["tests", "."]
    from isolang.run.targets import target_named
    from tests.observe.conftest import Observed

    first, number, *sizes = map(int, sys.argv[1:])
    conditions, rows = (*sizes, 60, 40)[:2] if sizes else (60, 40)
    total, target = Counter(), target_named("postgres")
    target.start()
    try:
        for seed in range(first, first + number):
            folder = Path(tempfile.mkdtemp())
            made = Observed(target.server.folder, folder / "observed.edn", 10_000)
            counts, differing = play(made, seed, conditions, rows, citext=True)
            total += counts
            for text, why in differing:
                print("DIFFERS", seed, text, why)
    finally:
        target.close()
    print(dict(total))


if __name__ == "__main__":
    main()
