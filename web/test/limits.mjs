// Files that are too large for a browser or are not a table: they are rejected with a message, and
// the page stays responsive.
//
// Usage: node test/limits.mjs [SCREENSHOT_DIR]. The test creates its tables.
import { closeSync, mkdtempSync, openSync, rmSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  SIZES, Server, check, confirmColumns, longestFrame, measureFrames, openBrowser, TIMEOUT_MS, run, screenshots,
  signUp, watchErrors,
} from "./support.mjs";

const server = await new Server().start();
const browser = await openBrowser();
const page = await browser.newPage({ viewport: SIZES.wide });
page.setDefaultTimeout(TIMEOUT_MS);
const watch = watchErrors(page);
const folder = mkdtempSync(join(tmpdir(), "fhaim-limits-"));
const at = (name) => join(folder, name);
/** Maximum time between two frames, on a machine that is also busy with other work. */
const LONGEST_MS = 3000;

async function choose(name) {
  await page.goto(`${server.address}/datasets/new`);
  await page.getByRole("heading", { name: "Choose the table" }).waitFor();
  await measureFrames(page);
  await page.locator("#table-file").setInputFiles(at(name));
}

/** Checks that the file is rejected with a matching message. */
async function refused(name, pattern) {
  const started = Date.now();
  await choose(name);
  const words = (await page.getByRole("alert").innerText()).replace(/\s+/g, " ");
  check(`${name} is rejected with a message`, pattern.test(words), `${words.slice(0, 160)} (${Date.now() - started} ms)`);
}

async function responsive(what) {
  const longest = await longestFrame(page);
  check(`the page stays responsive (${what})`, longest < LONGEST_MS, `longest time between frames ${longest} ms`);
}

async function wrongFiles() {
  writeFileSync(at("picture.csv"), Buffer.from("89504e470d0a1a0a0000000d49484452", "hex"));
  await refused("picture.csv", /picture \(PNG\)/);
  writeFileSync(at("people.xlsx"), Buffer.from("PK\x03\x04\x14 [Content_Types].xml", "latin1"));
  await refused("people.xlsx", /Excel workbook/);
  writeFileSync(at("empty.csv"), "");
  await refused("empty.csv", /is empty/);
  writeFileSync(at("header.csv"), "a,b\n");
  await refused("header.csv", /no records/);
  writeFileSync(at("quote.csv"), `a,b\n1,"${"x".repeat(5_000_000)}\n`);
  await refused("quote.csv", /quote that opens here is never closed/);
}

async function semicolons() {
  writeFileSync(at("excel.csv"), "\ufeffage;group\r\n21;a\r\n34;b\r\n55;a\r\n");
  await choose("excel.csv");
  await page.getByRole("heading", { name: "Which values may each column take?" }).waitFor();
  check("semicolons and a byte order mark are understood", await page.getByLabel("Type of age").isVisible());
}

/** Files that are not UTF-8 are read with their encoding, which is shown. */
async function encodings() {
  // A draft lists only values that at least 20 records share.
  const text = `\ufeffname,town\n${"Jos\xe9,C\xf3rdoba\nAna,C\xf3rdoba\n".repeat(20)}`;
  writeFileSync(at("utf16.csv"), Buffer.from(text, "utf16le"));
  writeFileSync(at("latin1.csv"), Buffer.from(text.slice(1), "latin1"));
  for (const [name, encoding] of [["utf16.csv", "utf-16le"], ["latin1.csv", "windows-1252"]]) {
    await choose(name);
    await page.getByLabel("Categories of town, one per line").waitFor();
    const town = await page.getByLabel("Categories of town, one per line").inputValue();
    check(`${name} is read as ${encoding}`, town === "C\xf3rdoba" && (await page.locator("dd").getByText(encoding).isVisible()), town);
  }
}

