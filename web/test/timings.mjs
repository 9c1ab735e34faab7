// Seconds to encrypt and upload a table in the browser, beside the native program's, on this machine
// and against the same services; and how long the page stood still meanwhile. Run by hand:
//
//   FHAIM_BIN=... FHAIM_DATA_DIR=... node test/timings.mjs
//
// Best with an optimised build of the program, on a quiet machine; on a busy one the processor's
// seconds still compare.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  PASSWORD, SIZES, Server, confirmColumns, dataFile, longestFrame, measureFrames, openBrowser, program,
  run, signUp,
} from "./support.mjs";

const TABLES = [
  { name: "compas", data: dataFile("compas.csv"), schema: dataFile("compas.schema.json") },
  { name: "adult-32", data: dataFile("adult.csv"), schema: dataFile("adult-32.schema.json") },
];

const server = await new Server().start();
const browser = await openBrowser();
const page = await browser.newPage({ viewport: SIZES.wide });
page.setDefaultTimeout(3_600_000);
const devtools = await browser.newBrowserCDPSession();
/** Of the kernel's clock, to a second. */
const TICKS = 100;

function fhaim(...given) {
  const env = { ...process.env, FHAIM_CONFIG_DIR: join(server.folder, "login"), FHAIM_PASSWORD: PASSWORD };
  return execFileSync(program, given, { env, stdio: ["ignore", "pipe", "ignore"] }).toString().trim();
}

/** Processor seconds of the programs that this one ran and that have ended. */
function childSeconds() {
  const [, , ...children] = readFileSync("/proc/self/stat", "utf8").split(") ")[1].split(" ").slice(11, 15).map(Number);
  return (children[0] + children[1]) / TICKS;
}

/** `fhaim dataset upload`: the table read, encrypted on all cores and sent. */
function native({ data, schema }) {
  const dataset = fhaim("dataset", "create", "--schema", schema, "--data", data, "--epsilon", "1");
  const [started, before] = [performance.now(), childSeconds()];
  fhaim("dataset", "upload", dataset, "--data", data);
  return { seconds: (performance.now() - started) / 1000, processor: childSeconds() - before };
}

/** Processor seconds of the page's process so far, its workers' included. */
async function pageSeconds() {
  const { processInfo } = await devtools.send("SystemInfo.getProcessInfo");
  return processInfo.filter(({ type }) => type === "renderer").reduce((sum, { cpuTime }) => sum + cpuTime, 0);
}

/** The same in the page, from the click to the end. */
async function inBrowser({ data, schema }) {
  await page.goto(`${server.address}/datasets/new`);
  await confirmColumns(page, data, schema);
  await page.getByText("Ciphertexts").waitFor();
  await measureFrames(page);
  const [started, before] = [performance.now(), await pageSeconds()];
  await page.getByRole("button", { name: "Encrypt and upload" }).click();
  await page.getByText("Done. The dataset is ready.").waitFor();
  const seconds = (performance.now() - started) / 1000;
  const facts = await page.locator("section", { hasText: "Encrypted and uploaded" }).locator("dl.facts").innerText();
  const [, objects, sent] = /([\d,]+) of [^]*?Sent\s+([\d.]+ \wB)/.exec(facts);
  const processor = (await pageSeconds()) - before;
  return { seconds, processor, objects: Number(objects.replaceAll(",", "")), sent, frame: await longestFrame(page) };
}

async function compare(table) {
  const [web, cli] = [await inBrowser(table), native(table)];
  console.table({
    table: table.name,
    records: readFileSync(table.data, "utf8").trim().split("\n").length - 1,
    objects: web.objects,
    sent: web.sent,
    "browser s": web.seconds.toFixed(1),
    "processor s": web.processor.toFixed(1),
    "processor ms an object": ((1000 * web.processor) / web.objects).toFixed(1),
    "longest frame ms": web.frame,
    "native s": cli.seconds.toFixed(1),
    "native processor s": cli.processor.toFixed(1),
  });
}

await run(server, browser, page, [
  () => signUp(page, server.address),
  function login() {
    fhaim("login", "--server", server.address, "--email", "timings@example.org", "--sign-up");
  },
  ...TABLES.filter(({ data, schema }) => data && schema).map((table) => () => compare(table)),
]);
