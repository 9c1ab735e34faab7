// Runs the WebAssembly module as the page's worker does: reads a table and encrypts every object
// of its upload.
//
// Usage: node module.mjs MODULE FOLDER. FOLDER has table.csv, terms.json and public-key; every
// object is written to FOLDER/objects, by its place in the plan.
import { webcrypto } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [module, folder] = process.argv.slice(2);
const view = (from, length) => new Uint8Array(memory.buffer, from >>> 0, length >>> 0);
let input = new Uint8Array();
let answer;

const host = {
  read(to, length) {
    const part = input.subarray(0, length >>> 0);
    input = input.subarray(part.length);
    view(to, part.length).set(part);
    return part.length;
  },
  random(to, length) {
    const all = view(to, length);
    for (let at = 0; at < all.length; at += 65_536) {
      webcrypto.getRandomValues(all.subarray(at, at + 65_536));
    }
  },
  reply(kind, from, length) {
    answer = { kind, bytes: view(from, length).slice() };
  },
};
const { instance } = await WebAssembly.instantiate(readFileSync(module), { host });
const { memory, fhaim_alloc, fhaim_call } = instance.exports;

function ask(request, bytes = new Uint8Array()) {
  const text = new TextEncoder().encode(JSON.stringify(request));
  const from = fhaim_alloc(text.length);
  view(from, text.length).set(text);
  input = bytes;
  fhaim_call(from, text.length);
  if (answer.kind === 1) return answer.bytes;
  const json = JSON.parse(new TextDecoder().decode(answer.bytes));
  if (answer.kind !== 0) throw new Error(json.detail);
  return json;
}

const file = (name) => readFileSync(join(folder, name));
const terms = JSON.parse(file("terms.json").toString());
const { records } = ask(
  { op: "read", format: { file: "table.csv" }, schema: terms.schema },
  file("table.csv"),
);
const { objects } = ask({ op: "plan", terms, records });
const upload_key = ask({ op: "upload-key", terms });
ask({ op: "prepare", terms, upload_key }, file("public-key"));
mkdirSync(join(folder, "objects"), { recursive: true });
const started = process.cpuUsage();
objects.forEach((object, place) => {
  writeFileSync(join(folder, "objects", String(place)), ask({ op: "encrypt", object }));
});
const each = process.cpuUsage(started).user / 1000 / objects.length;
console.log(`${records} records, ${objects.length} objects, ${each.toFixed(1)} processor ms each`);
