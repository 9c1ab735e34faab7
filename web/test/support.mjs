// Shared by the browser tests: services, browser, checks, and a measurement of frame times.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { chromium } from "playwright-core";

export const PASSWORD = "a long test password";
export const SIZES = { wide: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };
/** For steps that take seconds on an idle machine. */
export const TIMEOUT_MS = 180_000;
/** Ticks of the kernel's clock per second. */
export const TICKS = 100;
/** Folder for screenshots, if any. */
export const screenshots = process.argv[2];
if (screenshots) mkdirSync(screenshots, { recursive: true });

const here = new URL("..", import.meta.url).pathname;
export const program = process.env.FHAIM_BIN ?? join(here, "../target/debug/fhaim");

/** Returns the path of a table in FHAIM_DATA_DIR, or prints that it is skipped. */
export function dataFile(name) {
  const folder = process.env.FHAIM_DATA_DIR;
  const file = folder && join(folder, name);
  if (file && existsSync(file)) return file;
  console.log(`skipped: set FHAIM_DATA_DIR to a folder with ${name}`);
  return undefined;
}

/** `fhaim up` with its own data folder. It can be killed and started again. */
export class Server {
  folder = mkdtempSync(join(tmpdir(), "fhaim-web-"));
  log = "";

  /** @param more Further arguments of `fhaim up`. */
  constructor(...more) {
    this.more = more;
  }

  /** Starts the program, on its earlier port if it ran before. */
  async start() {
    const listen = this.address ? new URL(this.address).host : "127.0.0.1:0";
    this.process = spawn(program, ["up", "--data-dir", join(this.folder, "data"), "--listen", listen,
      "--web", join(here, "dist"), "--lease-seconds", "3", ...this.more]);
    this.process.stderr.on("data", (text) => (this.log += text));
    this.exited = new Promise((resolve) => this.process.on("exit", resolve));
    this.address = await new Promise((resolve, reject) => {
      let out = "";
      this.process.stdout.on("data", (text) => {
        out += text;
        const said = out.match(/^fhaim is up at (http:[^,]*),/m);
        if (said) resolve(said[1]);
      });
      this.process.on("error", reject);
      this.process.on("exit", () => reject(new Error(`fhaim up ended: ${this.log}`)));
    });
    return this;
  }

  async end(signal = "SIGTERM") {
    this.process.kill(signal);
    await this.exited;
  }

