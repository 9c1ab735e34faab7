// Copies the table of `fhaim demo` and its schema into the folder of the page's files, for "Use an example".
import { copyFileSync, mkdirSync } from "node:fs";

const from = new URL("../../crates/cli/data/", import.meta.url);
const to = new URL("../public/example/", import.meta.url);
mkdirSync(to, { recursive: true });
for (const name of ["adult.csv.gz", "adult.schema.json"]) copyFileSync(new URL(name, from), new URL(name, to));
