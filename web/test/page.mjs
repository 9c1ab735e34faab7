// A holder's way through all pages in a real browser: sign up, choose a table, confirm it, encrypt,
// run a job, download.
//
// Usage: node test/page.mjs [SCREENSHOT_DIR]. The table is compas.csv of FHAIM_DATA_DIR, or the
// repository's small.csv if FHAIM_DATA_DIR is not set.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { firstLoad } from "./load.mjs";
import { checkReleases } from "./releases.mjs";
import {
  PASSWORD, SIZES, Server, TIMEOUT_MS, check, confirmAll, confirmColumns, createAccount, dataFile, longestFrame, looker,
  measureFrames, openBrowser, program, run, watchErrors,
} from "./support.mjs";

const file = dataFile("compas.csv") ?? new URL("small.csv", import.meta.url).pathname;
const lines = readFileSync(file, "utf8").trim().split(/\r?\n/);
const header = lines[0].split(",");

const server = await new Server().start();
const browser = await openBrowser();
const context = await browser.newContext({ viewport: SIZES.wide, acceptDownloads: true });
const page = await context.newPage();
page.setDefaultTimeout(TIMEOUT_MS);
const watch = watchErrors(page);
let email;
let token;

/** Everything that the browser sent, as bytes. */
const sent = [];
context.on("request", (request) => {
  sent.push({ url: request.url(), method: request.method(), body: request.postDataBuffer() });
  const { authorization } = request.headers();
  // A token is valid for one service, and the tests below call generation.
  if (authorization && request.url().includes("/generation/")) token = authorization;
});

const look = looker(page);

async function firstLoads() {
  const { fast } = await firstLoad(browser, server.address);
  check("the first load takes less than 200 KB", fast.bytes < 200 * 1024);
  check("the layout does not move during the first load", fast.shift < 0.1);
}

async function signUp() {
  await page.goto(`${server.address}/`);
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await look("sign-in");
  watch.expected.push(/401|403|422/);
  await page.getByLabel("Email").fill(`nobody-${Date.now()}@example.org`);
  await page.getByLabel("Password").fill("wrong password");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  await look("sign-in-refused");
  watch.expected.pop();
  check("a wrong password is rejected with a message", (await page.getByRole("alert").innerText()).length > 10);
  await page.getByRole("link", { name: "Create one" }).click();
  await page.getByRole("heading", { name: "Create an account" }).waitFor();
  await look("sign-up");
  email = await createAccount(page, "ana");
  await page.getByRole("heading", { name: "No datasets yet" }).waitFor();
  await look("datasets-empty");
}

async function refusals() {
  await page.goto(`${server.address}/datasets/0198c0de-0000-7000-8000-000000000000`);
  watch.expected.push(/404/);
  await page.getByRole("heading", { name: "Not found" }).waitFor();
  await look("dataset-none");
  watch.expected.pop();
  await page.goto(`${server.address}/nowhere`);
  await page.getByRole("heading", { name: "Not found" }).waitFor();
  await look("not-found");
  await page.getByRole("link", { name: "Go to your datasets" }).click();
  await page.getByRole("link", { name: "Create the first dataset" }).click();
  await page.getByRole("heading", { name: "Choose the table" }).waitFor();
  await look("new-file");
  const ragged = join(mkdtempSync(join(tmpdir(), "fhaim-page-")), "ragged.csv");
  writeFileSync(ragged, "a,b\n1,2\n3\n");
  await page.locator("#table-file").setInputFiles(ragged);
  const words = await page.getByRole("alert").innerText();
  check("a row with too few fields is rejected with its number", /row 2/.test(words), words.replace(/\s+/g, " "));
  await look("new-file-refused");
  await page.getByRole("button", { name: "Use an example" }).click();
  await page.getByRole("heading", { name: "Which values may each column take?" }).waitFor();
  await page.getByText("Counts over all pairs").waitFor();
  const sketches = await page.locator(".sketch").count();
  check("each column of the example shows a sketch of its values", sketches === 15, `${sketches} pictures`);
  check("the example's public schema needs no confirmation", await page.getByRole("button", { name: "Continue" }).isEnabled());
  await look("new-example");
  await page.getByRole("button", { name: "Back" }).click();
}

async function chooseBudget() {
  await page.locator("#table-file").setInputFiles(file);
  await page.getByRole("heading", { name: "Which values may each column take?" }).waitFor();
  const next = page.getByRole("button", { name: "Continue" });
  check("unconfirmed columns cannot be continued with", await next.isDisabled());
  await page.getByText("Counts over all pairs").waitFor();
  await look("new-columns");
  await confirmAll(page);
  await next.click();
  await page.getByRole("heading", { name: "Effect on your counts" }).waitFor();
  await page.getByText("Ciphertexts").waitFor();
  await page.getByText("Advanced: epsilon").click();
  const slider = page.getByLabel("Epsilon");
  await slider.focus();
  for (let step = 0; step < 10; step += 1) await slider.press("ArrowRight");
  await page.getByText("Epsilon: 10").waitFor();
  await page.getByLabel("Jobs that share it").selectOption("2");
  await page.getByText("its noise is 1.4 times as large").waitFor();
  await page.getByLabel("Column to predict").selectOption(header.at(-1));
  await page.getByLabel("Weight of its pairs").selectOption("2");
  await page.waitForTimeout(600);
  await look("new-budget");
}

