// Writes a compressed x.gz next to every file of dist that benefits from it. `fhaim up` and the
// proxy send those.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const folder = new URL("../dist/", import.meta.url).pathname;
let all = 0;
for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !/\.(html|js|css|wasm|svg)$/.test(entry.name)) continue;
  const file = join(entry.parentPath, entry.name);
  const small = gzipSync(readFileSync(file), { level: 9 });
  writeFileSync(`${file}.gz`, small);
  all += small.length;
}
console.log(`${(all / 1024).toFixed(0)} KB in total, compressed`);