  async remove() {
    await this.end();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const args = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-quic"];

export function openBrowser() {
  return chromium.launch({ executablePath, args });
}

/**
 * A browser that a client can detach from and attach to again. While a client is attached, the browser reports
 * every byte that a page sends, and an upload takes about four times as long.
 */
export class DetachableBrowser {
  folder = mkdtempSync(join(tmpdir(), "fhaim-chromium-"));

  async start() {
    const own = ["--headless", "--remote-debugging-port=0", `--user-data-dir=${this.folder}`, "about:blank"];
    this.process = spawn(executablePath, [...args, ...own], { detached: true, stdio: ["ignore", "ignore", "pipe"] });
    this.exited = new Promise((resolve) => this.process.on("exit", resolve));
    this.address = await new Promise((resolve) => {
      let log = "";
      this.process.stderr.on("data", (text) => {
        log += text;
        const said = log.match(/^DevTools listening on (ws:\S+)/m);
        if (said) resolve(said[1]);
      });
    });
    return this;
  }

  /** Attaches to the browser while `work` runs, and passes it the browser's context. */
  async attached(work) {
    const client = await chromium.connectOverCDP(this.address);
    try {
      return await work(client.contexts()[0]);
    } finally {
      await client.close();
    }
  }

  /** Returns the processor seconds of all its processes so far. */
  seconds() {
    const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    return processes.reduce((sum, id) => sum + this.secondsOf(id), 0);
  }

  secondsOf(id) {
    try {
      const [, , group, ...rest] = readFileSync(`/proc/${id}/stat`, "utf8").split(") ").at(-1).split(" ");
      return Number(group) === this.process.pid ? (Number(rest[8]) + Number(rest[9])) / TICKS : 0;
    } catch {
      return 0;
    }
  }

  async close() {
    process.kill(-this.process.pid);
    await this.exited;
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

let passed = 0;
export function check(name, condition, detail = "") {
  assert.ok(condition, `${name} ${detail}`);
  passed += 1;
  console.log(`ok - ${name} ${detail}`);
}

/** Runs the steps in order and stops at the first failure, with a screenshot. */
export async function run(server, browser, page, steps) {
  try {
    for (const step of steps) {
      const started = Date.now();
      await step();
      console.log(`# ${step.name}: ${((Date.now() - started) / 1000).toFixed(1)} s`);
    }
    console.log(`${passed} passed, 0 failed`);
  } catch (error) {
    if (screenshots) {
      await page.screenshot({ path: join(screenshots, "failed.png"), fullPage: true }).catch(() => {});
    }
    console.error(error.stack, server.log.split("\n").slice(-20).join("\n"));
    console.log(`${passed} passed, 1 failed`);
    process.exitCode = 1;
  } finally {
    await browser.close();
    await server.remove();
  }
}

/** Collects errors of the page's console and scripts, except expected ones. */
export function watchErrors(page) {
  const watch = { problems: [], expected: [] };
  page.on("console", (message) => {
    if (message.type() !== "error") return;
    if (watch.expected.some((pattern) => pattern.test(message.text()))) return;
    watch.problems.push(`console: ${message.text()} ${message.location().url}`);
  });
  page.on("pageerror", (error) => watch.problems.push(`page: ${error.message}`));
  return watch;
}

const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/**
 * Returns a function that checks the current page: no serious finding of axe in either colour scheme, and nothing wider
 * than the window. It takes a screenshot for each size and scheme.
 */
export function looker(page) {
  return async (name) => {
    if (process.env.FHAIM_QUICK) return;
    for (const scheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      for (const [size, viewport] of Object.entries(SIZES)) {
        await page.setViewportSize(viewport);
        await page.waitForTimeout(150);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        check(`${name} fits (${size})`, wide <= 0, `${wide} px over`);
        if (screenshots) {
          await page.screenshot({ path: join(screenshots, `${name}-${size}-${scheme}.png`), fullPage: true });
        }
      }
      // The page's policy blocks scripts from outside, but a test may evaluate one.
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
      const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
      const found = serious.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target.join(" ")}`));
      check(`${name} accessible (${scheme})`, found.length === 0, found.slice(0, 5).join("; "));
    }
    await page.setViewportSize(SIZES.wide);
    await page.emulateMedia({ colorScheme: "light" });
  };
}

/** Writes the export of a hospital in Windows-1252, as printed by `tests/kit/examples/hospital.rs`. */
export function hospital(folder) {
  const example = process.env.FHAIM_HOSPITAL ?? join(dirname(program), "examples/hospital");
  const path = join(folder, "export.csv");
  writeFileSync(path, execFileSync(example, { maxBuffer: 64 << 20 }));
  return path;
}

/** Creates an account and signs in to it. */
export async function signUp(page, base, name = "ana") {
  await page.goto(`${base}/sign-up`);
  const email = await createAccount(page, name);
  await page.getByRole("heading", { name: "No datasets yet" }).waitFor();
  return email;
}

/** Fills in and sends the form of a new account. Returns its email address. */
export async function createAccount(page, name) {
  // The form to sign in has the same fields, and is shown until the browser has drawn the new page.
  await page.getByRole("heading", { name: "Create an account" }).waitFor();
  const email = `${name}-${Date.now()}@example.org`;
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Create an account" }).click();
  return email;
}

/** Goes from a file to the budget step. Confirms all columns, as drafted or as in a schema file. */
export async function confirmColumns(page, file, schema) {
  await page.locator("#table-file").setInputFiles(file);
  await page.getByRole("heading", { name: "Which values may each column take?" }).waitFor();
  if (schema) {
    await page.getByText("Use a schema file in place of the draft").click();
    await page.locator("#schema-file").setInputFiles(schema);
    await page.getByText("The columns are those of").waitFor();
  }
  await confirmAll(page);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { name: "Effect on your counts" }).waitFor();
}

/** Confirms all drafted columns: those without a list together, and each list in its row. */
export async function confirmAll(page) {
  const ranges = page.getByRole("button", { name: "Confirm remaining columns" });
  if (await ranges.isVisible()) await ranges.click();
  const more = page.getByRole("button", { name: "Show the next list" });
  while (await more.isVisible()) {
    await more.click();
    const confirmed = await page.evaluate(confirmShownLists);
    assert.ok(confirmed > 0, "a list cannot be confirmed");
  }
}

/** Runs in the page: confirms the lists that are shown, one by one, and returns their number. */
async function confirmShownLists() {
  const open = () => document.querySelector(".editor input.public:not(:checked, :disabled)");
  let confirmed = 0;
  for (let box = open(); box; box = open()) {
    box.click();
    confirmed += 1;
    await new Promise((resolve) => setTimeout(resolve));
  }
  return confirmed;
}

/** Sets epsilon in the advanced settings. */
export async function setEpsilon(page, epsilon) {
  await page.getByText("Advanced: epsilon").click();
  await page.getByLabel("Epsilon").fill(String(10 * Math.log10(epsilon)));
}

/** Starts measuring the longest time between two frames of the page. */
export function measureFrames(page) {
  return page.evaluate(() => {
    const meter = { longest: 0, last: performance.now() };
    globalThis.frames_meter = meter;
    const tick = () => {
      if (globalThis.frames_meter !== meter) return;
      const now = performance.now();
      meter.longest = Math.max(meter.longest, now - meter.last);
      meter.last = now;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
}

/** Returns the longest time between two frames since `measureFrames`, in milliseconds. */
export async function longestFrame(page) {
  return Math.round(await page.evaluate(() => globalThis.frames_meter.longest));
}
