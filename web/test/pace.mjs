// The estimate of an upload's duration: measured encryption, plus the additional time for sending in the last upload.
//
// Usage: node test/pace.mjs. It needs neither services nor a browser.
import { build } from "vite";
import { check } from "./support.mjs";

const lib = { entry: new URL("../src/crypto/pace.ts", import.meta.url).pathname, formats: ["es"] };
const [{ output }] = await build({ configFile: false, logLevel: "error", build: { lib, write: false } });
const { beside, sendingSeconds } = await import(`data:text/javascript,${encodeURIComponent(output[0].code)}`);

// 100 objects of 0.02 s, sent in 5 s: sending 6 MB takes 3 s in addition to the encryption.
check("additional time for sending is measured", Math.abs(beside(0.02, { objects: 100, bytes: 6e6, seconds: 5 }) * 6e6 - 3) < 1e-9);
check("sending during encryption takes no additional time", beside(0.02, { objects: 100, bytes: 6e6, seconds: 1 }) === 0);
check("too few objects are not measured", beside(0.02, { objects: 3, bytes: 6e6, seconds: 5 }) === undefined);

const kept = new Map();
globalThis.localStorage = { getItem: (key) => kept.get(key) ?? null };
check("sending is unknown before the first upload", sendingSeconds() === undefined);
for (const [text, known] of [["1e-7", 1e-7], ["-1", undefined], ["null", undefined], ["[", undefined], ["1e999", undefined]]) {
  kept.set("fhaim.sending", text);
  check(`stored value ${text} is read or ignored`, sendingSeconds() === known);
}
console.log("pace: all passed");
