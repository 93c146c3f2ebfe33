"""Defers 12 jobs with procrastinate, for three workers; prints how many jobs ran twice."""

import asyncio
import os
import sys
from collections import Counter

import psycopg
from procrastinate import App, PsycopgConnector

URL = os.environ["DATABASE_URL"]
LOCK = "FOR UPDATE OF jobs SKIP LOCKED"
CLAIM = "procrastinate_fetch_job_v2"
DEFINITION = f"SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname = '{CLAIM}'"
app = App(connector=PsycopgConnector(conninfo=URL, min_size=4, max_size=8))
runs = Counter()


@app.task(name="t")
async def count(i):
    """Count the runs of a job."""
    runs[i] += 1


async def main():
    """Run the jobs, with ``planted`` without the lock of the claim."""
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        if "planted" in sys.argv:
            async with await psycopg.AsyncConnection.connect(URL, autocommit=True) as connection:
                (text,) = await (await connection.execute(DEFINITION)).fetchone()
                assert LOCK in text
                await connection.execute(text.replace(LOCK, ""))
        for i in range(12):
            await app.configure_task("t").defer_async(i=i)
        workers = (
            app.run_worker_async(wait=False, install_signal_handlers=False, listen_notify=False)
            for _ in range(3)
        )
        await asyncio.gather(*workers)


asyncio.run(main())
print(f"jobs {len(runs)}, twice {sum(number > 1 for number in runs.values())}")
