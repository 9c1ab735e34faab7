// The first load of the page for a new visitor: transferred bytes, and the figures that Lighthouse
// reports, from the browser's own performance timeline.
import { SIZES } from "./support.mjs";

/** Lighthouse's simulated phone: slow 4G, a processor four times slower. */
const SLOW = { latency: 150, downloadThroughput: (1.6e6 / 8), uploadThroughput: (750e3 / 8) };

function observe() {
  const figures = { fcp: 0, lcp: 0, blocking: 0, shift: 0 };
  globalThis.load_figures = figures;
  const watch = (type, take) =>
    new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type, buffered: true });
  watch("paint", (entry) => {
    if (entry.name === "first-contentful-paint") figures.fcp = entry.startTime;
  });
  watch("largest-contentful-paint", (entry) => (figures.lcp = entry.startTime));
  watch("longtask", (entry) => (figures.blocking += Math.max(0, entry.duration - 50)));
  watch("layout-shift", (entry) => {
    if (!entry.hadRecentInput) figures.shift += entry.value;
  });
}

/** Loads an address in a new browser context. */
async function load(browser, address, slow) {
  const context = await browser.newContext({ viewport: slow ? SIZES.phone : SIZES.wide });
  const page = await context.newPage();
  await page.addInitScript(observe);
  const session = await context.newCDPSession(page);
  await session.send("Network.enable");
  if (slow) {
    await session.send("Network.emulateNetworkConditions", { offline: false, ...SLOW });
    await session.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  }
  let [bytes, requests] = [0, 0];
  session.on("Network.loadingFinished", ({ encodedDataLength }) => {
    bytes += encodedDataLength;
    requests += 1;
  });
  const started = performance.now();
  await page.goto(address, { waitUntil: "commit" });
  await page.getByRole("button", { name: "Sign in" }).click({ trial: true });
  const usable = performance.now() - started;
  // Late tasks and layout shifts count too.
  await page.waitForTimeout(1000);
  const figures = await page.evaluate(() => globalThis.load_figures);
  await context.close();
  return { bytes, requests, usable, ...figures };
}

/** Prints the figures of a first load, and returns them. */
export async function firstLoad(browser, base) {
  const fast = await load(browser, `${base}/sign-in`, false);
  const slow = await load(browser, `${base}/sign-in`, true);
  for (const [name, f] of [["loopback", fast], ["slow 4G, processor / 4", slow]]) {
    console.log(
      `first load (${name}): ${(f.bytes / 1024).toFixed(0)} KB in ${f.requests} requests, usable after ` +
        `${f.usable.toFixed(0)} ms; first contentful paint ${f.fcp.toFixed(0)} ms, largest ` +
        `${f.lcp.toFixed(0)} ms, total blocking time ${f.blocking.toFixed(0)} ms, layout shift ${f.shift.toFixed(3)}`,
    );
  }
  return { fast, slow };
}
