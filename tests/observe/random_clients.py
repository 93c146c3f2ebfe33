"""Clients that run random transactions together, of whatever statements a test gives them."""

import threading
from random import Random

from psycopg import errors

CONFLICTS = (errors.SerializationFailure, errors.DeadlockDetected)


def play(connect, level, seed, run, *, inside, refused, transactions, clients=4):
    """Run random transactions at a level; what the server refuses is rolled back.

    ``run(connection, random)`` runs a statement, which is ``inside`` a savepoint of its own with
    this probability. Besides conflicts, the server may only refuse with the errors in ``refused``.
    """

    def client(number):
        random = Random(f"{seed}/{number}")
        with connect() as connection:
            connection.isolation_level = level
            for _ in range(transactions):
                try:
                    for _ in range(random.randrange(1, 5)):
                        if random.random() >= inside:
                            run(connection, random)
                            continue
                        try:
                            with connection.transaction(force_rollback=random.random() < 0.3):
                                run(connection, random)
                        except errors.IntegrityError as error:
                            if not isinstance(error, refused):
                                raise
                    if random.random() < 0.1:
                        connection.rollback()
                    connection.commit()
                except (*CONFLICTS, *refused):
                    connection.rollback()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
