// Two holders' way through the page: a card, a dataset of both, signatures, uploads, a job that each of them
// sees, and a withdrawal.
//
// Usage: node test/parties.mjs [SCREENSHOT_DIR]. The tables are halves of the repository's small one.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkReleases } from "./releases.mjs";
import {
  SIZES, Server, TIMEOUT_MS, check, confirmColumns, looker, openBrowser, program, run, setEpsilon, signUp, watchErrors,
} from "./support.mjs";

const [header, ...records] = readFileSync(new URL("small.csv", import.meta.url), "utf8").trim().split("\n");
const half = records.length / 2;
const folder = mkdtempSync(join(tmpdir(), "fhaim-parties-"));

function write(name, lines) {
  const path = join(folder, name);
  writeFileSync(path, `${[header, ...lines].join("\n")}\n`);
  return path;
}

const tables = {
  ana: write("ana.csv", records.filter((_, at) => at % 2 === 0)),
  ben: write("ben.csv", records.filter((_, at) => at % 2 === 1)),
  other: write("other.csv", records.slice(0, 3).map((record) => record.replace(/^[^,]*/, "ultraviolet"))),
};

const server = await new Server().start();
const browser = await openBrowser();
let token;

/** A holder with a browser of its own. */
async function holder() {
  const context = await browser.newContext({ viewport: SIZES.wide, acceptDownloads: true });
  const page = await context.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  context.on("request", (request) => {
    const { authorization } = request.headers();
    if (authorization && request.url().includes("/generation/")) token = authorization;
  });
  return { page, look: looker(page), watch: watchErrors(page) };
}

const ana = await holder();
const ben = await holder();
let dataset;

async function join_() {
  ana.email = await signUp(ana.page, server.address, "ana");
  ben.email = await signUp(ben.page, server.address, "ben");
  // As the link of the invitation opens.
  await ben.page.goto(`${server.address}/join`);
  await ben.page.getByLabel("Records that you have, at most").fill(String(half));
  await ben.page.getByRole("button", { name: "Make the card" }).click();
  ben.card = await ben.page.locator("pre").innerText();
  ben.fingerprint = await ben.page.locator("code", { hasText: "-" }).innerText();
  check("a card has a fingerprint", /^([0-9a-f]{4}-){7}[0-9a-f]{4}$/.test(ben.fingerprint), ben.fingerprint);
  await ben.look("join");
  await ben.page.reload();
  await ben.page.getByLabel("Records that you have, at most").fill(String(half));
  await ben.page.getByRole("button", { name: "Make the card" }).click();
  check("the browser keeps its key", (await ben.page.locator("pre").innerText()) === ben.card);
}

async function create() {
  const { page } = ana;
  await page.getByRole("link", { name: "Make the first dataset" }).click();
  // A schema that both agreed upon before: that of one half alone may lack values of the other.
  const schema = join(folder, "schema.json");
  execFileSync(program, ["schema", "infer", "--data", new URL("small.csv", import.meta.url).pathname, "--out", schema], { stdio: "ignore" });
  await confirmColumns(page, tables.ana, schema);
  await setEpsilon(page, 10);
  await page.getByText("Other holders, who have records").click();
  check("the invitation is a link", (await page.locator("details pre").first().innerText()) === `${server.address}/join`);
  await page.getByLabel("The card of another holder").fill("{}");
  await page.getByRole("button", { name: "Add this holder" }).click();
  const refused = await page.getByRole("alert").innerText();
  check("what is no card is refused in words", /has an account/.test(refused), refused);
  await page.getByLabel("The card of another holder").fill(ben.card);
  await page.getByRole("button", { name: "Add this holder" }).click();
  await page.getByText(ben.fingerprint).waitFor();
  check("the card’s fingerprint is shown", true);
  await page.getByText("nobody need trust another’s").waitFor();
  await page.waitForTimeout(600);
  await ana.look("parties-budget");
  await page.getByRole("button", { name: "Encrypt and upload" }).click();
  await page.getByRole("heading", { name: "Holders" }).waitFor();
  await page.getByText("Done. Your records are there.").waitFor();
  dataset = page.url();
}

