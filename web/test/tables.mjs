// The export of a hospital, from the upload to the download without leaving the page: dates, codes, decimal commas,
// gaps, an identifier and free text. Checks the draft of each column, and the column in the synthetic table.
//
// Usage: node test/tables.mjs [SCREENSHOT_DIR]. FHAIM_HOSPITAL is the path of the program that prints the export.
// The default is examples/hospital in the folder of the fhaim program (cargo build -p fhaim-kit --example hospital).
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  PASSWORD, SIZES, Server, TIMEOUT_MS, check, confirmAll, hospital, looker, openBrowser, program, run, signUp, watchErrors,
} from "./support.mjs";

const folder = mkdtempSync(join(tmpdir(), "fhaim-tables-"));
const file = hospital(folder);
const real = table(new TextDecoder("windows-1252").decode(readFileSync(file)), ";");

const server = await new Server().start();
const browser = await openBrowser();
const context = await browser.newContext({ viewport: SIZES.wide, acceptDownloads: true });
const page = await context.newPage();
page.setDefaultTimeout(TIMEOUT_MS);
const watch = watchErrors(page);
const look = looker(page);

/** Parses a table by column. No field contains a delimiter or a line end, but some are quoted. */
function table(text, delimiter) {
  const split = (line) => [...line.matchAll(new RegExp(`("[^"]*"|[^${delimiter}]*)(${delimiter}|$)`, "g"))]
    .map(([, field]) => field.replace(/^"(.*)"$/, "$1"));
  const [header, ...records] = text.trim().split(/\r?\n/).map(split);
  return Object.fromEntries(header.map((name, at) => [name, records.map((record) => record[at])]).filter(([name]) => name));
}

/** A code book that has all codes of the export, and three times as many others. */
const CODE_BOOK = ["A", "C", "I", "J"].flatMap((letter) =>
  Array.from({ length: 400 }, (_, i) => `${letter}${String(Math.floor(i / 10)).padStart(2, "0")}.${i % 10}`));

const next = () => page.getByRole("button", { name: "Continue" });

async function drop() {
  await page.getByRole("link", { name: "Create the first dataset" }).click();
  await page.locator("#table-file").setInputFiles(file);
  await page.getByRole("heading", { name: "Which values may each column take?" }).waitFor();
  const kinds = {};
  for (const name of Object.keys(real)) kinds[name] = await page.getByLabel(`Type of ${name}`, { exact: true }).inputValue();
  assert.deepEqual(kinds, {
    fall: "identifier", aufnahme: "datetime", entlassung: "datetime", station: "categorical", alter: "number",
    gewicht: "number", crp: "number", plz: "categorical", icd: "left-out", notiz: "left-out",
  });
  check("every column of the export is drafted", true, Object.values(kinds).join());
  const said = (await page.locator("dl.facts").first().innerText()).replace(/\s+/g, " ");
  check("the number of records, the separator and the encoding are shown", /3,000/.test(said) && /semicolons/.test(said) && /windows-1252/.test(said), said);
  const wards = await page.getByLabel("Categories of station, one per line").inputValue();
  check("letters are decoded with the file's encoding", wards.includes("Künstliche Ernährung"), wards.replaceAll("\n", ", "));
  check("the draft recognizes that discharge is never before admission",
    (await page.getByLabel("entlassung: never before").inputValue()) === "aufnahme");
  const asked = await page.getByRole("row", { name: "icd" }).locator(".notes").innerText();
  check("the draft asks for the code book of codes that few records share", /Question: .*code book/.test(asked), asked);
  const left = await page.getByRole("row", { name: "notiz" }).innerText();
  check("a column that is left out stays visible, with the reason", /free text/.test(left), left.replace(/\s+/g, " "));
  await page.getByText("Counts over all pairs").waitFor();
  await look("tables-columns");
}

