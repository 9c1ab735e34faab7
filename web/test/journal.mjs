// The journal of an upload of 100,000 objects: it is found again after a reload, and late objects are written as fast
// as early ones.
//
// Usage: node test/journal.mjs. It needs no services.
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { build } from "vite";
import { check, openBrowser } from "./support.mjs";

const OBJECTS = 100_000;
/** Number of objects between two writes: about what many cores encrypt in a second. */
const BATCH = 100;
/** Names in the format of crates/protocol, longer than those of most tables. */
const name = (place) => `column/${place >> 4}/${place & 15}`;
const digest = (place) => createHash("sha256").update(String(place)).digest();

/** Returns the manifest's digest, computed independently of the page. */
function manifest(count) {
  const lines = Array.from({ length: count }, (_, place) => [name(place), digest(place).toString("hex")]);
  lines.sort(([one], [other]) => (one < other ? -1 : 1));
  return createHash("sha256").update(lines.map((line) => `${line.join(" ")}\n`).join("")).digest("hex");
}

/** Serves the compiled src/crypto/journal.ts and an empty page. */
async function serve() {
  const lib = { entry: new URL("../src/crypto/journal.ts", import.meta.url).pathname, formats: ["es"] };
  const [{ output }] = await build({ configFile: false, logLevel: "error", build: { lib, write: false } });
  const server = createServer(({ url }, response) => {
    const isScript = url === "/journal.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    response.end(isScript ? output[0].code : "<!doctype html><title>Journal</title>");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

/** Writes objects to the journal, as an upload does. Returns the milliseconds for each tenth of them. */
async function writeDown(page, count) {
  const digests = Buffer.concat(Array.from({ length: count }, (_, place) => digest(place))).toString("base64");
  return page.evaluate(async ({ count, digests, batch }) => {
    const { Journal } = await import("/journal.js");
    const bytes = Uint8Array.from(atob(digests), (character) => character.charCodeAt(0));
    const journal = new Journal("large");
    await journal.load();
    const tenths = [];
    for (let tenth = 0; tenth < 10; tenth++) {
      const started = performance.now();
      for (let place = (tenth * count) / 10; place < ((tenth + 1) * count) / 10; place++) {
        journal.confirm(`column/${place >> 4}/${place & 15}`, bytes.slice(32 * place, 32 * place + 32));
        if (place % batch === batch - 1) journal.write();
      }
      // Reading waits for all pending writes.
      await new Journal("other").load();
      tenths.push(performance.now() - started);
    }
    return tenths;
  }, { count, digests, batch: BATCH });
}

/** Leaves the page in the middle of an upload. Returns how many of its 50 objects are found afterwards. */
async function leave(page) {
  await page.evaluate(async () => {
    const { Journal } = await import("/journal.js");
    const journal = new Journal("left");
    await journal.load();
    for (let place = 0; place < 50; place++) journal.confirm(`noise/0/0/${place}`, new Uint8Array(32));
    window.addEventListener("pagehide", () => journal.write());
  });
  await page.reload();
  return (await find(page, "left")).objects;
}

/** Returns what a newly loaded page finds in the journal. */
function find(page, dataset) {
  return page.evaluate(async (dataset) => {
    const { Journal } = await import("/journal.js");
    const journal = new Journal(dataset);
    const started = performance.now();
    await journal.load();
    const loaded = performance.now();
    const manifest = await journal.manifest();
    const times = { load: loaded - started, sort: performance.now() - loaded };
    return { objects: journal.digests.size, manifest, ...times };
  }, dataset);
}

/** Forgets two objects, as if the service had lost them, and confirms one of them again with another digest. */
function sendAgain(page) {
  return page.evaluate(async () => {
    const { Journal } = await import("/journal.js");
    const journal = new Journal("large");
    await journal.load();
    journal.forget(["column/0/0", "column/0/1"]);
    const forgotten = journal.digests.size;
    journal.confirm("column/0/0", new Uint8Array(32).fill(7));
    journal.write();
    const again = new Journal("large");
    await again.load();
    return { forgotten, byte: again.digests.get("column/0/0")[0] };
  });
}

function finish(page) {
  return page.evaluate(async () => {
    const { Journal } = await import("/journal.js");
    const started = performance.now();
    await new Journal("large").finish();
    return performance.now() - started;
  });
}

const server = await serve();
const browser = await openBrowser();
try {
  const page = await browser.newPage();
  const address = `http://127.0.0.1:${server.address().port}/`;
  await page.goto(address);
  const tenths = await writeDown(page, OBJECTS);
  const early = Math.max(...tenths.slice(0, 2));
  const late = Math.min(...tenths.slice(-2));
  const each = (1000 * tenths.reduce((sum, time) => sum + time, 0)) / OBJECTS;
  check("the last objects are written as fast as the first", late < 5 * early,
    `${each.toFixed(1)} microseconds per object; the first tenth ${tenths[0].toFixed(0)} ms, the last ${tenths[9].toFixed(0)} ms`);
  await page.reload();
  const found = await find(page, "large");
  check("100,000 objects are found after a reload", found.objects === OBJECTS, `in ${found.load.toFixed(0)} ms`);
  check("their manifest is right", found.manifest === manifest(OBJECTS), `in ${found.sort.toFixed(0)} ms`);
  check("another dataset has no objects", (await find(page, "other")).objects === 0);
  const left = await leave(page);
  check("leaving the page writes pending objects", left === 50, `${left} objects`);
  const { forgotten, byte } = await sendAgain(page);
  check("objects that the service lost are forgotten", forgotten === OBJECTS - 2);
  check("the later digest of an object sent twice is kept", byte === 7);
  const finished = await finish(page);
  check("a finished upload leaves no objects", (await find(page, "large")).objects === 0, `after ${finished.toFixed(0)} ms`);
} finally {
  await browser.close();
  server.close();
}
