// Rules between columns: a draft proposes those that hold in all records, they are off until the holder accepts each,
// and only accepted ones leave the browser. The table has an equal column, and a code with its label.
//
// Usage: node test/rules.mjs [SCREENSHOT_DIR].
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SIZES, Server, TIMEOUT_MS, check, confirmAll, looker, openBrowser, run, signUp, watchErrors } from "./support.mjs";

const RECORDS = 1200;
const DEPARTMENTS = { C1: "Cardiology", N1: "Neurology", P1: "Paediatrics", S1: "Surgery", S2: "Surgery" };
const WARDS = ["east", "north", "west"];

const codes = Object.keys(DEPARTMENTS);
const code = (i) => codes[(i * 7 + Math.floor(i / 11)) % codes.length];
const ward = (i) => WARDS[(i * 5 + Math.floor(i / 13)) % WARDS.length];
const weight = (i) => (40 + ((i * 53) % 811) / 10).toFixed(1);
const record = (i) => [code(i), DEPARTMENTS[code(i)], ward(i), ward(i), weight(i)].join(",");

const file = join(mkdtempSync(join(tmpdir(), "fhaim-rules-")), "stays.csv");
const records = Array.from({ length: RECORDS }, (_, i) => record(i));
writeFileSync(file, `dept_code,dept_name,ward,station,weight\n${records.join("\n")}\n`);

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
/** The rule about two columns. */
const rule = (...columns) => columns.reduce((found, column) => found.filter({ hasText: column }), page.locator(".rules li"));
const box = (...columns) => rule(...columns).getByRole("checkbox");

/** Returns the schema that the page would send. */
const schema = () => page.evaluate(() => JSON.parse(sessionStorage.getItem("fhaim.draft")).drafted.schema);
/** Accepts the rule that makes `dept_name` follow from `dept_code`. */
async function acceptLabel() {
  await box("dept_name", "dept_code").check();
  await page.waitForFunction(() =>
    JSON.parse(sessionStorage.getItem("fhaim.draft")).drafted.schema.columns.some(({ kind }) => kind === "derived"));
}
const column = async (name) => (await schema()).columns.find((column) => column.name === name);

async function chooseFile() {
  await page.locator("#table-file").setInputFiles(file);
  await page.getByRole("heading", { name: "Which values may each column take?" }).waitFor();
}

async function proposals() {
  await page.getByRole("link", { name: "Create the first dataset" }).click();
  await chooseFile();
  check("the page says what a rule reveals", await page.getByText("is a statistic of the data").isVisible());
  check("an equal column is proposed", (await rule("ward", "station").count()) === 1);
  check("a label that follows from a code is proposed", (await rule("dept_name", "dept_code").count()) === 1);
  const said = await rule("dept_name", "dept_code").innerText();
  check("a rule shows how many records support it", said.includes("1,200 records"), said);
  const boxes = await page.locator(".rules input").all();
  const on = await Promise.all(boxes.map((each) => each.isChecked()));
  check("no rule is on", on.length >= 2 && on.every((isOn) => !isOn), on.join());
  const drafted = JSON.stringify(await schema());
  check("no rule is in the drafted schema", !/derived|constraints/.test(drafted), drafted);
  await look("rules-proposed");
}

async function acceptance() {
  await confirmAll(page);
  check("a draft without rules can be continued with", await next().isEnabled());
  await acceptLabel();
  const label = await column("dept_name");
  check("an accepted label follows from its code", label.kind === "derived" && label.from === "dept_code", JSON.stringify(label));
  check("it has the label of each code", JSON.stringify(label.values) === JSON.stringify(DEPARTMENTS));
  check("its row says so", (await row("dept_name").locator(".values").innerText()).includes("follows from dept_code"));
  check("it has to be confirmed again", !(await confirmation("dept_name").isChecked()));
  check("other columns stay confirmed", await confirmation("dept_code").isChecked());
  check("an unconfirmed rule cannot be continued with", await next().isDisabled());
  await look("rules-accepted");
}