async function manyColumns() {
  const names = Array.from({ length: 2000 }, (_, i) => `c${i}`);
  const record = (i) => names.map((_, j) => (i * 7 + j) % 4).join(",");
  const lines = [names.join(","), ...Array.from({ length: 200 }, (_, i) => record(i))];
  writeFileSync(at("wide.csv"), `${lines.join("\n")}\n`);
  await refused("wide.csv", /1000|1,000/);
  await responsive("2,000 columns");
  await page.locator("summary", { hasText: "File format" }).click();
  await page.getByLabel("Only these columns").fill(names.slice(0, 1000).join(","));
  await measureFrames(page);
  const started = Date.now();
  await confirmColumns(page, at("wide.csv"));
  await page.getByText("Ciphertexts").or(page.getByRole("alert")).first().waitFor();
  const words = await page.getByText("Ciphertexts").or(page.getByRole("alert")).first().innerText();
  console.log(`1,000 of the columns: planned after ${Date.now() - started} ms: ${words.slice(0, 200)}`);
  await responsive("1,000 columns");
}

const WORDS = ["was", "seen", "again", "pain", "in", "left", "knee", "after", "a", "fall"];
/** A text with one word for each digit of a number. */
const sentence = (number) => [...String(number)].map((digit) => WORDS[digit]).join(" ");

async function manyValues() {
  const records = Array.from({ length: 60_000 }, (_, i) => `${sentence(i % 50_000)},${"abc"[i % 3]}`);
  writeFileSync(at("names.csv"), `person,group\n${records.join("\n")}\n`);
  await choose("names.csv");
  const person = page.getByRole("row", { name: "person" });
  await person.waitFor();
  const words = (await person.innerText()).replace(/\s+/g, " ");
  check("a column of 50,000 texts is left out, with the reason", /50000 different texts/.test(words), words);
  await responsive("50,000 values");
  writeFileSync(at("only-names.csv"), `person\n${records.map((r) => r.split(",")[0]).join("\n")}\n`);
  await refused("only-names.csv", /no column is kept/);
}

/** Writes about 300 MB with 20 columns, one block at a time. */
function writeLarge(name) {
  const file = openSync(at(name), "w");
  const columns = Array.from({ length: 20 }, (_, i) => `column_${i}`);
  writeSync(file, `${columns.join(",")}\n`);
  const row = (i) => columns.map((_, j) => `value${(i * (j + 3)) % 8}`).join(",");
  const block = `${Array.from({ length: 7000 }, (_, i) => row(i)).join("\n")}\n`;
  const blocks = Math.ceil(300e6 / block.length);
  for (let i = 0; i < blocks; i += 1) writeSync(file, block);
  closeSync(file);
  return blocks * 7000;
}

async function large() {
  const records = writeLarge("large.csv");
  const started = Date.now();
  await choose("large.csv");
  await page.getByText(/^Reading large.csv: [1-9][\d.]* MB of 30\d\.\d MB/).waitFor();
  check("the page shows the progress of reading", true);
  if (screenshots) await page.screenshot({ path: join(screenshots, "reading-wide-light.png") });
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByRole("heading", { name: "Choose the table" }).waitFor();
  check("reading stops on request", await page.getByText("Drop a CSV file here").isVisible());
  await confirmColumns(page, at("large.csv"));
  await page.getByText("Ciphertexts").waitFor();
  const facts = (await page.locator("dl.facts").last().innerText()).replace(/\n+/g, " ");
  check(`${records} records are read and planned`, facts.includes(records.toLocaleString("en")),
    `${((Date.now() - started) / 1000).toFixed(1)} s: ${facts}`);
  await responsive("300 MB");
}

async function tooLarge() {
  writeFileSync(at("huge.csv"), `a,b\n${"1,2\n".repeat(50_000)}`);
  truncateSync(at("huge.csv"), 3e9);
  await refused("huge.csv", /more than a browser can hold/);
}

await run(server, browser, page, [
  () => signUp(page, server.address),
  wrongFiles, semicolons, encodings, manyColumns, manyValues, large, tooLarge,
  function noErrors() {
    rmSync(folder, { recursive: true });
    check("no console errors", watch.problems.length === 0, watch.problems.join("; "));
  },
]);
