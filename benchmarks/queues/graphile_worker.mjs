// Adds 12 jobs to graphile-worker, for four workers; prints how many jobs ran twice.
import { run, makeWorkerUtils } from "graphile-worker";

const connectionString = process.env.DATABASE_URL;
const utils = await makeWorkerUtils({ connectionString });
await utils.migrate();
const runs = new Map();
const taskList = { t: async ({ i }) => { runs.set(i, (runs.get(i) ?? 0) + 1); } };
const options = {
  connectionString, taskList, concurrency: 1, noHandleSignals: true, pollInterval: 40, parsedCronItems: [],
};
const workers = await Promise.all([0, 1, 2, 3].map(() => run(options)));
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
for (let i = 0; i < 12; i++) {
  await utils.addJob("t", { i });
  await pause(60);
}
await pause(800);
await Promise.all(workers.map((worker) => worker.stop()));
await utils.release();
const twice = [...runs.values()].filter((number) => number > 1).length;
console.log(`jobs ${runs.size}, twice ${twice}`);
