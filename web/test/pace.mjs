// What an upload is told to take: the encryption that was timed, and what sending took beside it the last time.
//
// Usage: node test/pace.mjs. It needs neither services nor a browser.
import { build } from "vite";
import { check } from "./support.mjs";

const lib = { entry: new URL("../src/crypto/pace.ts", import.meta.url).pathname, formats: ["es"] };
const [{ output }] = await build({ configFile: false, logLevel: "error", build: { lib, write: false } });
const { beside, sendingSeconds } = await import(`data:text/javascript,${encodeURIComponent(output[0].code)}`);

// 100 objects of 0.02 s, sent in 5 s: 3 s beside the encryption, for 6 MB.
check("what sending takes", Math.abs(beside(0.02, { objects: 100, bytes: 6e6, seconds: 5 }) * 6e6 - 3) < 1e-9);
check("sending that took nothing beside", beside(0.02, { objects: 100, bytes: 6e6, seconds: 1 }) === 0);
check("too few objects", beside(0.02, { objects: 3, bytes: 6e6, seconds: 5 }) === undefined);

const kept = new Map();
globalThis.localStorage = { getItem: (key) => kept.get(key) ?? null };
check("nothing is known before the first upload", sendingSeconds() === undefined);
for (const [text, known] of [["1e-7", 1e-7], ["-1", undefined], ["null", undefined], ["[", undefined], ["1e999", undefined]]) {
  kept.set("fhaim.sending", text);
  check(`what was kept as ${text}`, sendingSeconds() === known);
}
console.log("pace: all well");