async function wayBack() {
  await box("dept_name", "dept_code").uncheck();
  const label = await column("dept_name");
  check("a rule can be taken back", label.kind === "categorical" && label.categories.length === 4, JSON.stringify(label));
  await acceptLabel();
  await type("dept_name").selectOption("categorical");
  check("a column that follows can be turned back", !(await box("dept_name", "dept_code").isChecked()));
  const again = await column("dept_name");
  check("it has its drafted values again", JSON.stringify(again) === JSON.stringify(label), JSON.stringify(again));
  await page.getByLabel("Leave out station").click();
  check("a rule about a column that is left out disappears", (await rule("ward", "station").count()) === 0);
  await page.getByRole("button", { name: "Undo" }).click();
  check("it is back after an undo", (await rule("ward", "station").count()) === 1);
}

async function reload() {
  await acceptLabel();
  await page.reload();
  await chooseFile();
  check("accepted rules are kept", await box("dept_name", "dept_code").isChecked());
  check("others are still off", !(await box("ward", "station").isChecked()));
}

function nothingWasSentBefore() {
  const text = sent.map(({ url, body }) => `${decodeURIComponent(url)}\n${body?.toString("latin1") ?? ""}`).join("\n");
  const found = ["derived", "dept_", "station", ...Object.values(DEPARTMENTS)].filter((word) => text.includes(word));
  check("nothing of the rules is sent before they are confirmed", found.length === 0, found.join() || `${sent.length} requests`);
}

async function upload() {
  await confirmAll(page);
  await next().click();
  await page.getByRole("heading", { name: "Effect on your counts" }).waitFor();
  const shown = page.getByRole("status").filter({ hasText: "These rules become public" });
  const rules = await shown.locator("li").allInnerTexts();
  check("the accepted rule is shown as public, and no other", rules.length === 1 && rules[0].includes("follows from dept_code"), rules.join(" | "));
  nothingWasSentBefore();
  await look("rules-public");
  await page.getByRole("button", { name: "Encrypt and upload" }).click();
  await page.getByText("Done. The dataset is ready.").waitFor();
  const created = sent.find(({ url, method }) => method === "PUT" && /\/v1\/datasets\/[^/]+$/.test(url));
  const { terms } = JSON.parse(created.body.toString());
  const kinds = Object.fromEntries(terms.schema.columns.map(({ name, kind }) => [name, kind]));
  check("the terms have the accepted rule only",
    kinds.dept_name === "derived" && kinds.station === "categorical" && !terms.schema.constraints?.length, JSON.stringify(kinds));
}

async function description() {
  await page.getByText("Public description of the columns").click();
  const words = await page.locator("details", { hasText: "Public description of the columns" }).innerText();
  check("the public description has the rule", /follows from dept_code: C1 is Cardiology/.test(words), words);
}

async function theTable() {
  await page.getByRole("button", { name: "Run a job" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run it" }).click();
  await page.getByRole("link", { name: "The synthetic table" }).click();
  await page.getByRole("region", { name: "Synthetic records" }).getByRole("row").nth(3).waitFor();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download", exact: true }).click(),
  ]);
  const text = readFileSync(await download.path(), "utf8");
  const [header, ...rows] = text.trim().split(/\r?\n/).map((line) => line.split(","));
  const [of, to] = ["dept_code", "dept_name"].map((name) => header.indexOf(name));
  const broken = rows.filter((cells) => DEPARTMENTS[cells[of]] !== cells[to]);
  check("every synthetic record has the label of its code", rows.length > 0 && broken.length === 0, `${rows.length} records`);
}

await run(server, browser, page, [
  async function begin() {
    await signUp(page, server.address);
  },
  proposals, acceptance, wayBack, reload, upload, description, theTable,
  function noErrors() {
    check("no console errors", watch.problems.length === 0, watch.problems.join("; "));
  },
]);
