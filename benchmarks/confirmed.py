"""Counts how many predictions PostgreSQL confirms, on small applications (docs/foresee.md).

    nice python benchmarks/confirmed.py [bank] [clinic] [shop] [hotel] [--calls 60] [--seeds 1-2]

Four applications are recorded at SERIALIZABLE, one call after the other: one uses psycopg with
branches, one psycopg with locks and branches, one SQLAlchemy's ORM, and one checks conditions on
rows (at most five, no two bookings that overlap, unique names, MAX + 1). Violations are predicted
for the profiles of REPEATABLE READ and READ COMMITTED. For each kind of prediction, the functions
of the application play its first instance. All predictions are counted, and each prediction that is
not confirmed is printed with the reason. A prediction *has one sequence* if each of its functions
executed only one sequence of statements in the whole run.

The exit code is 1 if a played history violates the profile of the database.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import NullPool

from isolang.foresee.played import Foreseen, PlayedPrediction
from isolang.run.targets import target_named
from isolang.testing.isolation import Isolation

LEVELS = ("repeatable read", "read committed")
Calls = Iterator[tuple[Any, tuple[Any, ...]]]


class Bank:
    """Six customers with savings and checking accounts, as in SmallBank."""

    def __init__(self, url: str) -> None:
        self.url = url

    def setup(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as c:
            c.execute("DROP TABLE IF EXISTS savings, checking")
            for table in ("savings", "checking"):
                c.execute(f"CREATE TABLE {table} (cust int PRIMARY KEY, bal int NOT NULL)")
                c.execute(f"INSERT INTO {table} SELECT n, 100 FROM generate_series(0, 5) n")

    def begin(self) -> psycopg.Connection[Any]:
        connection = psycopg.connect(self.url)
        connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        return connection

    def one(self, c: psycopg.Connection[Any], query: str, *values: object) -> Any:
        row = c.execute(query, values).fetchone()
        assert row is not None
        return row[0] if len(row) == 1 else row

    def get(self, c: psycopg.Connection[Any], table: str, cust: int) -> int:
        return int(self.one(c, f"SELECT bal FROM {table} WHERE cust = %s", cust))

    def put(self, c: psycopg.Connection[Any], table: str, cust: int, value: int) -> None:
        c.execute(f"UPDATE {table} SET bal = %s WHERE cust = %s", (value, cust))

    def balance(self, cust: int) -> int:
        with self.begin() as c:
            return self.get(c, "savings", cust) + self.get(c, "checking", cust)

    def deposit_checking(self, cust: int, amount: int) -> None:
        with self.begin() as c:
            self.put(c, "checking", cust, self.get(c, "checking", cust) + amount)

    def transact_savings(self, cust: int, amount: int) -> None:
        with self.begin() as c:
            found = self.get(c, "savings", cust)
            if found + amount >= 0:
                self.put(c, "savings", cust, found + amount)

    def amalgamate(self, cust: int, other: int) -> None:
        with self.begin() as c:
            total = self.get(c, "savings", cust) + self.get(c, "checking", cust)
            self.put(c, "savings", cust, 0)
            self.put(c, "checking", cust, 0)
            self.put(c, "checking", other, self.get(c, "checking", other) + total)

    def write_check(self, cust: int, amount: int) -> None:
        with self.begin() as c:
            savings, checking = self.get(c, "savings", cust), self.get(c, "checking", cust)
            penalty = 1 if savings + checking < amount else 0
            self.put(c, "checking", cust, checking - amount - penalty)

    def send_payment(self, cust: int, other: int, amount: int) -> None:
        with self.begin() as c:
            found = self.get(c, "checking", cust)
            if found >= amount:
                self.put(c, "checking", cust, found - amount)
                self.put(c, "checking", other, self.get(c, "checking", other) + amount)

    def calls(self, draw: random.Random, count: int) -> Calls:
        for _ in range(count):
            (a, b), amount = draw.sample(range(6), 2), draw.choice([5, 20, 60, 120])
            yield draw.choice([
                (self.balance, (a,)),
                (self.deposit_checking, (a, amount)),
                (self.transact_savings, (a, draw.choice([amount, -amount]))),
                (self.amalgamate, (a, b)),
                (self.write_check, (a, amount)),
                (self.send_payment, (a, b, amount)),
            ])  # fmt: skip


class Clinic(Bank):
    """Doctors on call and wards: some functions lock rows, and some update in one statement."""

    def setup(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as c:
            c.execute("DROP TABLE IF EXISTS doctor, ward")
            c.execute("CREATE TABLE doctor (id int PRIMARY KEY, oncall bool NOT NULL, ward int)")
            c.execute("CREATE TABLE ward (id int PRIMARY KEY, beds int, open bool)")
            c.execute("INSERT INTO doctor SELECT n, true, n % 2 FROM generate_series(0, 4) n")
            c.execute("INSERT INTO ward VALUES (0, 10, true), (1, 10, true)")

    def oncall(self, c: psycopg.Connection[Any], doctor: int) -> bool:
        return bool(self.one(c, "SELECT oncall FROM doctor WHERE id = %s", doctor))

    def leave(self, me: int, other: int) -> None:
        with self.begin() as c:
            mine, others = self.oncall(c, me), self.oncall(c, other)
            if mine and others:
                c.execute("UPDATE doctor SET oncall = false WHERE id = %s", (me,))

    def come(self, me: int) -> None:
        with self.begin() as c:
            c.execute("UPDATE doctor SET oncall = true WHERE id = %s", (me,))

    def admit(self, ward: int, doctor: int) -> None:
        with self.begin() as c:
            beds, is_open = self.one(c, "SELECT beds, open FROM ward WHERE id = %s", ward)
            if self.oncall(c, doctor) and beds > 0 and is_open:
                c.execute("UPDATE ward SET beds = %s WHERE id = %s", (beds - 1, ward))

    def release(self, ward: int) -> None:
        with self.begin() as c:
            beds = self.one(c, "SELECT beds FROM ward WHERE id = %s FOR UPDATE", ward)
            c.execute("UPDATE ward SET beds = %s WHERE id = %s", (beds + 1, ward))

    def refurbish(self, ward: int) -> None:
        with self.begin() as c:
            c.execute("UPDATE ward SET beds = beds + 2 WHERE id = %s", (ward,))

    def close(self, ward: int, doctor: int) -> None:
        with self.begin() as c:
            on = self.oncall(c, doctor)
            c.execute("UPDATE ward SET open = %s WHERE id = %s", (on, ward))

    def move(self, doctor: int, ward: int) -> None:
        with self.begin() as c:
            self.one(c, "SELECT open FROM ward WHERE id = %s FOR SHARE", ward)
            c.execute("UPDATE doctor SET ward = %s WHERE id = %s", (ward, doctor))

    def roster(self, doctor: int, other: int, ward: int) -> None:
        with self.begin() as c:
            self.oncall(c, doctor)
            self.oncall(c, other)
            self.one(c, "SELECT beds FROM ward WHERE id = %s", ward)

    def calls(self, draw: random.Random, count: int) -> Calls:
        for _ in range(count):
            (a, b), ward = draw.sample(range(5), 2), draw.randrange(2)
            yield draw.choice([
                (self.leave, (a, b)), (self.come, (a,)), (self.come, (b,)), (self.admit, (ward, a)),
                (self.release, (ward,)), (self.refurbish, (ward,)), (self.close, (ward, a)),
                (self.move, (a, ward)), (self.roster, (a, b, ward)),
            ])  # fmt: skip


class Shop:
    """Articles and customers, accessed through SQLAlchemy's ORM."""

    def __init__(self, url: str) -> None:
        class Base(DeclarativeBase):
            pass

        class Article(Base):
            __tablename__ = "article"
            id: Mapped[int] = mapped_column(primary_key=True)
            stock: Mapped[int]
            price: Mapped[int]

        class Customer(Base):
            __tablename__ = "customer"
            id: Mapped[int] = mapped_column(primary_key=True)
            credit: Mapped[int]
            level: Mapped[int]

        self.base, self.article, self.customer = Base, Article, Customer
        where = url.replace("postgresql://", "postgresql+psycopg://")
        self.engine = create_engine(where, poolclass=NullPool, isolation_level="SERIALIZABLE")

    def setup(self) -> None:
        self.base.metadata.drop_all(self.engine)
        self.base.metadata.create_all(self.engine)
        with self.begin() as s:
            s.add_all([self.article(id=n, stock=5, price=10) for n in range(4)])
            s.add_all([self.customer(id=n, credit=60, level=0) for n in range(4)])

    def begin(self) -> Any:
        return _Begun(Session(self.engine))

    def buy(self, customer: int, article: int) -> None:
        with self.begin() as s:
            what, who = s.get(self.article, article), s.get(self.customer, customer)
            if what.stock >= 1 and who.credit >= what.price:
                what.stock -= 1
                who.credit -= what.price

    def restock(self, article: int, count: int) -> None:
        with self.begin() as s:
            s.get(self.article, article).stock += count

    def reprice(self, article: int, other: int) -> None:
        with self.begin() as s:
            s.get(self.article, article).price = s.get(self.article, other).price + 1

    def top_up(self, customer: int, amount: int) -> None:
        with self.begin() as s:
            s.get(self.customer, customer).credit += amount

    def promote(self, customer: int, article: int) -> None:
        with self.begin() as s:
            what, who = s.get(self.article, article), s.get(self.customer, customer)
            if what.stock > 2:
                who.level += 1

    def report(self, article: int, customer: int) -> None:
        with self.begin() as s:
            s.get(self.article, article)
            s.get(self.customer, customer)

    def calls(self, draw: random.Random, count: int) -> Calls:
        for _ in range(count):
            customer, (a, b) = draw.randrange(4), draw.sample(range(4), 2)
            yield draw.choice([
                (self.buy, (customer, a)), (self.buy, (customer, a)), (self.restock, (a, 3)),
                (self.reprice, (a, b)), (self.top_up, (customer, 20)),
                (self.promote, (customer, a)), (self.report, (a, customer)),
            ])  # fmt: skip


