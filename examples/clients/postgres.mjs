// PostgreSQL, by node-postgres: npm install pg && isocheck run exec:"node postgres.mjs postgresql://me@host/db"
import pg from "pg";
import { createInterface } from "node:readline";

const client = new pg.Client(process.argv[2]);
client.on("error", () => {}); // a query says so, too
await client.connect();
const claims = [["serializable", "ser"], ["repeatable read", "si"], ["read committed", "pl-2"]];

async function write(sql, ...values) { // whether there was a row
  return (await client.query(sql, values)).rowCount > 0;
}

async function commit() {
  const answer = await client.query("COMMIT");
  if (answer.command === "ROLLBACK") throw { code: "40000", message: "the server rolled back" };
}

const does = {
  hello: () => ({ name: "PostgreSQL through Node", steps: true, levels: claims, lacks: ["range reads"] }),
  async setup({ registers, lists }) {
    await client.query("DROP TABLE IF EXISTS isocheck_node");
    await client.query("CREATE TABLE isocheck_node (k text PRIMARY KEY, v bigint, l bigint[])");
    await client.query("INSERT INTO isocheck_node SELECT unnest($1::text[])", [registers]);
    await client.query("INSERT INTO isocheck_node SELECT unnest($1::text[]), NULL, '{}'", [lists]);
  },
  remove: () => write("DROP TABLE IF EXISTS isocheck_node"),
  begin: ({ level }) => write(`BEGIN ISOLATION LEVEL ${level.toUpperCase()}`),
  async read({ key, list }) {
    const { rows } = await client.query("SELECT v, l FROM isocheck_node WHERE k = $1", [key]);
    if (!rows.length) return "deleted";
    return list ? rows[0].l.map(Number) : rows[0].v === null ? null : Number(rows[0].v);
  },
  write: ({ key, value }) => write("UPDATE isocheck_node SET v = $2 WHERE k = $1", key, value),
  append: ({ key, value }) => write("UPDATE isocheck_node SET l = l || $2::bigint WHERE k = $1", key, value),
  insert: ({ key, value }) => write("INSERT INTO isocheck_node VALUES ($1, $2, NULL)", key, value),
  delete: ({ key }) => write("DELETE FROM isocheck_node WHERE k = $1", key),
  savepoint: () => write("SAVEPOINT isocheck"),
  undo: () => write("ROLLBACK TO SAVEPOINT isocheck"),
  rollback: () => write("ROLLBACK"),
  commit,
};

function kindOf(asked, error) { // before COMMIT nothing is applied; after it only where the server says so
  if (!does[asked]) return "error";
  return asked !== "commit" || /^(40(?!003)|23)/.test(error.code ?? "") ? "fail" : "info";
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  const answer = { id: request.id, type: "ok" };
  try {
    answer.value = await does[request.do](request) ?? null;
  } catch (error) {
    Object.assign(answer, { type: kindOf(request.do, error), error: String(error.message) });
  }
  console.log(JSON.stringify(answer));
}
await client.end();