/** Presses "Pause" as soon as it appears: a small table is sent within a second. */
function pauseAtOnce() {
  const pause = () => [...document.querySelectorAll("button")].find((b) => b.textContent === "Pause");
  const observer = new MutationObserver(() => {
    if (!pause()) return;
    observer.disconnect();
    pause().click();
  });
  observer.observe(document.body, { childList: true, subtree: true });
}

/** Resumes the upload with a file that has more records than the dataset allows. */
async function tooManyRecords() {
  const larger = join(mkdtempSync(join(tmpdir(), "fhaim-page-")), "larger.csv");
  writeFileSync(larger, `${[...lines, ...lines.slice(1)].join("\n")}\n`);
  await page.reload();
  await page.locator("#again").setInputFiles(larger);
  const words = await page.getByRole("alert").innerText();
  const said = new RegExp(`has ${2 * (lines.length - 1)} records, but the dataset allows at most`);
  check("a table over the record bound is rejected", said.test(words), words);
  await page.getByRole("button", { name: "Choose another file" }).click();
}

async function upload() {
  await page.evaluate(pauseAtOnce);
  await page.getByRole("button", { name: "Encrypt and upload" }).click();
  await page.getByText("Paused. The sent data is kept.").waitFor();
  await look("upload");
  await tooManyRecords();
  await measureFrames(page);
  await page.locator("#again").setInputFiles(file);
  await page.getByRole("link", { name: "API keys" }).click();
  await page.getByRole("heading", { name: "API keys" }).waitFor();
  await page.goBack();
  await page.getByText("Done. The dataset is ready.").waitFor();
  const facts = await page.locator("section", { hasText: "Encrypted and uploaded" }).locator("dl.facts").innerText();
  console.log(`upload: ${facts.replace(/\n/g, " ")}`);
  console.log(`longest time between two frames during the upload: ${await longestFrame(page)} ms`);
  await page.getByRole("heading", { name: "Privacy ledger" }).waitFor();
  await look("dataset");
}

/** Returns the jobs of the dataset whose page is shown. */
async function jobs() {
  const dataset = page.url().split("/").at(-1);
  const address = `${server.address}/generation/v1/datasets/${dataset}/jobs`;
  const answer = await fetch(address, { headers: { authorization: token } });
  return (await answer.json()).items;
}

/** A job starts only after a confirmation, and only once after a double click, a lost answer and a retry. */
async function runJob() {
  const dialog = page.getByRole("dialog", { name: "Run a job?" });
  const confirm = dialog.getByRole("button", { name: "Run it" });
  await page.getByRole("button", { name: "Run a job" }).click();
  check("the cost of a job is shown before it starts", /one of 2 equal parts/.test(await dialog.innerText()));
  await look("job-confirm");
  check("no job starts before the confirmation", (await jobs()).length === 0);
  const called = [];
  await page.route("**/jobs/*", async (route) => {
    called.push(route.request().url());
    await route.fetch();
    await route.abort();
  });
  watch.expected.push(/net::ERR_FAILED/);
  await confirm.dblclick();
  await dialog.getByText("The server does not answer").waitFor();
  check("a double click makes one call", called.length === 1, called.join());
  await page.unroute("**/jobs/*");
  watch.expected.pop();
  check("a job whose answer was lost is started", (await jobs()).length === 1);
  const dataset = page.url();
  await confirm.click();
  await page.getByRole("heading", { name: "Events" }).waitFor();
  check("a retry returns the same job", page.url().endsWith(called[0].split("/").at(-1)));
  await page.goto(dataset);
  check("a retry starts no second job", (await jobs()).length === 1);
  await page.goBack();
  await page.getByRole("heading", { name: "Events" }).waitFor();
  await look("job-running");
  await page.getByRole("link", { name: "The synthetic table" }).waitFor();
  await page.getByRole("heading", { name: "Measured and fitted" }).waitFor();
  await look("job-done");
  await page.reload();
  await page.getByRole("heading", { name: "Measured and fitted" }).waitFor();
  check("a reload shows the finished job", true);
  await checkReleases(server.address, token, page.url().split("/").at(-1), lines);
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
  check("the downloaded table has the same columns", drawn[0] === header.join(","), drawn[0]);
  check("the downloaded table has the requested number of records", drawn.length === 501, String(drawn.length - 1));
  const known = header.map((_, column) => new Set(lines.slice(1).map((line) => line.split(",")[column])));
  // Numeric columns may have new values within their limits.
  const isCategory = (column) => known[column].size <= 10;
  // Categories of few records are read as `other`, or as missing.
  const isKnown = (value, column) => known[column].has(value) || value === "" || value === "other";
  const strange = drawn.slice(1).flatMap((line) => line.split(",").filter((value, column) => isCategory(column) && !isKnown(value, column)));
  check("every downloaded category is in its column's domain", strange.length === 0, strange.slice(0, 3).join());
  await page.locator("#original").setInputFiles(file);
  await page.getByRole("heading", { name: "Assessment" }).waitFor();
  const charts = page.locator("#columns figure");
  check("the report has a chart of every column", (await charts.count()) === header.length, String(await charts.count()));
  const colour = await charts.first().locator(".real").first().evaluate((bar) => getComputedStyle(bar).fill);
  check("charts have the report's colours", colour === "rgb(63, 120, 181)", colour);
  await page.getByRole("navigation", { name: "Contents" }).getByRole("link", { name: "Privacy" }).click();
  check("a link in the report leads to its section", await page.locator("section#privacy").isVisible() && !page.url().includes("#"), page.url());
  await look("result");
}

