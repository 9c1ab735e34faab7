// What a holder does, in a real browser: sign up, drop a table, confirm it, encrypt, run, download.
//
// Usage: node test/page.mjs BASE_URL [SCREENSHOT_DIR]. The table is compas.csv of FHAIM_DATA_DIR, or
// the repository's own small one where that is not set. Exits with 1 at the first thing that is wrong.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [base, screenshots] = process.argv.slice(2);
const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const PASSWORD = "a long test password";
const SIZES = { wide: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };

/** The table: its file and its lines. */
function table() {
  const folder = process.env.FHAIM_DATA_DIR;
  const file = folder && join(folder, "compas.csv");
  if (file && existsSync(file)) return file;
  console.log("skipped: FHAIM_DATA_DIR is not set; a small table in its place");
  return new URL("small.csv", import.meta.url).pathname;
}

const file = table();
const lines = readFileSync(file, "utf8").trim().split(/\r?\n/);
const header = lines[0].split(",");

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-quic"],
});
const context = await browser.newContext({ viewport: SIZES.wide, acceptDownloads: true });
const page = await context.newPage();

const problems = [];
const expected = [];
page.on("console", (message) => {
  if (message.type() !== "error") return;
  if (expected.some((pattern) => pattern.test(message.text()))) return;
  problems.push(`console: ${message.text()} ${message.location().url}`);
});
page.on("pageerror", (error) => problems.push(`page: ${error.message}`));

/** Everything the browser sent, as bytes. */
const sent = [];
context.on("request", (request) => {
  sent.push({ url: request.url(), method: request.method(), body: request.postDataBuffer() });
});

let passed = 0;
function check(name, condition, detail = "") {
  assert.ok(condition, `${name} ${detail}`);
  passed += 1;
  console.log(`ok - ${name} ${detail}`);
}

