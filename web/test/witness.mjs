// A second computation service: it is offered only if there is one, gets a copy of the upload, and deletes the copy.
//
// Usage: node test/witness.mjs [SCREENSHOT_DIR].
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import {
  SIZES, Server, TIMEOUT_MS, check, confirmColumns, looker, openBrowser, run, signUp, watchErrors,
} from "./support.mjs";

const file = new URL("small.csv", import.meta.url).pathname;
const server = await new Server("--witness").start();
const alone = await new Server().start();
const browser = await openBrowser();
const page = await (await browser.newContext({ viewport: SIZES.wide })).newPage();
page.setDefaultTimeout(TIMEOUT_MS);
const watch = watchErrors(page);
const look = looker(page);
/** Methods of successful calls to the second service. */
const calls = [];
page.on("response", (response) => {
  const { pathname } = new URL(response.url());
  if (pathname.startsWith("/witness/") && response.ok()) calls.push(response.request().method());
});

/** Counts the files that the second service keeps of uploads. */
function copies() {
  const folder = join(server.folder, "data/witness/blobs/uploads");
  if (!existsSync(folder)) return 0;
  return readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).length;
}

async function notOffered() {
  await signUp(page, alone.address);
  await page.getByRole("link", { name: "Create the first dataset" }).click();
  await confirmColumns(page, file);
  await page.getByRole("button", { name: "Encrypt and upload" }).waitFor();
  const offered = await page.getByText("A second computation service", { exact: true }).count();
  check("no second service is offered if there is none", offered === 0);
  await alone.remove();
}

async function chosen() {
  await signUp(page, server.address);
  await page.getByRole("link", { name: "Create the first dataset" }).click();
  await confirmColumns(page, file);
  await page.getByText("A second computation service", { exact: true }).click();
  await page.getByLabel("Let a second computation service compute").check();
  await look("new-second");
  await page.getByRole("button", { name: "Encrypt and upload" }).click();
  await page.getByText("Done. The dataset is ready.").waitFor();
  await page.getByText("two services, which must agree").waitFor();
  check("the dataset is registered and copied at the second service", calls.includes("PUT") && calls.includes("POST"), calls.join());
  check("the second service keeps files of the upload", copies() > 0, String(copies()));
  await look("dataset-second");
}

async function released() {
  await page.getByRole("button", { name: "Run a job" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run it" }).click();
  await page.getByRole("link", { name: "The synthetic table" }).waitFor();
  check("results on which both services agree are released", true);
}

async function removed() {
  await page.goto(server.address);
  await page.getByRole("link", { name: "small" }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { name: "No datasets yet" }).waitFor();
  check("the second service deletes its copy", calls.includes("DELETE") && copies() === 0, `${calls.at(-1)} ${copies()}`);
  check("no errors in the console", watch.problems.length === 0, watch.problems.join("; "));
}

await run(server, browser, page, [notOffered, chosen, released, removed]);
