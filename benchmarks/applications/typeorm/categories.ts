// Two clients add a category below one parent, in a nested set of TypeORM 1.1.1.
//
// `npx tsx categories.ts setup` creates the table with the first category, `at-once` adds two
// categories at the same moment, and `request` adds the one that its standard input names. With
// `locked` as a second argument, the parent is locked first. DATABASE_URL names the database.
import "reflect-metadata";
import { readFileSync } from "node:fs";
import { DataSource, EntitySchema } from "typeorm";

interface Category {
  id: number;
  name: string;
  parent: Category | null;
  children: Category[];
}

const Categories = new EntitySchema<Category>({
  name: "category",
  trees: [{ type: "nested-set" }],
  columns: {
    id: { type: "int", primary: true, generated: true },
    name: { type: "text" },
  },
  relations: {
    parent: { type: "many-to-one", target: "category", treeParent: true },
    children: { type: "one-to-many", target: "category", treeChildren: true },
  },
});

const database = new DataSource({
  type: "postgres",
  url: process.env.DATABASE_URL,
  entities: [Categories],
});

async function add(name: string, locked: boolean): Promise<void> {
  await database.transaction(async (manager) => {
    await manager.query(`SELECT 1 /*unit='${name}',route='add'*/`);
    const lock = locked ? ({ lock: { mode: "pessimistic_write" } } as const) : {};
    const parent = await manager.findOneOrFail(Categories, { where: { name: "all" }, ...lock });
    await manager.save(Categories, { name, parent });
  });
}

const [action, variant] = process.argv.slice(2);
const locked = variant === "locked";
await database.initialize();
if (action === "setup") {
  await database.synchronize(true);
  await database.getRepository(Categories).save({ name: "all" });
} else if (action === "at-once") {
  await Promise.all([add("books", locked), add("music", locked)]);
} else {
  await add(readFileSync(0, "utf8").trim(), locked);
}
await database.destroy();
