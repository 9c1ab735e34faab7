// Lost connections and killed services in the middle of an upload and of a job: the page continues
// by itself, and a reload loses nothing.
//
// Usage: node test/recovery.mjs [SCREENSHOT_DIR].
import { connect, createServer } from "node:net";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  PASSWORD, SIZES, Server, check, confirmColumns, openBrowser, TIMEOUT_MS, run, setEpsilon, signUp, watchErrors,
} from "./support.mjs";

/** Writes a table of two chunks of records, whose upload is long enough to interrupt. */
function table() {
  const columns = Array.from({ length: 8 }, (_, i) => `column_${i}`);
  const record = (i) => columns.map((_, j) => `v${(i * (2 * j + 1) + (i >> (j + 4))) % 16}`).join(",");
  const lines = [columns.join(","), ...Array.from({ length: 10_000 }, (_, i) => record(i))];
  const path = join(mkdtempSync(join(tmpdir(), "fhaim-recovery-")), "table.csv");
  writeFileSync(path, `${lines.join("\n")}\n`);
  return path;
}

const file = table();
/** A proxy for the browser's connections that can cut them, also in the middle of an answer. */
class Line {
  sockets = new Set();

  constructor(port) {
    this.far = port;
    this.proxy = createServer((near) => {
      const far = connect(this.far, "127.0.0.1");
      for (const [one, other] of [[near, far], [far, near]]) {
        this.sockets.add(one);
        one.on("error", () => other.destroy());
        one.on("close", () => this.sockets.delete(one));
        one.pipe(other);
      }
    });
  }

  async mend() {
    await new Promise((resolve) => this.proxy.listen(this.near ?? 0, "127.0.0.1", resolve));
    this.proxy.unref();
    this.near = this.proxy.address().port;
    this.address = `http://127.0.0.1:${this.near}`;
    return this;
  }

  cut() {
    this.proxy.close();
    this.sockets.forEach((socket) => socket.destroy());
  }
}

const server = await new Server().start();
const line = await new Line(new URL(server.address).port).mend();
const browser = await openBrowser();
const context = await browser.newContext({ viewport: SIZES.wide });
const page = await context.newPage();
page.setDefaultTimeout(TIMEOUT_MS);
const watch = watchErrors(page);
watch.expected.push(/net::ERR_|Failed to fetch/);
page.on("dialog", (dialog) => void dialog.accept());

/** Returns the numbers of sent objects and of all objects that the page shows. */
async function progress() {
  const facts = await page.locator("section", { hasText: "Encrypted and sent" }).locator("dl.facts").innerText();
  const [, done, all] = /([\d,]+) of ([\d,]+)/.exec(facts).map((text) => Number(text.replaceAll(",", "")));
  return { done, all };
}

async function sent() {
  return (await progress()).done;
}

/** Waits until this number of further objects is sent. */
async function sendSome(more) {
  const before = await progress();
  if (before.done + more > before.all) throw new Error("the upload ends too soon to be interrupted");
  while ((await sent()) < before.done + more) await page.waitForTimeout(20);
}

async function beginUpload() {
  await page.getByRole("link", { name: "Create the first dataset" }).click();
  await confirmColumns(page, file);
  await setEpsilon(page, 10);
  await page.getByRole("button", { name: "Encrypt and upload" }).click();
  await page.getByText("Encrypting and sending").waitFor();
  await sendSome(5);
}

async function connectionLostInUpload() {
  await context.setOffline(true);
  await page.getByText("The server does not answer").waitFor();
  const { done, all } = await progress();
  check("a lost connection is shown", true, `${done} of ${all} objects were sent`);
  await context.setOffline(false);
  await page.getByText("The server does not answer").waitFor({ state: "detached" });
  await sendSome(5);
  check("the upload resumes by itself", true, `${await sent()} objects`);
}