/** The same records in a second dataset: the page recognizes them and adds up their cost. */
async function theSameRecords() {
  const made = page.url();
  await page.goto(`${server.address}/datasets/new`);
  await confirmColumns(page, file);
  const told = page.getByRole("status").filter({ hasText: "These records were uploaded before" });
  await told.getByText("with this dataset").waitFor();
  await look("new-used-before");
  const [before, together] = [...(await told.innerText()).matchAll(/ε (\d+\.\d+)/g)].map(([, epsilon]) => Number(epsilon));
  check("the total cost of the same records is shown", Math.abs(before - 10) < 0.1 && together > before && together < 11, `${before}, ${together}`);
  await page.getByRole("button", { name: "Encrypt and upload" }).click();
  await page.getByRole("dialog", { name: "Use the same records again?" }).getByRole("button", { name: "Not now" }).click();
  const list = await fetch(`${server.address}/generation/v1/datasets`, { headers: { authorization: token } });
  check("no dataset is created without confirmation", (await list.json()).items.length === 1);
  await page.goto(made);
}

async function keys() {
  await page.getByRole("link", { name: "API keys" }).click();
  await page.getByLabel("What is the key for?").fill("nightly run");
  await page.getByRole("button", { name: "Create a key" }).click();
  await page.getByText("This is the only time").waitFor();
  await look("api-keys");
  await page.getByRole("link", { name: "Datasets" }).click();
  await page.getByRole("table").waitFor();
  await look("datasets");
}

/** Checks that no record of the table was sent as plain text. */
function nothingInTheClear() {
  const bodies = sent.filter(({ body }) => body).map(({ body }) => body);
  const total = bodies.reduce((sum, body) => sum + body.length, 0);
  const all = Buffer.concat(bodies);
  const addresses = sent.map(({ url }) => decodeURIComponent(url)).join("\n");
  const records = [...new Set(lines.slice(1))];
  const seen = records.filter((record) => all.includes(record) || addresses.includes(record));
  check("no record was sent as plain text", seen.length === 0, `${records.length} records in ${total} bytes`);
  check("ciphertexts were sent", sent.filter(({ url, method }) => method === "PUT" && url.includes("/objects/")).length > 10);
  const elsewhere = sent.filter(({ url }) => !url.startsWith(server.address) && !url.startsWith("blob:"));
  check("nothing was sent to other servers", elsewhere.length === 0, elsewhere.map(({ url }) => url).join());
}

async function remove() {
  await page.getByRole("table").getByRole("link").first().click();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { name: /^Delete “/ }).waitFor();
  await look("dataset-delete");
  await page.getByRole("dialog").getByRole("button", { name: "Keep it" }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { name: "No datasets yet" }).waitFor();
  check("a confirmed dataset is deleted", true);
}

/** Without WebAssembly, the page shows commands to paste. This runs them unchanged. */
async function commandLine() {
  await page.addInitScript(() => delete globalThis.WebAssembly);
  await page.goto(`${server.address}/datasets/new`);
  await page.getByText("This browser cannot encrypt here").waitFor();
  await look("no-webassembly");
  const folder = mkdtempSync(join(tmpdir(), "fhaim-paste-"));
  symlinkSync(program, join(folder, "fhaim"));
  writeFileSync(join(folder, "table.csv"), `${lines.slice(0, 200).join("\n")}\n`);
  const commands = (await page.locator("pre").innerText()).replace("you@example.org", email);
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}`, FHAIM_CONFIG_DIR: folder, FHAIM_PASSWORD: PASSWORD };
  execFileSync("bash", ["-euc", commands], { cwd: folder, env, stdio: ["ignore", "ignore", "pipe"] });
  const table = readFileSync(join(folder, "synthetic.csv"), "utf8");
  check("the pasted commands make a synthetic table", table.startsWith(lines[0]), `${table.split("\n").length - 2} records`);
}

await run(server, browser, page, [
  firstLoads, signUp, refusals, chooseBudget, upload, runJob, result, theSameRecords, keys, nothingInTheClear, remove, commandLine,
  function noErrors() {
    check("no console errors", watch.problems.length === 0, watch.problems.join("; "));
  },
]);
