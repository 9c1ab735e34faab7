// Builds the package into dist/: the module of crates/sdk-wasm (built here unless web/wasm.sh has built it already),
// and the calls around it.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, rmSync } from "node:fs";

const at = (path) => new URL(path, import.meta.url).pathname;
const module = at("../../web/public/fhaim.wasm");
const run = (program, ...given) => execFileSync(program, given, { cwd: at("."), stdio: "inherit" });

rmSync(at("dist"), { recursive: true, force: true });
if (!existsSync(module)) run("sh", at("../../web/wasm.sh"));
run(at("node_modules/.bin/tsc"));
copyFileSync(module, at("dist/clients/typescript/src/fhaim.wasm"));
