"""Random small programs, and an independent enumeration of what their serial orders give.

The programs use generated keys, counts and keys that collide (1, 2, 3), foreign keys to new rows,
answers that name rows, clocks, UUIDs, errors, and operations that only read. The enumeration
simulates every serial order in memory, and tries every renaming of the keys.
"""

import itertools
import random
import time
import uuid
from collections import Counter

import psycopg

from isolang.harm.outcome import RunOutcome, answer_of, answer_of_error, outcome_now
from isolang.harm.serial import Budget, decide_harm

SETUP = [
    "CREATE TABLE account (k int PRIMARY KEY, n int NOT NULL)",
    "INSERT INTO account VALUES (1, 1), (2, 2)",
    "CREATE TABLE parent (id bigserial PRIMARY KEY, n int NOT NULL,"
    " at timestamptz NOT NULL DEFAULT clock_timestamp())",
    "CREATE TABLE child (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    " parent bigint NOT NULL REFERENCES parent, n int NOT NULL)",
    "CREATE TABLE token (id uuid PRIMARY KEY, parent bigint REFERENCES parent, n int NOT NULL)",
    "INSERT INTO parent (n) VALUES (1), (2)",
]


class RefusedError(Exception):
    """A refusal by a program."""


def random_program(rng):
    """The steps of a program."""
    kinds = [
        ("read", 1), ("read", 2), ("put", 1, 0), ("put", 1, 1), ("put", 2, 1), ("add", 1),
        ("add", 2), ("insert if fewer", 3), ("insert if fewer", 4), ("child",), ("count",),
        ("token",), ("newest",), ("refuse if", 3), ("insert",), ("old child", 1), ("old child", 2),
        ("count",), ("read and put", 1), ("read and put", 2), ("insert if fewer", 3), ("insert",),
    ]  # fmt: skip
    steps = [rng.choice(kinds) for _ in range(rng.choice([2, 2, 3, 3, 4]))]
    if rng.random() < 0.15:
        steps = [step for step in steps if step[0] in ("read", "count", "newest")] or [("count",)]
    return steps


class Memory:
    """The database in memory; keys are numbers that count up."""

    def __init__(self):
        self.account, self.parent, self.child, self.token = {1: 1, 2: 2}, {1: 1, 2: 2}, {}, {}
        self.next = itertools.count(100)

    def get(self, k):
        return self.account[k]

    def put(self, k, n):
        self.account[k] = n

    def add(self, k):
        self.account[k] += 1

    def count(self):
        return len(self.parent)

    def newest(self):
        return max(self.parent)

    def insert(self, n):
        key = next(self.next)
        self.parent[key] = n
        return key

    def insert_child(self, parent, n):
        self.child[next(self.next)] = (parent, n)

    def insert_token(self, parent, n):
        key = next(self.next)
        self.token[key] = (parent, n)
        return key


class Database:
    """The database over a connection."""

    def __init__(self, connection):
        self.connection = connection

    def _value(self, query, *parameters):
        return self.connection.execute(query, parameters).fetchone()[0]

    def get(self, k):
        return self._value("SELECT n FROM account WHERE k = %s", k)

    def put(self, k, n):
        self.connection.execute("UPDATE account SET n = %s WHERE k = %s", (n, k))

    def add(self, k):
        self.connection.execute("UPDATE account SET n = n + 1 WHERE k = %s", (k,))

    def count(self):
        return self._value("SELECT count(*) FROM parent")

    def newest(self):
        return self._value("SELECT max(id) FROM parent")

    def insert(self, n):
        return self._value("INSERT INTO parent (n) VALUES (%s) RETURNING id", n)

    def insert_child(self, parent, n):
        self.connection.execute("INSERT INTO child (parent, n) VALUES (%s, %s)", (parent, n))

    def insert_token(self, parent, n):
        key = uuid.uuid4()
        query = "INSERT INTO token (id, parent, n) VALUES (%s, %s, %s)"
        self.connection.execute(query, (key, parent, n))
        return key


def steps_of(program, database):
    """Run a program one step at a time; the value is its answer."""
    seen, numbers, keys, parent = 1, [], [], None
    for name, *arguments in program:
        match name:
            case "read":
                seen = database.get(*arguments)
                numbers.append(seen)
            case "read and put":
                seen = database.get(*arguments)
                yield
                database.put(arguments[0], seen + 1)
            case "put":
                database.put(arguments[0], seen + arguments[1])
            case "add":
                database.add(*arguments)
            case "count":
                seen = database.count()
                numbers.append(seen)
            case "newest":
                keys.append(database.newest())
            case "insert":
                parent = database.insert(seen % 3)
                keys.append(parent)
            case "insert if fewer":
                count = database.count()
                yield
                if count < arguments[0]:
                    parent = database.insert(count)
                    keys.append(parent)
            case "child":
                if parent is None:
                    parent = database.insert(seen % 2)
                    keys.append(parent)
                yield
                database.insert_child(parent, seen % 2)
            case "old child":
                database.insert_child(arguments[0], seen % 2)
            case "token":
                keys.append(database.insert_token(parent, seen % 2))
            case "refuse if":
                if database.count() > arguments[0]:
                    raise RefusedError("too many")
        yield
    return {"numbers": numbers, "keys": keys}