/** All problems are shown at once, each in the row of its column, and can be undone. */
async function mistakes() {
  await page.getByLabel("gewicht: parts per bin").fill("0");
  await page.getByLabel("Categories of station, one per line").fill("");
  await page.locator(".problem").nth(1).waitFor();
  const rows = await page.locator("tr", { has: page.locator(".problem") }).locator("strong").allInnerTexts();
  assert.deepEqual(rows, ["station", "gewicht"]);
  check("two problems are shown in the rows of their columns", await next().isDisabled());
  await look("tables-mistakes");
  const undo = page.getByRole("button", { name: "Undo" });
  while (await undo.isEnabled()) await undo.click();
  await page.locator(".problem").first().waitFor({ state: "detached" });
  check("undo removes both problems", (await page.getByLabel("Categories of station, one per line").inputValue()).includes("Chirurgie"));
}

/** Edits survive a step back and a reload. */
async function edits() {
  await page.getByLabel("Type of icd", { exact: true }).selectOption("code");
  await page.getByLabel("Codes of icd, one per line").fill(CODE_BOOK.join("\n"));
  await page.getByLabel("icd: prefix length").fill("2");
  await page.getByRole("row", { name: "alter" }).getByRole("button", { name: "use equal bins" }).click();
  await page.getByLabel("alter: from").fill("0");
  await page.getByLabel("alter: to").fill("119");
  await page.getByLabel("alter: bins").fill("12");
  await page.getByLabel("Type of notiz", { exact: true }).selectOption("identifier");
  await page.getByLabel("notiz: pattern").fill("N[0-9]{4}");
  await page.getByRole("button", { name: "Back" }).click();
  await page.getByRole("button", { name: "Continue with export.csv" }).click();
  check("edits survive a step back", (await page.getByLabel("alter: to").inputValue()) === "119");
  await page.reload();
  await page.locator("#table-file").setInputFiles(file);
  await page.getByLabel("alter: to").waitFor();
  check("edits survive a reload", (await page.getByLabel("notiz: pattern").inputValue()) === "N[0-9]{4}");
  await page.getByRole("button", { name: "Leave out notiz" }).click();
}

async function budget() {
  await confirmAll(page);
  await next().click();
  await page.getByRole("heading", { name: "Signal or noise?" }).waitFor();
  await page.getByLabel(/^Strong/).check();
  await page.getByText("ε 0.5 at δ").waitFor();
  await page.getByText("mostly noise").first().waitFor();
  await look("tables-budget");
  await page.getByText("Advanced: epsilon").click();
  await page.getByLabel("Uploaded data (encrypted)").selectOption("counts");
  await page.getByLabel(/^Balanced/).check();
  await page.getByRole("heading", { name: "Signal or noise?" }).waitFor();
  await page.getByRole("button", { name: "Encrypt and upload" }).click();
  await page.getByText("Done. The dataset is ready.").waitFor();
  const facts = await page.locator("section", { hasText: "Encrypted and uploaded" }).locator("dl.facts").innerText();
  console.log(`upload: ${facts.replace(/\n/g, " ")}`);
}

/** For the same schema, the page and the command make exactly the same terms. */
function theCommandsTerms() {
  const env = { ...process.env, FHAIM_CONFIG_DIR: folder, FHAIM_PASSWORD: PASSWORD };
  const fhaim = (...given) => execFileSync(program, given, { env, stdio: ["ignore", "pipe", "pipe"] }).toString();
  fhaim("account", "login", "--server", server.address, "--email", email);
  const made = JSON.parse(fhaim("dataset", "show", page.url().split("/").at(-1), "--json")).terms;
  const schema = join(folder, "schema.json");
  writeFileSync(schema, JSON.stringify(made.schema));
  const id = fhaim("dataset", "create", "--schema", schema, "--epsilon", "1", "--record-bound",
    String(made.record_bound), "--contribution", "counts").trim();
  const { terms } = JSON.parse(fhaim("dataset", "show", id, "--json"));
  fhaim("dataset", "delete", id, "--yes");
  assert.deepEqual(made, terms);
  check("the page makes the same complete terms as the command", made.need && made.parameter_set, JSON.stringify(made.need));
}

async function job() {
  await page.getByRole("button", { name: "Run a job" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run it" }).click();
  await page.getByRole("link", { name: "The synthetic table" }).click();
  await page.getByRole("region", { name: "Synthetic records" }).getByRole("row").nth(3).waitFor();
}

/** Presses a button and returns the downloaded text. */
async function downloaded(name) {
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name, exact: true }).click()]);
  return readFileSync(await file.path(), "utf8");
}

