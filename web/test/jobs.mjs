// What holders call their datasets and jobs, and two jobs side by side.
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
  await page.getByRole("link", { name: "Make the first dataset" }).click();
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
  await dialog.getByLabel("Its new name").fill("");
  await dialog.getByRole("button", { name: "Rename it" }).click();
  const words = await dialog.getByRole("alert").innerText();
  check("a dataset has a name", /1 to 200 characters/.test(words), words);
  watch.expected.pop();
  await dialog.getByLabel("Its new name").fill("Admissions 2026");
  await look("dataset-rename");
  await dialog.getByRole("button", { name: "Rename it" }).click();
  await page.getByRole("heading", { name: /^Admissions 2026/ }).waitFor();
  await page.goto(server.address);
  await page.getByRole("link", { name: "Admissions 2026" }).waitFor();
  check("it is called so wherever it is listed", true);
}

/** Runs a job and notes something on it. */
async function job(note) {
  await page.goto(dataset);
  await page.getByRole("button", { name: "Run a job" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run it" }).click();
  await page.getByRole("link", { name: "The synthetic table" }).waitFor();
  await page.getByRole("button", { name: "Note" }).click();
  const dialog = page.getByRole("dialog", { name: "A note on this job" });
  await dialog.getByLabel("By which to tell it from others").fill(note);
  if (note === "the first") await look("job-note");
  await dialog.getByRole("button", { name: "Keep the note" }).click();
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

/** The row of figures with this label. */
function labelled(label) {
  return page.getByRole("row").filter({ has: page.getByRole("rowheader", { name: label, exact: true }) });
}

/** The cells of a row of figures, without its label. */
function figures(label) {
  return labelled(label).getByRole("cell").allInnerTexts();
}

async function compare() {
  await page.getByRole("link", { name: "Compare jobs" }).click();
  await page.getByRole("heading", { name: "What they spent and made" }).waitFor();
  const heads = await page.getByRole("region", { name: "Both jobs" }).getByRole("columnheader").allInnerTexts();
  check("jobs go by their notes", heads.join() === "the second,the first", heads.join());
  const spent = await figures("Epsilon spent");
  // Two runs at equal shares of a budget of epsilon 1: each costs less than all, and more than half.
  check("what each spent is an epsilon", spent.length === 2 && spent.every((text) => parseFloat(text) > 0.5 && parseFloat(text) < 0.8), spent.join());
  const took = await figures("From start to end");
  check("and how long each took", took.every((text) => /^\d+\.\d s$/.test(text)), took.join());
  const fits = await figures("Fit to the noisy counts: mean distance");
  check("how far each fit is from its counts", fits.every((text) => /^0\.\d{4}$/.test(text)), fits.join());
  await page.locator("#original").setInputFiles(file);
  await page.getByRole("heading", { name: "Distance from the original" }).waitFor();
  const means = (await figures("Columns: mean distance")).map(Number);
  const columns = await Promise.all(["colour", "size", "weight", "sold"].map(figures));
  const own = [0, 1].map((side) => columns.reduce((sum, cells) => sum + Number(cells[side]), 0) / 4);
  check("the report's figures side by side", means.every((mean, side) => Math.abs(mean - own[side]) < 2e-4), `${means} ${own}`);
  const bold = await labelled("Columns: mean distance").locator("strong").innerText();
  check("the smaller of two is bold", Number(bold) === Math.min(...means), bold);
  await look("compare");
}

/** Whatever stands in the browser's storage, the page goes on as if there were nothing. */
async function spoilt() {
  const keys = await page.evaluate(() => {
    const spoilt = Object.keys(localStorage).filter((key) => key.startsWith("fhaim."));
    spoilt.forEach((key, at) => localStorage.setItem(key, ["{", "7", '[{"rho":"x"}]', "null"][at % 4]));
    sessionStorage.setItem("fhaim.draft", '{"drafted": {}}');
    return spoilt;
  });
  check("it keeps receipts, how tables were read, and what was uploaded", keys.length >= 3, keys.join());
  await page.goto(dataset);
  await page.getByRole("link", { name: "Compare jobs" }).waitFor();
  // The ledger's bar: of what is written, "spent" stands first in a dialog that is closed.
  await page.getByRole("img", { name: /of the budget is spent/ }).waitFor();
  await page.goto(`${server.address}/datasets/new`);
  await confirmColumns(page, file);
  check("a page with spoilt storage goes on", (await page.getByRole("alert").count()) === 0);
}

async function choose() {
  const address = page.url();
  check("a job is not compared with itself", (await page.getByLabel("Another").locator("option:disabled").count()) === 1);
  await page.goto(address.slice(0, address.lastIndexOf("/")));
  await page.getByText("Choose the job to compare it with.").waitFor();
  await look("compare-choose");
  await page.getByLabel("Another").selectOption({ index: 2 });
  await page.getByRole("heading", { name: "What they spent and made" }).waitFor();
  check("two jobs are chosen by their lists", page.url() === address, page.url());
}

await run(server, browser, page, [
  begin, rename, notes, compare, choose, spoilt,
  function noErrors() {
    check("no console errors", watch.problems.length === 0, watch.problems.join("; "));
  },
]);