def finished(generator):
    while True:
        try:
            next(generator)
        except StopIteration as end:
            return end.value


class Trial:
    """Programs that have run concurrently on a database, with their outcome.

    Attributes:
        answers: what each program returned, or the error that it raised.
        refused: the programs that the database rolled back, and that did not try again.
    """

    def __init__(self, court, programs, rng, level=None):
        self.court, self.programs = court, programs
        self.answers, self.refused = {}, set()
        court.state.restore()
        court.effects.clear()
        began = time.time()
        connections = [psycopg.connect(court.url) for _ in programs]
        for connection in connections:
            connection.execute("SET lock_timeout = '1ms'")
            connection.commit()
            connection.isolation_level = level
        running = {
            n: steps_of(program, Database(connections[n])) for n, program in enumerate(programs)
        }
        made, retries = {}, [rng.choice([0, 3]) for _ in programs]
        while running:
            n = rng.choice(list(running))
            try:
                next(running[n])
                continue
            except StopIteration as end:
                value = end.value
            except RefusedError as error:
                connections[n].rollback()
                self.answers[n], made[n] = error, answer_of_error(error)
                del running[n]
                continue
            except psycopg.Error as error:  # it waited for a lock, or was rolled back
                value = error
            try:
                if isinstance(value, psycopg.Error):
                    raise value
                connections[n].commit()
                self.answers[n], made[n] = value, answer_of(value)
            except psycopg.Error as error:
                connections[n].rollback()
                if retries[n]:  # the program tries again, which nobody sees from outside
                    retries[n] -= 1
                    running[n] = steps_of(programs[n], Database(connections[n]))
                    continue
                self.refused.add(n)
                made[n] = answer_of_error(error)
            del running[n]
        for connection in connections:
            connection.close()
        for answer in made.values():  # all programs overlapped
            answer.begin, answer.end = 0.0, 1.0
        self.outcome: RunOutcome = outcome_now(court.state, made, court.effects, began)

    def harm(self):
        def call(program):
            def run(url):
                with psycopg.connect(url) as connection:
                    return finished(steps_of(program, Database(connection)))

            return run

        calls = {f"p{n}": call(program) for n, program in enumerate(self.programs)}
        return decide_harm(
            self.court.state, self.court.operations(calls), self.outcome, self.court.effects,
            budget=Budget(clock_step=0.0),
        )  # fmt: skip

    def is_explained(self):
        """Whether some serial order gives the outcome, by simulation and all renamings."""
        live = [n for n in range(len(self.programs)) if n not in self.refused]
        rows = self.outcome.rows
        account = {int(k): int(n) for k, n in rows["account"]}
        parent = {int(i): int(n) for i, n, _ in rows["parent"]}
        child = [(int(p), int(n)) for _, p, n in rows["child"]]
        token = {i: (p and int(p), int(n)) for i, p, n in rows["token"]}
        return any(
            self._is_explained_by(order, account, parent, child, token)
            for order in itertools.permutations(live)
        )

    def _is_explained_by(self, order, account, parent, child, token):
        memory, answers = Memory(), {}
        for n in order:
            before = (
                dict(memory.account),
                dict(memory.parent),
                dict(memory.child),
                dict(memory.token),
            )
            try:
                answers[n] = finished(steps_of(self.programs[n], memory))
            except RefusedError as error:
                answers[n] = error
                memory.account, memory.parent, memory.child, memory.token = before
        sizes = [len(memory.parent), len(memory.child), len(memory.token)]
        if memory.account != account or sizes != [len(parent), len(child), len(token)]:
            return False
        new = [key for key in memory.parent if key >= 100]
        real = [key for key in parent if key > 2]
        for keys in itertools.permutations(real):
            names = {1: 1, 2: 2, None: None} | dict(zip(new, keys, strict=True))
            if {names[k]: n for k, n in memory.parent.items()} != parent:
                continue
            if Counter((names[p], n) for p, n in memory.child.values()) != Counter(child):
                continue
            for tokens in itertools.permutations(token):
                of_token = dict(zip(memory.token, tokens, strict=True))
                renamed = {of_token[k]: (names[p], n) for k, (p, n) in memory.token.items()}
                if renamed == token and all(
                    self._is_same(answers[n], self.answers[n], names | of_token) for n in order
                ):
                    return True
        return False

    @staticmethod
    def _is_same(simulated, answer, names):
        if isinstance(simulated, Exception) or isinstance(answer, Exception):
            return isinstance(simulated, Exception) and isinstance(answer, Exception)
        keys = [names[key] for key in simulated["keys"]]
        real = [str(key) if isinstance(key, uuid.UUID) else key for key in answer["keys"]]
        return simulated["numbers"] == answer["numbers"] and keys == real


def trials(court, seed, many):
    """Random programs that have run concurrently."""
    rng = random.Random(seed)
    levels = [None, None, psycopg.IsolationLevel.REPEATABLE_READ]
    for _ in range(many):
        programs = [random_program(rng) for _ in range(rng.choice([2, 2, 3]))]
        yield Trial(court, programs, rng, rng.choice(levels))