const share = (column, value) => column.filter((found) => found === value).length / column.length;
/** Rewrites a German date and time so that it sorts as text. */
const sortable = (text) => text.replace(/^(..)\.(..)\.(....)/, "$3$2$1");

async function theTable() {
  await page.getByLabel("Records").first().fill("3000");
  const drawn = table(await downloaded("Download"), ",");
  assert.deepEqual(Object.keys(drawn), Object.keys(real).filter((name) => name !== "notiz"));
  check("no stay ends before it began",
    drawn.aufnahme.every((from, at) => sortable(from) <= sortable(drawn.entlassung[at])), drawn.entlassung[0]);
  check("identifiers are newly generated and distinct",
    new Set(drawn.fall).size === 3000 && drawn.fall.every((id) => /^P\d{5}$/.test(id)), drawn.fall[0]);
  for (const name of ["gewicht", "crp"]) {
    check(`${name} has the decimals of the original`, drawn[name].every((text) => /^\d+,\d$/.test(text)), drawn[name][0]);
  }
  // The draft lists a postal code only if enough records share it.
  for (const [name, listed] of [["station", real.station], ["plz", [...real.plz, "other"]], ["icd", CODE_BOOK]]) {
    const known = new Set(listed);
    check(`${name} has only listed values`, drawn[name].every((value) => known.has(value)), drawn[name][0]);
  }
  const [here, there] = [share(drawn.alter, ""), share(real.alter, "")];
  check("the share of missing ages is the same, within the noise", Math.abs(here - there) < 0.05, `${here.toFixed(3)} for ${there.toFixed(3)}`);
  for (const ward of new Set(real.station)) {
    check(`the share of ${ward} is the same, within the noise`, Math.abs(share(drawn.station, ward) - share(real.station, ward)) < 0.05);
  }
}

/** Draws records with conditions from the table: a ward, and a range of ages. */
async function conditions() {
  const add = async (column, label, value) => {
    await page.getByLabel("Column", { exact: true }).selectOption(column);
    await page.getByLabel(label, { exact: true }).selectOption(value);
    await page.getByRole("button", { name: "Add the condition" }).click();
  };
  await add("station", "Value", "Chirurgie");
  await page.getByLabel("Column", { exact: true }).selectOption("alter");
  const range = await page.getByLabel("Range or group", { exact: true }).locator("option").nth(5).innerText();
  await add("alter", "Range or group", range);
  await page.getByLabel("Records").first().fill("50");
  const drawn = table(await downloaded("Download"), ",");
  const [from, to] = range.split(" to ").map(Number);
  check("records meet the chosen conditions", drawn.station.every((ward) => ward === "Chirurgie")
    && drawn.alter.every((age) => age !== "" && Number(age) >= from && Number(age) <= to), `${range}: ${drawn.alter.slice(0, 3).join()}`);
  await look("tables-conditions");
  await page.getByRole("button", { name: "Drop the condition on alter" }).click();
  await page.getByRole("button", { name: "Drop the condition on station" }).click();
}

async function report() {
  await page.locator("#original").setInputFiles(file);
  await page.getByRole("heading", { name: "Assessment" }).waitFor();
  const words = await page.locator("section#assessment").innerText();
  check("the assessment is shown in words", /can be used/.test(words), words.replace(/\s+/g, " "));
  await look("tables-result");
  const html = await downloaded("Download the report");
  check("the report downloads as an HTML page", html.includes("<h2>Assessment</h2>") && html.includes("<h2>Columns</h2>"));
  const card = await downloaded("Data card");
  check("the data card downloads", /epsilon 1 at delta 1e-9/.test(card) && /crp/.test(card) && /left out/.test(card));
  const schema = JSON.parse(await downloaded("Schema"));
  check("the schema downloads", schema.version === undefined && schema.columns.length === 10);
}

let email;
await run(server, browser, page, [
  async function begin() {
    email = await signUp(page, server.address);
  },
  drop, mistakes, edits, budget, theCommandsTerms, job, theTable, conditions, report,
  function noErrors() {
    check("no console errors", watch.problems.length === 0, watch.problems.join("; "));
  },
]);