async function servicesKilledInUpload() {
  await server.end("SIGKILL");
  await page.getByText("The server does not answer").waitFor();
  await server.start();
  await page.getByText("The server does not answer").waitFor({ state: "detached" });
  await sendSome(5);
  check("the upload resumes after the services were killed and restarted", true, `${await sent()} objects`);
}

async function reloadInUpload() {
  await page.getByRole("button", { name: "Pause" }).click();
  const before = await sent();
  await page.reload();
  await page.getByRole("heading", { name: "The upload is not finished" }).waitFor();
  await page.locator("#again").setInputFiles(file);
  await page.getByText(/Encrypting and sending|Done. The dataset/).waitFor();
  check("after a reload the upload keeps the sent objects", (await sent()) >= before, `${before} objects were sent before`);
  await page.getByText("Done. The dataset is ready.").waitFor();
}

/** Returns the texts of the events that the page shows, in order. */
async function events() {
  return page.getByRole("log").locator("li").allInnerTexts();
}

const generation = join(server.folder, "data", "generation");
const older = join(server.folder, "generation-before-the-job");

async function copyGeneration() {
  await server.end();
  cpSync(generation, older, { recursive: true });
  await server.start();
}

async function startJob() {
  await page.getByRole("button", { name: "Run a job" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run it" }).click();
  await page.getByRole("log").getByText(/releases, \d+ numbers/).first().waitFor();
}

// The services are killed as soon as the job has released something. After that nobody continues it for the seconds of
// its lease, so it is still running when the connection is cut.
async function servicesKilledInJob() {
  await server.end("SIGKILL");
  await page.getByText("The connection is lost. The job keeps running").waitFor();
  check("the job page shows that the services do not answer", true, `${(await events()).length} events so far`);
  await server.start();
  await page.getByText("The connection is lost.").waitFor({ state: "detached" });
}

async function connectionLostInJob() {
  line.cut();
  await page.getByText("The connection is lost. The job keeps running").waitFor();
  check("the job page shows a lost connection", true, `${(await events()).length} events so far`);
  await line.mend();
  await page.getByText("The connection is lost.").waitFor({ state: "detached" });
}

async function endOfJob() {
  await page.getByRole("link", { name: "The synthetic table" }).waitFor();
  const after = await events();
  check("the job page follows the job to its end without a reload", after.at(-1).includes("done"), `${after.length} events`);
  await page.reload();
  await page.getByRole("heading", { name: "Measured and fitted" }).waitFor();
  check("a reload shows the same events", (await events()).join() === after.join());
}

async function generationSetBack() {
  const job = page.url();
  await page.getByRole("link", { name: "The dataset" }).click();
  await page.waitForURL(/\/datasets\//);
  const dataset = page.url();
  await server.end();
  rmSync(generation, { recursive: true });
  cpSync(older, generation, { recursive: true });
  await server.start();
  await page.goto(`${line.address}/sign-in`);
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Datasets" }).waitFor();
  await page.goto(dataset);
  await page.getByRole("button", { name: "Run a job" }).click();
  // The first answer is lost: the next attempt starts the same job.
  await page.route(/\/datasets\/[^/]+\/jobs\/[^/]+$/, async (route) => {
    await route.fetch();
    await route.abort();
  }, { times: 1 });
  const confirm = page.getByRole("dialog").getByRole("button", { name: "Run it" });
  await confirm.click();
  await page.getByRole("dialog").getByRole("alert").waitFor();
  await confirm.click();
  await page.getByText("An earlier job, which the generation service had forgotten.").waitFor();
  check("a job that the generation service forgot runs again instead of another one", page.url() === job, page.url());
  await page.getByRole("link", { name: "The synthetic table" }).waitFor();
}

let email;
await run(server, browser, page, [
  async () => { email = await signUp(page, line.address); },
  beginUpload, connectionLostInUpload, servicesKilledInUpload, reloadInUpload,
  copyGeneration, startJob, servicesKilledInJob, connectionLostInJob, endOfJob, generationSetBack,
  function noErrors() {
    line.cut();
    check("no console errors", watch.problems.length === 0, watch.problems.join("; "));
  },
]);
