// What holders call their datasets and jobs.
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

await run(server, browser, page, [
  begin, rename, notes,
  function noErrors() {
    check("no console errors", watch.problems.length === 0, watch.problems.join("; "));
  },
]);
