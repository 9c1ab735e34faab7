// Names of datasets, notes on jobs, and the comparison of two jobs.
//
// Usage: node test/jobs.mjs [SCREENSHOT_DIR].
import {
  SIZES, Server, TIMEOUT_MS, check, confirmColumns, looker, openBrowser, run, signUp, watchErrors,
} from "./support.mjs";

const file = new URL("small.csv", import.meta.url).pathname;
const server = await new Server().start();
const browser = await openBrowser();
const page = await (await browser.newContext({ viewport: SIZES.wide })).newPage();
page.setDefaultTimeout(TIMEOUT_MS);
const watch = watchErrors(page);
const look = looker(page);
let dataset;

async function begin() {
  await signUp(page, server.address);
  await page.getByRole("link", { name: "Create the first dataset" }).click();
  await confirmColumns(page, file);
  await page.getByText("Advanced: epsilon").click();
  await page.getByLabel("Jobs that share it").selectOption("2");
  await page.getByRole("button", { name: "Encrypt and upload" }).click();
  await page.getByText("Done. The dataset is ready.").waitFor();
  dataset = page.url();
}

async function rename() {
  await page.getByRole("button", { name: "Rename" }).click();
  const dialog = page.getByRole("dialog", { name: /^Rename “small”/ });
  watch.expected.push(/422/);
  await dialog.getByLabel("New name").fill("");
  await dialog.getByRole("button", { name: "Rename it" }).click();
  const words = await dialog.getByRole("alert").innerText();
  check("an empty name is rejected", /1 to 200 characters/.test(words), words);
  watch.expected.pop();
  await dialog.getByLabel("New name").fill("Admissions 2026");
  await look("dataset-rename");
  await dialog.getByRole("button", { name: "Rename it" }).click();
  await page.getByRole("heading", { name: /^Admissions 2026/ }).waitFor();
  await page.goto(server.address);
  await page.getByRole("link", { name: "Admissions 2026" }).waitFor();
  check("the list shows the new name", true);
}

/** Runs a job and writes a note on it. */
async function job(note) {
  await page.goto(dataset);
  await page.getByRole("button", { name: "Run a job" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run it" }).click();
  await page.getByRole("link", { name: "The synthetic table" }).waitFor();
  await page.getByRole("button", { name: "Note" }).click();
  const dialog = page.getByRole("dialog", { name: "A note on this job" });
  await dialog.getByLabel("Text of the note").fill(note);
  if (note === "the first") await look("job-note");
  await dialog.getByRole("button", { name: "Save the note" }).click();
  await page.locator("p", { hasText: note }).waitFor();
}

async function notes() {
  await job("the first");
  await job("the second");
  await page.goto(dataset);
  await page.getByRole("row", { name: /the first/ }).waitFor();
  check("jobs are listed with their notes", await page.getByRole("row", { name: /the second/ }).isVisible());
  await look("dataset-jobs");
}

/** Finds the row of figures with this label. */
function labelled(label) {
  return page.getByRole("row").filter({ has: page.getByRole("rowheader", { name: label, exact: true }) });
}

/** Returns the cells of a row of figures, without its label. */
function figures(label) {
  return labelled(label).getByRole("cell").allInnerTexts();
}

async function compare() {
  await page.getByRole("link", { name: "Compare jobs" }).click();
  await page.getByRole("heading", { name: "Costs and results" }).waitFor();
  const heads = await page.getByRole("region", { name: "Both jobs" }).getByRole("columnheader").allInnerTexts();
  check("jobs are named by their notes", heads.join() === "the second,the first", heads.join());
  const spent = await figures("Epsilon spent");
  // Two runs share a budget of epsilon 1 equally: each costs less than 1 and more than one half.
  check("the spending of each job is shown as epsilon", spent.length === 2 && spent.every((text) => parseFloat(text) > 0.5 && parseFloat(text) < 0.8), spent.join());
  const took = await figures("Duration");
  check("the duration of each job is shown", took.every((text) => /^\d+\.\d s$/.test(text)), took.join());
  const fits = await figures("Fit to the noisy counts: mean distance");
  check("the distance of each fit from its counts is shown", fits.every((text) => /^0\.\d{4}$/.test(text)), fits.join());
  await page.locator("#original").setInputFiles(file);
  await page.getByRole("heading", { name: "Distance from the original" }).waitFor();
  const means = (await figures("Columns: mean distance")).map(Number);
  const columns = await Promise.all(["colour", "size", "weight", "sold"].map(figures));
  const own = [0, 1].map((side) => columns.reduce((sum, cells) => sum + Number(cells[side]), 0) / 4);
  check("the mean distances are the means of the columns' distances", means.every((mean, side) => Math.abs(mean - own[side]) < 2e-4), `${means} ${own}`);
  const bold = await labelled("Columns: mean distance").locator("strong").innerText();
  check("the smaller value is bold", Number(bold) === Math.min(...means), bold);
  await look("compare");
}

/** With damaged data in the browser's storage, the page works as if the storage were empty. */
async function damagedStorage() {
  const keys = await page.evaluate(() => {
    const damaged = Object.keys(localStorage).filter((key) => key.startsWith("fhaim."));
    damaged.forEach((key, at) => localStorage.setItem(key, ["{", "7", '[{"rho":"x"}]', "null"][at % 4]));
    sessionStorage.setItem("fhaim.draft", '{"drafted": {}}');
    return damaged;
  });
  check("the storage has receipts, settings of read tables, and digests of uploaded files", keys.length >= 3, keys.join());
  await page.goto(dataset);
  await page.getByRole("link", { name: "Compare jobs" }).waitFor();
  // Waits for the ledger's bar by its label: text with "spent" also appears in a closed dialog.
  await page.getByRole("img", { name: /of the budget is spent/ }).waitFor();
  await page.goto(`${server.address}/datasets/new`);
  await confirmColumns(page, file);
  check("a page with damaged storage shows no error", (await page.getByRole("alert").count()) === 0);
}

async function choose() {
  const address = page.url();
  check("a job cannot be compared with itself", (await page.getByLabel("Second job").locator("option:disabled").count()) === 1);
  await page.goto(address.slice(0, address.lastIndexOf("/")));
  await page.getByText("Choose the job to compare it with.").waitFor();
  await look("compare-choose");
  await page.getByLabel("Second job").selectOption({ index: 2 });
  await page.getByRole("heading", { name: "Costs and results" }).waitFor();
  check("choosing two jobs opens their comparison", page.url() === address, page.url());
}

await run(server, browser, page, [
  begin, rename, notes, compare, choose, damagedStorage,
  function noErrors() {
    check("no console errors", watch.problems.length === 0, watch.problems.join("; "));
  },
]);
