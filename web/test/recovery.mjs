// A lost connection, and services that are killed, in the middle of an upload and of a job: the page
// goes on by itself; and a reload finds everything where it was.
//
// Usage: node test/recovery.mjs [SCREENSHOT_DIR].
import { connect, createServer } from "node:net";
import {
  SIZES, Server, check, confirmColumns, dataFile, openBrowser, TIMEOUT_MS, run, signUp, watchErrors,
} from "./support.mjs";

const file = dataFile("compas.csv") ?? new URL("small.csv", import.meta.url).pathname;
/** What the browser's connections go through: it can be cut, also in the middle of an answer. */
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
watch.expected.push(/ERR_INTERNET_DISCONNECTED|ERR_CONNECTION|ERR_NETWORK|ERR_INCOMPLETE_CHUNKED|Failed to fetch/);
page.on("dialog", (dialog) => void dialog.accept());

/** How many objects the page says were sent. */
async function sent() {
  const facts = await page.locator("dl.facts").last().innerText();
  return Number(/([\d,]+) of/.exec(facts)?.[1]?.replaceAll(",", "") ?? 0);
}

/** Waits until some objects were sent, and pauses. */
async function sendSome(more) {
  const before = await sent();
  while ((await sent()) < before + more) await page.waitForTimeout(20);
}

async function beginUpload() {
  await page.getByRole("link", { name: "Make the first dataset" }).click();
  await confirmColumns(page, file);
  await page.getByLabel("Epsilon").fill("10");
  await page.getByRole("button", { name: "Encrypt and upload" }).click();
  await page.getByText("Encrypting and sending").waitFor();
  await sendSome(5);
}

async function connectionLostInUpload() {
  await context.setOffline(true);
  await page.getByText("The server does not answer").waitFor();
  check("a lost connection is told", true, `${await sent()} objects were sent`);
  await context.setOffline(false);
  await page.getByText("The server does not answer").waitFor({ state: "detached" });
  await sendSome(5);
  check("the upload goes on by itself", true, `${await sent()} objects`);
}

async function servicesKilledInUpload() {
  await server.end("SIGKILL");
  await page.getByText("The server does not answer").waitFor();
  await server.start();
  await page.getByText("The server does not answer").waitFor({ state: "detached" });
  await sendSome(5);
  check("so it does after the services were killed and started again", true, `${await sent()} objects`);
}

async function reloadInUpload() {
  await page.getByRole("button", { name: "Pause" }).click();
  const before = await sent();
  await page.reload();
  await page.getByRole("heading", { name: "The upload is not finished" }).waitFor();
  await page.locator("#again").setInputFiles(file);
  await page.getByText(/Encrypting and sending|Done. The dataset/).waitFor();
  check("after a reload it goes on where it was", (await sent()) >= before, `${before} objects were sent before`);
  await page.getByText("Done. The dataset is ready.").waitFor();
}

/** Numbers of the events that the page shows, by their order. */
async function events() {
  return page.getByRole("log").locator("li").allInnerTexts();
}

async function startJob() {
  await page.getByRole("button", { name: "Run a job" }).click();
  await page.getByRole("log").getByText(/releases, \d+ numbers/).first().waitFor();
}

async function connectionLostInJob() {
  line.cut();
  await page.getByText("The connection is lost. The job goes on").waitFor();
  check("the job page tells of the lost connection", true, `${(await events()).length} events so far`);
  await line.mend();
  await page.getByText("The connection is lost.").waitFor({ state: "detached" });
}

async function servicesKilledInJob() {
  const before = (await events()).length;
  await server.end("SIGKILL");
  await page.getByText("The connection is lost. The job goes on").waitFor();
  check("it tells of services that were killed", true, `${before} events so far`);
  await server.start();
  await page.getByText("The connection is lost.").waitFor({ state: "detached" });
  await page.getByRole("link", { name: "The synthetic table" }).waitFor();
  const after = await events();
  check("the job is watched to its end without a reload", after.at(-1).includes("done"), `${after.length} events`);
  await page.reload();
  await page.getByRole("heading", { name: "Measured and fitted" }).waitFor();
  check("a reload shows the same events", (await events()).join() === after.join());
}

await run(server, browser, page, [
  () => signUp(page, line.address),
  beginUpload, connectionLostInUpload, servicesKilledInUpload, reloadInUpload,
  startJob, connectionLostInJob, servicesKilledInJob,
  function noErrors() {
    line.cut();
    check("no console errors", watch.problems.length === 0, watch.problems.join("; "));
  },
]);
