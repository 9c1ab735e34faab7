// Lists of values in a schema: names of people never get into a public list, and each list needs its own confirmation.
// The table has surnames, wards, weights and fees. All requests of the browser are searched for the surnames.
//
// Usage: node test/lists.mjs [SCREENSHOT_DIR].
import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  SIZES, Server, TIMEOUT_MS, check, confirmAll, looker, openBrowser, run, signUp, watchErrors,
} from "./support.mjs";

/** Number of records. The page keeps the first 500 in memory to show them. */
const RECORDS = 1200;
const SHOWN = 500;

const STARTS = ["Bran", "Dol", "Fen", "Gar", "Hul", "Kest", "Lor", "Mard", "Nor", "Pell", "Quim", "Rost", "Sav", "Tolm", "Wex"];
const MIDDLES = ["a", "ebe", "ido", "oga", "uri", "ane", "ilo", "osu", "ewi", "uta"];
const ENDS = ["kovar", "litz", "mandt", "nerry", "pollo", "quist", "rendahl", "stovic"];
const SURNAMES = STARTS.flatMap((start) => MIDDLES.flatMap((middle) => ENDS.map((end) => start + middle + end)));
const WARDS = ["Surgery", "Cardiology", "Paediatrics", "Neurology"];

/** Takes the surnames in an order in which neighbours differ. */
const surname = (i) => SURNAMES[(i * 7) % SURNAMES.length];
const fee = (i) => (i % 20 === 0 ? "waived" : `$${(500 * (1 + ((i * 37) % 400))).toLocaleString("en")}`);
const weight = (i) => (40 + ((i * 53) % 811) / 10).toFixed(1);

const file = join(mkdtempSync(join(tmpdir(), "fhaim-lists-")), "patients.csv");
const record = (i) => [surname(i), WARDS[i % 4], weight(i), fee(i)].join(";");
const records = Array.from({ length: RECORDS }, (_, i) => record(i));
writeFileSync(file, `surname;ward;weight;fee\n${records.join("\n")}\n`);

const server = await new Server().start();
const browser = await openBrowser();
const context = await browser.newContext({ viewport: SIZES.wide });
const page = await context.newPage();
page.setDefaultTimeout(TIMEOUT_MS);
const watch = watchErrors(page);
const look = looker(page);

/** All requests of the browser. */
const sent = [];
context.on("request", (request) => {
  sent.push({ url: request.url(), method: request.method(), body: request.postDataBuffer() });
});

const next = () => page.getByRole("button", { name: "Continue" });
const row = (name) => page.locator(`tr[data-column="${name}"]`);
const type = (name) => page.getByLabel(`Type of ${name}`, { exact: true });
const confirmation = (name) => page.getByLabel(`The values of ${name} are public`);
const surnames = () => page.getByLabel("Categories of surname, one per line");

/** Returns the schema that the page would send. */
const schema = () => page.evaluate(() => JSON.parse(sessionStorage.getItem("fhaim.draft")).drafted.schema);

function surnamesIn(text) {
  return SURNAMES.filter((name) => text.includes(name));
}

async function drafts() {
  await page.getByRole("link", { name: "Create the first dataset" }).click();
  await page.locator("#table-file").setInputFiles(file);
  await page.getByRole("heading", { name: "Which values may each column take?" }).waitFor();
  const drafted = JSON.stringify(await schema());
  check("the drafted schema has no surname", surnamesIn(drafted).length === 0, drafted);
  check("near-unique texts are not listed", ["left-out", "identifier"].includes(await type("surname").inputValue()));
  const notes = await page.locator(".notes").allInnerTexts();
  check("no note has a surname", surnamesIn(notes.join()).length === 0);
  const said = await row("fee").locator(".notes li").allInnerTexts();
  check("all notes of a column are shown", said.length > 1, said.join(" | "));
  await look("lists-draft");
}

async function ownConfirmations() {
  await page.getByRole("button", { name: "Confirm remaining columns" }).click();
  check("columns without a list are confirmed together",
    (await confirmation("weight").isChecked()) && (await confirmation("fee").isChecked()));
  check("a list is not confirmed with other columns", !(await confirmation("ward").isChecked()));
  check("the number of lists to confirm is shown", await page.getByText("1 list to confirm").isVisible());
  check("an unconfirmed list cannot be continued with", await next().isDisabled());
  await page.getByRole("button", { name: "Show the next list" }).click();
  const focused = await page.evaluate(() => document.activeElement.getAttribute("aria-label"));
  check("the next list is found by a button", focused === "The values of ward are public", focused);
  await confirmation("ward").check();
  check("confirmed lists can be continued with", await next().isEnabled());
}

async function listsOfRecords() {
  await type("surname").selectOption("categorical");
  check("a near-unique column gets no values into its list", (await surnames().inputValue()) === "");
  const shown = [...new Set(Array.from({ length: 40 }, (_, i) => surname(i)))];
  await surnames().fill(shown.join("\n"));
  check("a list of values of the records cannot be confirmed", await confirmation("surname").isDisabled());
  const words = await row("surname").locator(".of-records").innerText();
  check("the page says why and what to do", /in your records/.test(words) && /leave the column out/.test(words), words);
  check("a list of values of the records cannot be continued with", await next().isDisabled());
  await look("lists-of-records");
}

/** Records that the page does not keep in memory are known to the module only. */
async function refusal() {
  const rest = Array.from({ length: RECORDS - SHOWN }, (_, i) => surname(SHOWN + i));
  await surnames().fill([...new Set(rest), "other"].join("\n"));
  await page.getByLabel("surname: other values count as").fill("other");
  await confirmAll(page);
  await next().click();
  const words = await page.getByRole("alert").innerText();
  check("the module refuses a near-unique list", /column "surname"/.test(words) && /identifier, newly generated/.test(words), words);
  await look("lists-refused");
}

async function upload() {
  await type("surname").selectOption("identifier");
  await page.getByLabel("fee: bins").or(page.getByLabel("fee: parts per bin")).first().fill("4");
  await confirmAll(page);
  const confirmed = await schema();
  await next().click();
  await page.getByRole("heading", { name: "Effect on your counts" }).waitFor();
  await page.getByRole("button", { name: "Encrypt and upload" }).click();
  await page.getByText("Done. The dataset is ready.").waitFor();
  const created = sent.find(({ url, method }) => method === "PUT" && /\/v1\/datasets\/[^/]+$/.test(url));
  const { terms } = JSON.parse(created.body.toString());
  const fees = terms.schema.columns.find(({ name }) => name === "fee");
  assert.deepEqual(fees, confirmed.columns.find(({ name }) => name === "fee"));
  check("an edited column keeps its other settings",
    fees.before === "$" && fees.thousands === "," && fees.step === 500 && fees.special.includes("waived"), JSON.stringify(fees));
}

function nothingWasSent() {
  const text = sent.map(({ url, body }) => `${decodeURIComponent(url)}\n${body?.toString("latin1") ?? ""}`).join("\n");
  const found = surnamesIn(text);
  check("no request has a surname", found.length === 0, found.join() || `${sent.length} requests, ${text.length} bytes`);
}

await run(server, browser, page, [
  async function begin() {
    await signUp(page, server.address);
  },
  drafts, ownConfirmations, listsOfRecords, refusal, upload, nothingWasSent,
  function noErrors() {
    check("no console errors", watch.problems.length === 0, watch.problems.join("; "));
  },
]);
