// A result in another account's hands: the link, what it opens and what it does not, and its end.
//
// Usage: node test/links.mjs [SCREENSHOT_DIR].
import { readFileSync } from "node:fs";
import {
  PASSWORD, SIZES, Server, TIMEOUT_MS, check, confirmColumns, looker, openBrowser, run, signUp, watchErrors,
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
/** What both browsers sent. */
const sent = [];
for (const page of [ana, ben]) page.on("request", (request) => sent.push(request));
let link;
let job;

/** A finished job, and the page of its result. */
async function begin() {
  await signUp(ana, server.address);
  await ana.getByRole("link", { name: "Make the first dataset" }).click();
  await confirmColumns(ana, file);
  await ana.getByRole("button", { name: "Encrypt and upload" }).click();
  await ana.getByText("Done. The dataset is ready.").waitFor();
  await ana.getByRole("button", { name: "Run a job" }).click();
  await ana.getByRole("dialog").getByRole("button", { name: "Run it" }).click();
  await ana.getByRole("link", { name: "The synthetic table" }).click();
  job = ana.url().split("/").at(-2);
}

async function make() {
  await ana.getByLabel("Whom is it for?").fill("Ben, statistics");
  check("it ends by itself unless one says otherwise", (await ana.getByLabel("How long is it good?").inputValue()) === "90");
  await ana.getByLabel("How long is it good?").selectOption("30 days");
  await ana.getByRole("button", { name: "Make a link" }).click();
  await ana.getByText("This is the only time that the link").waitFor();
  link = (await ana.locator(".notice pre").innerText()).trim();
  check("a link is shown once", new RegExp(`^${server.address}/shared/[0-9a-f-]{36}#[\\w-]{43}$`).test(link));
  await ana.getByRole("region", { name: "Synthetic records" }).getByRole("row").nth(3).waitFor();
  await looker(ana)("links");
  const answers = ana.waitForResponse((answer) => answer.request().method() === "GET" && answer.url().includes("/links")).then((answer) => answer.json());
  await ana.reload();
  await ana.getByRole("row", { name: /Ben, statistics.*never/ }).waitFor();
  const [entry] = (await answers).items;
  check("and says its end", Date.parse(entry.expires_at) - Date.parse(entry.created_at) === 30 * 24 * 3600 * 1000);
  check("and not again", !(await ana.content()).includes(link.split("#")[1]));
}

/** Whoever is not signed in signs up on the way, and comes back to what the link opens. */
async function open() {
  await ben.goto(link);
  await ben.getByRole("link", { name: "Create one" }).click();
  await ben.getByLabel("Email").fill(`ben-${Date.now()}@example.org`);
  await ben.getByLabel("Password").fill(PASSWORD);
  await ben.getByRole("button", { name: "Create an account" }).click();
  await ben.getByRole("heading", { name: /^Synthetic / }).waitFor();
  const rows = ben.getByRole("region", { name: "Synthetic records" }).getByRole("row");
  await rows.nth(12).waitFor();
  const words = await ben.locator("main").innerText();
  check("a preview and how it was made", /Epsilon/.test(words) && /mostly noise/.test(words));
  check("no comparison with the real records", (await ben.locator("#original").count()) === 0 && !/How close is it\?/.test(words));
  await looker(ben)("shared");
  await ben.getByLabel("Column", { exact: true }).selectOption({ index: 1 });
  await ben.getByLabel(/^(Value|Range or group)$/).selectOption({ index: 1 });
  await ben.getByRole("button", { name: "Add the condition" }).click();
  await ben.getByLabel("Records").first().fill("20");
  const [table] = await Promise.all([ben.waitForEvent("download"), ben.getByRole("button", { name: "Download" }).click()]);
  const drawn = readFileSync(await table.path(), "utf8").trim().split(/\r?\n/);
  check("a table is drawn, on a condition", drawn.length === 21, drawn[0]);
  const [card] = await Promise.all([ben.waitForEvent("download"), ben.getByRole("button", { name: "Data card" }).click()]);
  const text = readFileSync(await card.path(), "utf8");
  check("a data card with it", text.includes(job) && /Differential privacy: epsilon/.test(text));
}

async function nothingElse() {
  watch.expected.push(/404/);
  for (const path of [`/jobs/${job}`, `/jobs/${job}/result`]) {
    await ben.goto(server.address + path);
    await ben.getByRole("heading", { name: "There is nothing here" }).waitFor();
  }
  check("the job and its report stay its holder's", true);
  await ben.goto(server.address);
  await ben.getByRole("heading", { name: "No datasets yet" }).waitFor();
  check("and so does the dataset", true);
  watch.expected.pop();
}

async function secrets() {
  const secret = link.split("#")[1];
  // What is behind the # is not part of what is asked for.
  const addresses = sent.map((request) => request.url().split("#")[0]);
  check("no address has the secret", !addresses.some((address) => address.includes(secret)), `${addresses.length} calls`);
  const shown = sent.filter((request) => request.headers()["fhaim-link"] === secret);
  check("it is shown to the generation service alone", shown.length > 2 && shown.every((request) => new URL(request.url()).pathname.startsWith("/generation/v1/links/")));
}

async function revoke() {
  await ana.reload();
  const opened = ana.getByRole("row", { name: /Ben, statistics/ });
  await opened.waitFor();
  check("its holder sees that it was opened", !(await opened.innerText()).includes("never"));
  await opened.getByRole("button", { name: "Revoke" }).click();
  const dialog = ana.getByRole("dialog", { name: /^Revoke the link/ });
  await looker(ana)("link-revoke");
  await dialog.getByRole("button", { name: "Revoke" }).click();
  await opened.waitFor({ state: "detached" });
  watch.expected.push(/404/);
  await ben.goto(link);
  await ben.getByRole("heading", { name: "This link opens nothing" }).waitFor();
  await looker(ben)("shared-revoked");
  watch.expected.pop();
  check("what is revoked opens nothing", true);
}

await run(server, browser, ben, [
  begin, make, open, nothingElse, secrets, revoke,
  function noErrors() {
    check("no console errors", watch.problems.length === 0, watch.problems.join("; "));
  },
]);
