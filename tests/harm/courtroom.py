"""Runs calls concurrently, and asks for the harm of what they did."""

import threading
import time
from contextlib import contextmanager, suppress

import psycopg

from isolang.harm.outcome import Effects, Operation, made_call, outcome_now
from isolang.harm.serial import Budget, decide_harm
from isolang.harm.state import PreparedState
from isolang.observe.wire.address import ServerAddress


class Courtroom:
    """A database of an embedded server, prepared by statements.

    Attributes:
        state: the prepared state.
        effects: what the calls report.
    """

    def __init__(self, folder, setup, effects=None, **options):
        self.url = f"postgresql://postgres@/postgres?host={folder}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            for statement in setup:
                connection.execute(statement)
        address = ServerAddress(
            conninfo=f"host={folder} user=postgres dbname=postgres", host=folder, port=5432,
            database="postgres",
        )  # fmt: skip
        self.state = PreparedState(address, **options)
        self.effects = effects or Effects()

    def operations(self, calls, clients=None):
        """The calls by number."""
        return {
            number: Operation(
                name=name, call=lambda call=call: call(self.url), client=(clients or {}).get(name)
            )
            for number, (name, call) in enumerate(calls.items())
        }

    def run_concurrently(self, operations, *, later=(), wait=0.15):
        """The outcome of calls that all wait for each other after their first SELECT.

        Those in ``later`` begin when the others have ended.
        """
        self.effects.clear()
        answers = {}
        began = time.time()

        def run(number):
            answers[number] = made_call(operations[number].call)[0]

        first = [number for number in operations if number not in later]
        with meeting(len(first), wait):
            threads = [threading.Thread(target=run, args=(number,)) for number in first]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for number in later:
            run(number)
        return outcome_now(self.state, answers, self.effects, began)

    def harm(self, calls, *, later=(), clients=None, wait=0.15, **options):
        """The harm of calls that ran concurrently."""
        operations = self.operations(calls, clients)
        outcome = self.run_concurrently(operations, later=later, wait=wait)
        options.setdefault("budget", Budget(clock_step=0.0))  # waiting takes long
        return decide_harm(self.state, operations, outcome, self.effects, **options)

    def close(self):
        self.state.close()


@contextmanager
def meeting(many, wait):
    """Let each thread wait once, after its first SELECT, until all have got there."""
    barrier, here = threading.Barrier(many), threading.local()
    plain = psycopg.Cursor.execute

    def execute(cursor, query, *args, **options):
        result = plain(cursor, query, *args, **options)
        if str(query).startswith("SELECT") and not hasattr(here, "met"):
            here.met = True
            with suppress(threading.BrokenBarrierError):
                barrier.wait(wait)
        return result

    psycopg.Cursor.execute = execute
    try:
        yield
    finally:
        psycopg.Cursor.execute = plain
