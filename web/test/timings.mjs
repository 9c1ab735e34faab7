// Seconds to encrypt and upload a table in the browser, beside the native program's, on this machine
// and against the same services; and how long the page stood still meanwhile. Run by hand:
//
//   FHAIM_BIN=... FHAIM_DATA_DIR=... node test/timings.mjs
//
// Best with an optimised build of the program, on a quiet machine.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  PASSWORD, SIZES, Server, confirmColumns, dataFile, longestFrame, measureFrames, openBrowser, program,
  run, signUp,
} from "./support.mjs";

const TABLES = [
  { name: "compas", data: dataFile("compas.csv"), schema: dataFile("compas.schema.json"), missing: "" },
  { name: "adult-32", data: dataFile("adult.csv"), schema: dataFile("adult-32.schema.json"), missing: "?" },
];
const EPSILON = 1;

const server = await new Server().start();
const browser = await openBrowser();
const page = await browser.newPage({ viewport: SIZES.wide });
page.setDefaultTimeout(600_000);
const rows = [];

function fhaim(...given) {
  const env = { ...process.env, FHAIM_CONFIG_DIR: join(server.folder, "login"), FHAIM_PASSWORD: PASSWORD };
  return execFileSync(program, given, { env, stdio: ["ignore", "pipe", "ignore"] }).toString().trim();
}

/** Seconds of `fhaim dataset upload`: the table read, encrypted on all cores and sent. */
function native({ data, schema, missing }) {
  const read = missing ? ["--missing", missing] : [];
  const dataset = fhaim("dataset", "create", "--schema", schema, "--data", data, "--epsilon", String(EPSILON),
    "--ignore-columns", ...read);
  const started = performance.now();
  fhaim("dataset", "upload", dataset, "--data", data, "--ignore-columns", ...read);
  return (performance.now() - started) / 1000;
}

/** The same in the page, from the click to the end. */
async function inBrowser({ data, schema, missing }) {
  await page.goto(`${server.address}/datasets/new`);
  if (missing) {
    await page.locator("summary", { hasText: "How the file is written" }).click();
    await page.getByLabel("Texts that stand for a missing value").fill(missing);
  }
  await confirmColumns(page, data, schema);
  await page.getByText("Ciphertexts").waitFor();
  await measureFrames(page);
  const started = performance.now();
  await page.getByRole("button", { name: "Encrypt and upload" }).click();
  await page.getByText("Done. The dataset is ready.").waitFor();
  const seconds = (performance.now() - started) / 1000;
  const facts = await page.locator("section", { hasText: "Encrypted and uploaded" }).locator("dl.facts").innerText();
  const [, objects, sent] = /([\d,]+) of [^]*?Sent\s+([\d.]+ \wB)/.exec(facts);
  return { seconds, objects: Number(objects.replaceAll(",", "")), sent, frame: await longestFrame(page) };
}

async function compare(table) {
  const page = await inBrowser(table);
  rows.push({
    table: table.name,
    records: readFileSync(table.data, "utf8").trim().split("\n").length - 1,
    objects: page.objects,
    sent: page.sent,
    "browser s": page.seconds.toFixed(1),
    "ms an object": ((1000 * page.seconds) / page.objects).toFixed(1),
    "longest frame ms": page.frame,
    "native s": native(table).toFixed(1),
  });
}

await run(server, browser, page, [
  () => signUp(page, server.address),
  function login() {
    fhaim("login", "--server", server.address, "--email", "timings@example.org", "--sign-up");
  },
  ...TABLES.filter(({ data, schema }) => data && schema).map((table) => () => compare(table)),
  () => console.table(rows),
]);