/** Serious findings of axe, in both colour schemes; and a picture of each size and scheme. */
async function look(name) {
  if (process.env.FHAIM_QUICK) return;
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    for (const [size, viewport] of Object.entries(SIZES)) {
      await page.setViewportSize(viewport);
      await page.waitForTimeout(150);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      check(`${name} fits (${size})`, wide <= 0, `${wide} px over`);
      if (screenshots) {
        await page.screenshot({ path: join(screenshots, `${name}-${size}-${scheme}.png`), fullPage: true });
      }
    }
    // The page's policy lets no script in from outside; a test may evaluate.
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
    const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    const found = serious.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target.join(" ")}`));
    check(`${name} accessible (${scheme})`, found.length === 0, found.slice(0, 5).join("; "));
  }
  await page.setViewportSize(SIZES.wide);
  await page.emulateMedia({ colorScheme: "light" });
}

async function signUp() {
  const started = Date.now();
  await page.goto(`${base}/`);
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  const transferred = await page.evaluate(() =>
    performance.getEntries().reduce((sum, entry) => sum + (entry.transferSize ?? 0), 0));
  console.log(`first page: ${Date.now() - started} ms, ${(transferred / 1024).toFixed(0)} KB transferred`);
  await look("sign-in");
  expected.push(/401|403|422/);
  await page.getByLabel("Email").fill(`nobody-${Date.now()}@example.org`);
  await page.getByLabel("Password").fill("wrong password");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  expected.pop();
  check("a wrong password is refused in words", (await page.getByRole("alert").innerText()).length > 10);
  await page.getByRole("link", { name: "Create one" }).click();
  await look("sign-up");
  await page.getByLabel("Email").fill(`ana-${Date.now()}@example.org`);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Create an account" }).click();
  await page.getByRole("heading", { name: "No datasets yet" }).waitFor();
  await look("datasets-empty");
}

async function refusals() {
  await page.getByRole("link", { name: "Make the first dataset" }).click();
  await look("new-file");
  const folder = mkdtempSync(join(tmpdir(), "fhaim-page-"));
  const ragged = join(folder, "ragged.csv");
  writeFileSync(ragged, "a,b\n1,2\n3\n");
  await page.locator("#table-file").setInputFiles(ragged);
  const words = await page.getByRole("alert").innerText();
  check("a ragged row is refused with its place", /row 2/.test(words), words.replace(/\s+/g, " "));
}

async function makeDataset() {
  await page.locator("#table-file").setInputFiles(file);
  await page.getByRole("heading", { name: "Which values may each column take?" }).waitFor();
  const next = page.getByRole("button", { name: "Continue" });
  check("nothing goes on unconfirmed", await next.isDisabled());
  await page.getByText("Counts over all pairs").waitFor();
  await look("new-columns");
  await page.getByRole("button", { name: "I have checked every column" }).click();
  await next.click();
  await page.getByRole("heading", { name: "What it does to your counts" }).waitFor();
  await page.getByText("Ciphertexts").waitFor();
  const slider = page.getByLabel("Epsilon");
  await slider.focus();
  for (let step = 0; step < 10; step += 1) await slider.press("ArrowRight");
  await page.getByText("Epsilon: 10").waitFor();
  await page.waitForTimeout(600);
  await look("new-budget");
  await page.evaluate(() => {
    globalThis.longest = 0;
    let last = performance.now();
    const tick = () => {
      const now = performance.now();
      globalThis.longest = Math.max(globalThis.longest, now - last);
      last = now;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  // As soon as it is there: a small table is sent within a second.
  await page.evaluate(() => {
    const pause = () => [...document.querySelectorAll("button")].find((b) => b.textContent === "Pause");
    const observer = new MutationObserver(() => {
      if (!pause()) return;
      observer.disconnect();
      pause().click();
    });
    observer.observe(document.body, { childList: true, subtree: true });
  });
  await page.getByRole("button", { name: "Encrypt and upload" }).click();
  await page.getByText("Paused. What was sent stays there.").waitFor();
  await look("new-upload");
}

/** A lost connection in the middle, then a reload: what was sent is not sent twice. */
async function upload() {
  await page.getByRole("button", { name: "Resume" }).click();
  await page.waitForTimeout(300);
  expected.push(/ERR_INTERNET_DISCONNECTED/);
  await context.setOffline(true);
  await page.getByText("The server does not answer.").waitFor({ timeout: 30_000 }).catch(() => {});
  await context.setOffline(false);
  await page.getByText("Done. The dataset is ready.").waitFor({ timeout: 180_000 });
  expected.pop();
  const facts = await page.locator("dl.facts").innerText();
  console.log(`upload: ${facts.replace(/\n/g, " ")}`);
  const longest = await page.evaluate(() => globalThis.longest);
  console.log(`longest time between two frames meanwhile: ${longest.toFixed(0)} ms`);
  await page.getByRole("button", { name: "Go to the dataset" }).click();
  await page.getByRole("heading", { name: "Privacy ledger" }).waitFor();
  await look("dataset");
}

async function runJob() {
  await page.getByRole("button", { name: "Run a job" }).click();
  await page.getByRole("heading", { name: "Events" }).waitFor();
  await look("job-running");
  await page.getByRole("link", { name: "The synthetic table" }).waitFor({ timeout: 240_000 });
  await page.getByRole("heading", { name: "Measured and fitted" }).waitFor();
  await look("job-done");
  await page.reload();
  await page.getByRole("heading", { name: "Measured and fitted" }).waitFor();
  check("a reload finds the job where it was", true);
}

async function result() {
  await page.getByRole("link", { name: "The synthetic table" }).click();
  await page.getByRole("heading", { name: "Preview" }).waitFor();
  await page.getByRole("region", { name: "Synthetic records" }).getByRole("row").nth(3).waitFor();
  await page.getByLabel("Records").first().fill("500");
  await page.getByLabel("Seed").fill("7");
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download" }).click(),
  ]);
  const drawn = readFileSync(await download.path(), "utf8").trim().split(/\r?\n/);
  check("the table has the columns", drawn[0] === header.join(","), drawn[0]);
  check("and as many records as asked for", drawn.length === 501, String(drawn.length - 1));
  const known = header.map((_, column) => new Set(lines.slice(1).map((line) => line.split(",")[column])));
  const strange = drawn.slice(1).flatMap((line) => line.split(",").filter((value, column) => !known[column].has(value)));
  check("every value is of its column's domain", process.env.FHAIM_DATA_DIR ? strange.length === 0 : true, strange.slice(0, 3).join());
  await page.locator("#original").setInputFiles(file);
  await page.getByText("Mean distance of pairs").waitFor({ timeout: 60_000 });
  await look("result");
}

async function keys() {
  await page.getByRole("link", { name: "API keys" }).click();
  await page.getByLabel("What is the key for?").fill("nightly run");
  await page.getByRole("button", { name: "Make a key" }).click();
  await page.getByText("This is the only time").waitFor();
  await look("api-keys");
  await page.getByRole("link", { name: "Datasets" }).click();
  await page.getByRole("table").waitFor();
  await look("datasets");
}

/** No record of the table is in anything that was sent. */
function nothingInTheClear() {
  const bodies = sent.filter(({ body }) => body).map(({ body }) => body);
  const total = bodies.reduce((sum, body) => sum + body.length, 0);
  const all = Buffer.concat(bodies);
  const addresses = sent.map(({ url }) => decodeURIComponent(url)).join("\n");
  const records = [...new Set(lines.slice(1))];
  const seen = records.filter((record) => all.includes(record) || addresses.includes(record));
  check("no record was sent in the clear", seen.length === 0, `${records.length} records in ${total} bytes`);
  check("ciphertexts were sent", sent.filter(({ url, method }) => method === "PUT" && url.includes("/objects/")).length > 10);
  const elsewhere = sent.filter(({ url }) => !url.startsWith(base) && !url.startsWith("blob:"));
  check("nothing was sent elsewhere", elsewhere.length === 0, elsewhere.map(({ url }) => url).join());
}

if (screenshots) mkdirSync(screenshots, { recursive: true });
try {
  for (const step of [signUp, refusals, makeDataset, upload, runJob, result, keys, nothingInTheClear]) {
    const started = Date.now();
    await step();
    console.log(`# ${step.name}: ${((Date.now() - started) / 1000).toFixed(1)} s`);
  }
  check("no console errors", problems.length === 0, problems.join("; "));
  console.log(`${passed} passed, 0 failed`);
} catch (error) {
  if (screenshots) await page.screenshot({ path: join(screenshots, "failed.png"), fullPage: true });
  console.error(error.message, problems.join("; "));
  console.log(`${passed} passed, 1 failed`);
  process.exitCode = 1;
} finally {
  await browser.close();
}
