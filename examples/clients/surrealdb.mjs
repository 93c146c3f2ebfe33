// SurrealDB, embedded in Node: npm install surrealdb @surrealdb/node. One process has the engine, and a session connects to it:
//   node surrealdb.mjs serve surrealkv:///tmp/data /tmp/surreal & isocheck run exec:"node surrealdb.mjs /tmp/surreal"
import { createConnection, createServer } from "node:net";
import { createInterface } from "node:readline";

const row = "type::record('item', $key)";
const named = (rows) => Object.fromEntries(rows.map((one) => [one.k, one.l ?? one.v ?? null]));
const there = (rows) => rows.length > 0;
const statements = { // of each request, with what its rows mean
  read: [`SELECT * FROM ${row}`, ([one], { list }) => (!one ? "deleted" : list ? one.l : one.v ?? null)],
  write: [`UPDATE ${row} SET v = $value`, there],
  append: [`UPDATE ${row} SET l += $value`, there],
  insert: [`CREATE ${row} SET k = $key, v = $value`, there],
  delete: [`DELETE ${row} RETURN BEFORE`, there],
  scan: ["SELECT * FROM item WHERE k >= $low AND k <= $high", named],
  select: ["SELECT * FROM item WHERE v >= $low AND v <= $high", named],
  change: ["UPDATE item SET v = $value WHERE v >= $low AND v <= $high", (rows) => rows.map((one) => one.k)],
};

async function open(engine) {
  const [{ Surreal }, { createNodeEngines }] = await Promise.all([import("surrealdb"), import("@surrealdb/node")]);
  const db = new Surreal({ engines: createNodeEngines() });
  await db.connect(engine);
  await db.use({ namespace: "isocheck", database: "isocheck" });
  return db;
}

async function serve(db, connection) { // one session
  let transaction, session;
  const end = async (how) => { const one = transaction; transaction = null; await one?.[how](); };
  const does = {
    hello: async () => ({ name: (await db.version()).version, steps: true, levels: [["snapshot", "si"]], lacks: ["savepoints"] }),
    remove: () => db.query("REMOVE TABLE IF EXISTS item").then(() => true),
    async setup({ registers, lists }) {
      await db.query("DEFINE TABLE item; DEFINE INDEX k ON item FIELDS k; DEFINE INDEX v ON item FIELDS v");
      await db.query("INSERT INTO item $rows", { rows: [...registers.map((k) => ({ id: k, k })), ...lists.map((k) => ({ id: k, k, l: [] }))] });
    },
    begin: async () => { transaction = await (session ??= await db.forkSession()).beginTransaction(); },
    commit: () => end("commit"),
    rollback: () => end("cancel"),
  };
  connection.on("error", () => {}); // it is closed, too
  for await (const line of createInterface({ input: connection })) {
    const request = JSON.parse(line), answer = { id: request.id, type: "ok" }, [text, result] = statements[request.do] ?? [];
    try {
      answer.value = await (text ? transaction.query(text, request).then(([rows]) => result(rows, request)) : does[request.do](request)) ?? null;
    } catch (error) {
      const refused = request.do !== "commit" || /conflict|can be retried/i.test(error.message);
      Object.assign(answer, { type: refused ? "fail" : "info", error: String(error.message) });
    }
    connection.write(JSON.stringify(answer) + "\n");
  }
  await end("cancel").catch(() => {});
}

const [first, engine, socket] = process.argv.slice(2);
if (first === "serve") { const db = await open(engine); createServer((one) => serve(db, one)).listen(socket); }
else { const connection = createConnection(first); process.stdin.pipe(connection).pipe(process.stdout); }
