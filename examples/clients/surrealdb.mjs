// SurrealDB, embedded in Node: npm install surrealdb @surrealdb/node
//
//   node surrealdb.mjs serve surrealkv:///tmp/data /tmp/surreal &   # one process has the engine
//   isocheck run exec:'node surrealdb.mjs /tmp/surreal' --seconds 30
//
// Each session is a connection to that process, with a transaction of its own.
import { createConnection, createServer } from "node:net";
import { createInterface } from "node:readline";

const ROW = "type::record('item', $key)";
const DO = {
  read: (q, { key, list }) => q(`SELECT * FROM ${ROW}`, { key }).then(([row]) => (!row ? "deleted" : list ? row.l : row.v ?? null)),
  write: (q, { key, value }) => q(`UPDATE ${ROW} SET v = $value`, { key, value }).then((rows) => rows.length > 0),
  append: (q, { key, value }) => q(`UPDATE ${ROW} SET l += $value`, { key, value }).then((rows) => rows.length > 0),
  insert: (q, { key, value }) => q(`CREATE ${ROW} SET k = $key, v = $value`, { key, value }).then(() => true),
  delete: (q, { key }) => q(`DELETE ${ROW} RETURN BEFORE`, { key }).then((rows) => rows.length > 0),
  scan: (q, { low, high }) => q("SELECT * FROM item WHERE k >= $low AND k <= $high", { low, high }).then(named),
  select: (q, { low, high }) => q("SELECT * FROM item WHERE v >= $low AND v <= $high", { low, high }).then(named),
  change: (q, values) => q("UPDATE item SET v = $value WHERE v >= $low AND v <= $high", values).then((rows) => rows.map((row) => row.k)),
};
const named = (rows) => Object.fromEntries(rows.map((row) => [row.k, row.l ?? row.v ?? null]));

class Session {
  constructor(db) {
    this.db = db;
  }

  async do(request) {
    const query = (text, values) => this.transaction.query(text, values).then(([rows]) => rows);
    switch (request.do) {
      case "hello":
        return { name: `SurrealDB ${(await this.db.version()).version.split("-")[1]}`, steps: true, levels: [["snapshot", "si"]], lacks: ["savepoints"] };
      case "setup":
        await this.db.query("DEFINE TABLE item; DEFINE INDEX k ON item FIELDS k; DEFINE INDEX v ON item FIELDS v");
        await this.db.query("INSERT INTO item $rows", {
          rows: [...request.registers.map((k) => ({ id: k, k })), ...request.lists.map((k) => ({ id: k, k, l: [] }))],
        });
        return true;
      case "remove":
        await this.db.query("REMOVE TABLE IF EXISTS item");
        return true;
      case "begin":
        this.session ??= await this.db.forkSession();
        this.transaction = await this.session.beginTransaction();
        return true;
      case "commit":
      case "rollback": {
        const { transaction } = this;
        this.transaction = null;
        if (transaction) await (request.do === "commit" ? transaction.commit() : transaction.cancel());
        return true;
      }
      default:
        return DO[request.do](query, request);
    }
  }

  async answer(line) {
    const request = JSON.parse(line);
    try {
      return { id: request.id, type: "ok", value: await this.do(request) };
    } catch (error) {
      const refused = request.do !== "commit" || /conflict|can be retried/i.test(error.message);
      return { id: request.id, type: refused ? "fail" : "info", error: error.message };
    }
  }
}

async function serve(engine, socket) {
  const [{ Surreal }, { createNodeEngines }] = await Promise.all([import("surrealdb"), import("@surrealdb/node")]);
  const db = new Surreal({ engines: createNodeEngines() });
  await db.connect(engine);
  await db.use({ namespace: "isocheck", database: "isocheck" });
  createServer((connection) => {
    const session = new Session(db);
    let turn = Promise.resolve();
    createInterface({ input: connection }).on("line", (line) => {
      turn = turn.then(() => session.answer(line)).then((answer) => connection.write(JSON.stringify(answer) + "\n"));
    });
    connection.on("error", () => {}).on("close", () => (turn = turn.then(() => session.do({ do: "rollback" })).catch(() => {})));
  }).listen(socket);
}

if (process.argv[2] === "serve") {
  await serve(process.argv[3], process.argv[4]);
} else {
  const connection = createConnection(process.argv[2]);
  process.stdin.pipe(connection).pipe(process.stdout);
}
