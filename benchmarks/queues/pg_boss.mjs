// Sends 40 jobs with pg-boss, and fetches and completes them, four at once; prints how many were
// fetched twice.
import PgBoss from "pg-boss";

const boss = new PgBoss({ connectionString: process.env.DATABASE_URL, supervise: false, schedule: false });
await boss.start();
await boss.createQueue("q");
for (let i = 0; i < 40; i++) await boss.send("q", { i });
const fetched = new Map();
for (let empty = 0; empty < 2;) {
  const fetches = [0, 1, 2, 3].map(() => boss.fetch("q", { batchSize: 1 }));
  const jobs = (await Promise.all(fetches)).flat().map((job) => job.id);
  empty += jobs.length === 0;
  for (const id of jobs) fetched.set(id, (fetched.get(id) ?? 0) + 1);
  await Promise.all([...new Set(jobs)].map((id) => boss.complete("q", id)));
}
await boss.stop({ graceful: false });
const twice = [...fetched.values()].filter((number) => number > 1).length;
console.log(`jobs ${fetched.size}, twice ${twice}`);