/** The holder's row of the table of holders. */
const row = (page, email) => page.getByRole("row", { name: email });

async function sign() {
  for (const { page, look, email } of [ana, ben]) {
    await page.goto(dataset);
    await page.getByRole("button", { name: "Sign", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: /^Sign the terms/ });
    check("what is signed is said first", /ε 10 at δ/.test(await dialog.innerText()));
    if (page === ben.page) await look("parties-sign");
    await dialog.getByRole("button", { name: "Sign" }).click();
    await row(page, email).getByText("signed", { exact: true }).waitFor();
    check("the services take the browser’s signature", true, email);
    const missing = await page.getByText("No job begins yet").first().innerText();
    check("who is missing is said", missing.includes(ben.email), missing);
  }
  check("the page shows the other’s key", (await row(ben.page, ben.email).innerText()).includes(ben.fingerprint));
}

async function upload() {
  const { page, watch } = ben;
  await page.locator("#own-part").setInputFiles(tables.other);
  const refused = await page.getByRole("alert").innerText();
  check("a table that does not fit is refused here", /ultraviolet/.test(refused), refused);
  const sent = [];
  page.on("request", (request) => request.method() !== "GET" && sent.push(request.url()));
  await page.locator("#own-part").setInputFiles(tables.ben);
  await page.getByText(`fits: ${half} records. Nothing was sent.`).waitFor();
  check("a table is checked without sending anything", sent.length === 0, sent.join());
  await ben.look("parties-checked");
  await page.getByRole("button", { name: "Encrypt and upload your records" }).click();
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
  check("with the last part the dataset is ready", watch.problems.length === 0);
  await ben.look("parties-ready");
}

/** The first to upload finds out by itself that nobody is missing, and starts the job. */
async function job() {
  const { page } = ana;
  await page.goto(dataset);
  await page.getByRole("button", { name: "Run a job" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run it" }).click();
  await page.getByRole("link", { name: "The synthetic table" }).waitFor();
  const id = page.url().split("/").at(-1);
  await checkReleases(server.address, token, id, [header, ...records]);
  await page.getByRole("link", { name: "The synthetic table" }).click();
  await page.getByRole("region", { name: "Synthetic records" }).getByRole("row").nth(3).waitFor();
  await ben.page.goto(`${server.address}/jobs/${id}/result`);
  const [download] = await Promise.all([
    ben.page.waitForEvent("download"),
    ben.page.getByRole("button", { name: "Download", exact: true }).click(),
  ]);
  const lines = readFileSync(await download.path(), "utf8").trim().split("\n");
  check("the other holder downloads the table of both", lines[0].trim() === header && lines.length > half, `${lines.length - 1} records`);
  await ben.page.locator("#original").setInputFiles(tables.ben);
  await ben.page.getByRole("heading", { name: "Verdict" }).waitFor();
  check("and compares it with its own records", true);
}

async function withdraw() {
  const { page } = ben;
  await page.goto(dataset);
  check("whoever did not make a dataset cannot delete it", !(await page.getByRole("button", { name: "Delete" }).isVisible()));
  await page.getByRole("button", { name: "Withdraw" }).click();
  await ben.look("parties-withdraw");
  await page.getByRole("dialog").getByRole("button", { name: "Withdraw" }).click();
  await page.getByText(`${ben.email} withdrew: no further job can begin`).first().waitFor();
  await ana.page.goto(dataset);
  await row(ana.page, ben.email).getByText("withdrew").waitFor();
  check("a withdrawal is seen by the others", await ana.page.getByRole("button", { name: "Run a job" }).isDisabled());
  await ana.look("parties-withdrawn");
}

await run(server, browser, ben.page, [
  join_, create, sign, upload, job, withdraw,
  function noErrors() {
    // A dataset that nobody has begun to upload is not known to the computation service yet; and records that a job
    // began with stay there after a withdrawal.
    const expected = /404.*\/computation\/|409.*\/contributions\//;
    const problems = [ana, ben].flatMap(({ watch }) => watch.problems).filter((problem) => !expected.test(problem));
    check("no console errors", problems.length === 0, problems.join("; "));
  },
]);