class Hotel(Bank):
    """Functions that check a condition on rows, then insert, change or delete one."""

    def setup(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as c:
            c.execute("DROP TABLE IF EXISTS guest, booking, account, node, coupon")
            c.execute("CREATE TABLE guest (id serial PRIMARY KEY, room int, name text)")
            c.execute(
                "CREATE TABLE booking (id serial PRIMARY KEY, room int, first int, last int, "
                "open bool)"
            )
            c.execute("CREATE TABLE account (id serial PRIMARY KEY, name text)")
            c.execute("CREATE TABLE node (id serial PRIMARY KEY, tree int, lft int, rght int)")
            c.execute("CREATE TABLE coupon (code int PRIMARY KEY, used int)")
            c.execute("INSERT INTO coupon SELECT n, 0 FROM generate_series(0, 2) n")
            c.execute("INSERT INTO guest (room, name) SELECT n, 'x' FROM generate_series(0, 2) n")

    def check_in(self, room: int, name: str) -> None:
        """At most five guests share a room."""
        with self.begin() as c:
            if self.one(c, "SELECT count(*) FROM guest WHERE room = %s", room) < 5:
                c.execute("INSERT INTO guest (room, name) VALUES (%s, %s)", (room, name))

    def check_out(self, room: int, name: str) -> None:
        """One guest remains."""
        with self.begin() as c:
            guests = c.execute("SELECT id, name FROM guest WHERE room = %s", (room,)).fetchall()
            left = [number for number, of in guests if of == name]
            if left and len(guests) > 1:
                c.execute("DELETE FROM guest WHERE id = %s", (left[0],))

    def book(self, room: int, first: int, last: int) -> None:
        """Bookings of one room do not overlap."""
        with self.begin() as c:
            query = "SELECT id FROM booking WHERE room = %s AND open AND first < %s AND last > %s"
            if not c.execute(query, (room, last, first)).fetchall():
                c.execute(
                    "INSERT INTO booking (room, first, last, open) VALUES (%s, %s, %s, true)",
                    (room, first, last),
                )

    def close(self, room: int) -> None:
        """Close the bookings of a room, unless it has many guests."""
        with self.begin() as c:
            if self.one(c, "SELECT count(*) FROM guest WHERE room = %s", room) < 4:
                bookings = c.execute(
                    "SELECT id FROM booking WHERE room = %s AND open", (room,)
                ).fetchall()
                for (number,) in bookings:
                    c.execute("UPDATE booking SET open = false WHERE id = %s", (number,))

    def sign_up(self, name: str) -> None:
        """Names are unique, which only this check says."""
        with self.begin() as c:
            if not c.execute("SELECT id FROM account WHERE name = %s", (name,)).fetchall():
                c.execute("INSERT INTO account (name) VALUES (%s)", (name,))

    def leave(self, name: str) -> None:
        """Delete an account, so that its name is free."""
        with self.begin() as c:
            accounts = c.execute("SELECT id FROM account WHERE name = %s", (name,)).fetchall()
            for (number,) in accounts:
                c.execute("DELETE FROM account WHERE id = %s", (number,))

    def plant(self) -> None:
        """Give a new tree the next number, as django-mptt does."""
        with self.begin() as c:
            query = "SELECT tree FROM node ORDER BY tree DESC LIMIT 1"
            last = c.execute(query).fetchone()
            tree = last[0] + 1 if last else 1
            c.execute("INSERT INTO node (tree, lft, rght) VALUES (%s, 1, 2)", (tree,))

    def redeem(self, code: int, room: int) -> None:
        """Use a coupon for a room with guests, at most twice."""
        with self.begin() as c:
            guests = self.one(c, "SELECT count(*) FROM guest WHERE room = %s", room)
            used = self.one(c, "SELECT used FROM coupon WHERE code = %s", code)
            if guests and used < 2:
                c.execute("UPDATE coupon SET used = %s WHERE code = %s", (used + 1, code))

    def calls(self, draw: random.Random, count: int) -> Calls:
        for _ in range(count):
            room, name, first = draw.randrange(3), draw.choice("xyz"), draw.randrange(20)
            user = f"user{draw.randrange(4)}"
            yield draw.choice([
                (self.check_in, (room, name)), (self.check_in, (room, name)),
                (self.check_out, (room, name)), (self.book, (room, first, first + 3)),
                (self.book, (room, first, first + 3)), (self.close, (room,)),
                (self.sign_up, (user,)), (self.sign_up, (user,)), (self.leave, (user,)),
                (self.plant, ()), (self.redeem, (draw.randrange(3), room)),
            ])  # fmt: skip


class _Begun:
    """A session of the ORM with a transaction; both end when the ``with`` block ends."""

    def __init__(self, session: Any) -> None:
        self.session = session

    def __enter__(self) -> Any:
        self.session.begin()
        return self.session

    def __exit__(self, kind: Any, *_: object) -> None:
        try:
            self.session.rollback() if kind else self.session.commit()
        finally:
            self.session.close()


APPS: dict[str, Callable[[str], Any]] = {
    "bank": Bank,
    "clinic": Clinic,
    "shop": Shop,
    "hotel": Hotel,
}


def sequences(found: Foreseen) -> Mapping[str, set[tuple[object, ...]]]:
    """Return the sequences of statements that each function executed in the run."""
    run = found.predictions.run
    seen: defaultdict[str, set[tuple[object, ...]]] = defaultdict(set)
    for i, number in enumerate(run.numbers):
        history = run.history
        name = history.labels_of(number)[0].partition("(")[0]
        letters: dict[str, int] = {}
        sequence = []
        for step in run.order.programs[i].steps:
            table, _, row = history.key(step.key).partition("/")
            sequence.append((step.kind, table, letters.setdefault(row, len(letters))))
        seen[name].add(tuple(sequence))
    return seen


def why(one: PlayedPrediction) -> str:
    """Return the reason in a few words, which are equal for all predictions that fail for it."""
    for word in ("waited", "refused", "other statements", "explain", "transactions", "no call"):
        if word in one.why:
            return word
    return one.why


def main() -> int:
    """Run the campaign, print the tables, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("apps", nargs="*", default=[*APPS])
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--seeds", default="1-2", help="the first and the last")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    first, last = map(int, options.seeds.split("-"))
    total: Counter[tuple[str, str, str]] = Counter()
    profiles: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    one_sequence = [0, 0]
    server = target_named("postgres")
    server.start()
    try:
        url = f"postgresql://postgres@/postgres?host={server.server.folder}"  # type: ignore[attr-defined]
        for name in options.apps:
            for seed in range(first, last + 1):
                app = APPS[name](url)
                with tempfile.TemporaryDirectory() as folder:
                    isolation = Isolation(Path(folder))
                    isolation.setup(app.setup)
                    isolation.watch_psycopg(url)
                    for function, arguments in app.calls(random.Random(seed), options.calls):
                        isolation.call(function, *arguments)
                    for level in LEVELS:
                        began = time.process_time()
                        found = isolation.foresee(level, most=1000)
                        seen = sequences(found)
                        for reason in found.predictions.gave_up:
                            print(f"  {name} {seed} {level}, gave up: {reason}", flush=True)
                        for one in found.played:
                            confirmed = "confirmed" if one.confirmed else "not"
                            total[name, level, confirmed] += 1
                            profiles[one.profile or "not played"] += 1
                            names = {call.name for call in one.calls}
                            alone = all(len(seen[call]) == 1 for call in names)
                            if alone:
                                one_sequence[not one.confirmed] += 1
                            if not one.confirmed:
                                reasons[why(one)] += 1
                                rule = one.prediction.rule
                                print(f"  {name} {seed} {level}, {rule}: {one}", flush=True)
                        print(
                            f"{name}, seed {seed}, {level}: {len(found.confirmed)} of "
                            f"{len(found.played)} confirmed, {len(found.predictions.gave_up)} "
                            f"gave up, {time.process_time() - began:.0f} s of CPU",
                            flush=True,
                        )
                    isolation.close()
    finally:
        server.close()
    print()
    for name in options.apps:
        for level in LEVELS:
            yes, no = total[name, level, "confirmed"], total[name, level, "not"]
            print(f"{name:8} {level:16} {yes:4} of {yes + no:4}")
    yes = sum(count for (*_, what), count in total.items() if what == "confirmed")
    every = sum(total.values())
    print(f"all: {yes} of {every} confirmed ({yes / max(1, every):.1%})")
    print(f"one sequence of statements: {one_sequence[0]} of {sum(one_sequence)}")
    print("not confirmed:", dict(reasons))
    print("at the profile of the database:", dict(profiles))
    return 1 if profiles["invalid"] else 0


if __name__ == "__main__":
    sys.exit(main())
