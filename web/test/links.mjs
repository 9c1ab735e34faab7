// A result shared with another account: creating the link, what it gives access to, its revocation.
//
// Usage: node test/links.mjs [SCREENSHOT_DIR].
import { readFileSync } from "node:fs";
import {
  SIZES, Server, TIMEOUT_MS, check, confirmColumns, createAccount, looker, openBrowser, run, signUp, watchErrors,
} from "./support.mjs";

const file = new URL("small.csv", import.meta.url).pathname;
const server = await new Server().start();
const browser = await openBrowser();

async function visitor() {
  const page = await (await browser.newContext({ viewport: SIZES.wide, acceptDownloads: true })).newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  return page;
}

const ana = await visitor();
const ben = await visitor();
const watch = watchErrors(ben);
/** All requests of both browsers. */
const sent = [];
for (const page of [ana, ben]) page.on("request", (request) => sent.push(request));
let link;
let job;

/** Runs a job, and opens the page of its result. */
async function begin() {
  await signUp(ana, server.address);
  await ana.getByRole("link", { name: "Create the first dataset" }).click();
  await confirmColumns(ana, file);
  await ana.getByRole("button", { name: "Encrypt and upload" }).click();
  await ana.getByText("Done. The dataset is ready.").waitFor();
  await ana.getByRole("button", { name: "Run a job" }).click();
  await ana.getByRole("dialog").getByRole("button", { name: "Run it" }).click();
  await ana.getByRole("link", { name: "The synthetic table" }).click();
  await ana.waitForURL(/\/result$/);
  job = ana.url().split("/").at(-2);
}

async function make() {
  await ana.getByLabel("Who is it for?").fill("Ben, statistics");
  check("a link expires by default", (await ana.getByLabel("How long is it valid?").inputValue()) === "90");
  await ana.getByLabel("How long is it valid?").selectOption("30 days");
  await ana.getByRole("button", { name: "Create a link" }).click();
  await ana.getByText("This is the only time that the link").waitFor();
  link = (await ana.locator(".notice pre").innerText()).trim();
  check("a new link is shown with its secret", new RegExp(`^${server.address}/shared/[0-9a-f-]{36}#[\\w-]{43}$`).test(link));
  await ana.getByRole("region", { name: "Synthetic records" }).getByRole("row").nth(3).waitFor();
  await looker(ana)("links");
  const answers = ana.waitForResponse((answer) => answer.request().method() === "GET" && answer.url().includes("/links")).then((answer) => answer.json());
  await ana.reload();
  await ana.getByRole("row", { name: /Ben, statistics.*never/ }).waitFor();
  const [entry] = (await answers).items;
  check("the list has the link's expiry", Date.parse(entry.expires_at) - Date.parse(entry.created_at) === 30 * 24 * 3600 * 1000);
  check("the secret is not shown again", !(await ana.content()).includes(link.split("#")[1]));
}

/** A visitor who is not signed in signs up first, and then comes back to the link. */
async function open() {
  await ben.goto(link);
  await ben.getByRole("link", { name: "Create one" }).click();
  await createAccount(ben, "ben");
  await ben.getByRole("heading", { name: /^Synthetic / }).waitFor();
  const rows = ben.getByRole("region", { name: "Synthetic records" }).getByRole("row");
  await rows.nth(12).waitFor();
  const words = await ben.locator("main").innerText();
  check("the link shows a preview and how the table was made", /Epsilon/.test(words) && /mostly noise/.test(words));
  check("the link offers no comparison with the real records", (await ben.locator("#original").count()) === 0 && !/How close is it\?/.test(words));
  await looker(ben)("shared");
  await ben.getByLabel("Column", { exact: true }).selectOption({ index: 1 });
  await ben.getByLabel(/^(Value|Range or group)$/).selectOption({ index: 1 });
  await ben.getByRole("button", { name: "Add the condition" }).click();
  await ben.getByLabel("Records").first().fill("20");
  const [table] = await Promise.all([ben.waitForEvent("download"), ben.getByRole("button", { name: "Download" }).click()]);
  const drawn = readFileSync(await table.path(), "utf8").trim().split(/\r?\n/);
  check("a table is drawn with a condition", drawn.length === 21, drawn[0]);
  const [card] = await Promise.all([ben.waitForEvent("download"), ben.getByRole("button", { name: "Data card" }).click()]);
  const text = readFileSync(await card.path(), "utf8");
  check("the data card downloads", text.includes(job) && /Differential privacy: epsilon/.test(text));
}

async function nothingElse() {
  watch.expected.push(/404/);
  for (const path of [`/jobs/${job}`, `/jobs/${job}/result`]) {
    await ben.goto(server.address + path);
    await ben.getByRole("heading", { name: "Not found" }).waitFor();
  }
  check("the link gives no access to the job and its report", true);
  await ben.goto(server.address);
  await ben.getByRole("heading", { name: "No datasets yet" }).waitFor();
  check("the link gives no access to the dataset", true);
  watch.expected.pop();
}

async function secrets() {
  const secret = link.split("#")[1];
  // The part after the # is not sent to the server.
  const addresses = sent.map((request) => request.url().split("#")[0]);
  check("no URL contains the secret", !addresses.some((address) => address.includes(secret)), `${addresses.length} calls`);
  const shown = sent.filter((request) => request.headers()["fhaim-link"] === secret);
  check("only the generation service receives the secret", shown.length > 2 && shown.every((request) => new URL(request.url()).pathname.startsWith("/generation/v1/links/")));
}

async function revoke() {
  await ana.reload();
  const opened = ana.getByRole("row", { name: /Ben, statistics/ });
  await opened.waitFor();
  check("the holder sees that the link was opened", !(await opened.innerText()).includes("never"));
  await opened.getByRole("button", { name: "Revoke" }).click();
  const dialog = ana.getByRole("dialog", { name: /^Revoke the link/ });
  await looker(ana)("link-revoke");
  await dialog.getByRole("button", { name: "Revoke" }).click();
  await opened.waitFor({ state: "detached" });
  watch.expected.push(/404/);
  await ben.goto(link);
  await ben.getByRole("heading", { name: "This link does not open" }).waitFor();
  await looker(ben)("shared-revoked");
  watch.expected.pop();
  check("a revoked link does not open", true);
}

await run(server, browser, ben, [
  begin, make, open, nothingElse, secrets, revoke,
  function noErrors() {
    check("no console errors", watch.problems.length === 0, watch.problems.join("; "));
  },
]);
