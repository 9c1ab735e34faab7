// Seconds to encrypt and upload a table in the browser and with the native program, on this machine
// and against the same services; and the longest frame of the page meanwhile. Run by hand:
//
//   FHAIM_BIN=... FHAIM_DATA_DIR=... node test/timings.mjs
//
// Best with an optimised build of the program on a quiet machine; on a busy one, processor seconds
// still compare. Nothing is attached to the browser while it encrypts.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  DetachableBrowser, PASSWORD, SIZES, Server, TICKS, TIMEOUT_MS, confirmColumns, dataFile, longestFrame, measureFrames, program,
  run, signUp,
} from "./support.mjs";

const TABLES = [
  { name: "compas", data: dataFile("compas.csv"), schema: dataFile("compas.schema.json") },
  { name: "adult-32", data: dataFile("adult.csv"), schema: dataFile("adult-32.schema.json") },
];

const server = await new Server().start();
const browser = await new DetachableBrowser().start();

function fhaim(...given) {
  const env = { ...process.env, FHAIM_CONFIG_DIR: join(server.folder, "login"), FHAIM_PASSWORD: PASSWORD };
  return execFileSync(program, given, { env, stdio: ["ignore", "pipe", "ignore"] }).toString().trim();
}

/** Returns the processor seconds of finished child processes. */
function childSeconds() {
  const [, , ...children] = readFileSync("/proc/self/stat", "utf8").split(") ")[1].split(" ").slice(11, 15).map(Number);
  return (children[0] + children[1]) / TICKS;
}

/** Runs `fhaim dataset upload`: reads the table, encrypts it on all cores and sends it. */
function native({ data, schema }) {
  const dataset = fhaim("dataset", "create", "--schema", schema, "--data", data, "--epsilon", "1");
  const [started, before] = [performance.now(), childSeconds()];
  fhaim("dataset", "upload", dataset, "--data", data);
  return { seconds: (performance.now() - started) / 1000, processor: childSeconds() - before };
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The page's estimate before it encrypted. */
let estimated = "";

/** Returns the page's estimate, as soon as it has measured its speed. */
async function takesAbout(page) {
  const answer = page.locator("dl.facts dt", { hasText: /^Encryption .*about$/ }).locator("xpath=following-sibling::dd[1]");
  for (;;) {
    const text = await answer.innerText();
    if (text !== "…") return text;
    await sleep(100);
  }
}

/** Opens the page at the budget step and starts the encryption. The page records when it begins and ends. */
async function open(context, { data, schema }) {
  const page = await context.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  await page.setViewportSize(SIZES.wide);
  await signUp(page, server.address);
  await page.goto(`${server.address}/datasets/new`);
  await confirmColumns(page, data, schema);
  await page.getByText("Ciphertexts").waitFor();
  estimated = await takesAbout(page);
  await measureFrames(page);
  await page.evaluate(() => {
    document.addEventListener("click", () => (globalThis.began ??= performance.now()), { once: true });
    new MutationObserver(() => {
      if (!document.body.innerText.includes("Done. The dataset is ready.")) return;
      globalThis.ended ??= performance.now();
      document.title = "Uploaded";
    }).observe(document.body, { childList: true, characterData: true, subtree: true });
  });
  await page.getByRole("button", { name: "Encrypt and upload" }).click();
}

/** Waits until the page changes its title, which the list of tabs shows. */
async function uploaded() {
  const list = new URL("/json", browser.address.replace("ws:", "http:"));
  for (;;) {
    const tabs = await (await fetch(list)).json();
    if (tabs.some(({ title }) => title.startsWith("Uploaded"))) return;
    await sleep(200);
  }
}

/** Returns the recorded times and the figures of the page. */
async function noted(context) {
  const page = context.pages().find((page) => page.url().includes("/datasets/"));
  const seconds = await page.evaluate(() => (globalThis.ended - globalThis.began) / 1000);
  const facts = await page.locator("section", { hasText: "Encrypted and uploaded" }).locator("dl.facts").innerText();
  const [, objects, sent] = /([\d,]+) of [^]*?Sent\s+([\d.]+ \wB)/.exec(facts);
  const frame = await longestFrame(page);
  await page.close();
  return { seconds, objects: Number(objects.replaceAll(",", "")), sent, frame };
}

/** Measures the same upload in the page, from the click to the end. */
async function inBrowser(table) {
  await browser.attached((context) => open(context, table));
  const before = browser.seconds();
  await uploaded();
  const processor = browser.seconds() - before;
  return { processor, ...(await browser.attached(noted)) };
}

async function compare(table) {
  const [web, cli] = [await inBrowser(table), native(table)];
  console.table({
    table: table.name,
    records: readFileSync(table.data, "utf8").trim().split("\n").length - 1,
    objects: web.objects,
    sent: web.sent,
    "estimated before": estimated,
    "browser s": web.seconds.toFixed(1),
    "browser's processor s": web.processor.toFixed(1),
    "processor ms an object": ((1000 * web.processor) / web.objects).toFixed(1),
    "longest frame ms": web.frame,
    "native s": cli.seconds.toFixed(1),
    "native processor s": cli.processor.toFixed(1),
  });
}

await run(server, browser, undefined, [
  function login() {
    fhaim("account", "login", "--server", server.address, "--email", "timings@example.org", "--sign-up");
  },
  ...TABLES.filter(({ data, schema }) => data && schema).map((table) => () => compare(table)),
]);
