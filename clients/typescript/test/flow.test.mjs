// A Node program against `fhaim up`: a draft, encryption in this process, a job, a synthetic table.
// FHAIM_BIN is the path of the program.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Client, Holder, Refusal } from "fhaim";

const PASSWORD = "a long test password";
const email = "ana@example.org";
const table = readFileSync(new URL("../../../web/test/small.csv", import.meta.url));
const records = table.toString().trim().split("\n").length - 1;
const folder = mkdtempSync(join(tmpdir(), "fhaim-typescript-"));
let server;
let address;

before(async () => {
  const program = process.env.FHAIM_BIN;
  assert.ok(program, "set FHAIM_BIN to the path of fhaim");
  server = spawn(program, ["up", "--data-dir", folder, "--listen", "127.0.0.1:0", "--witness"], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  for await (const text of server.stdout) {
    said += text;
    address = /^fhaim is up at (http:[^,]*),/m.exec(said)?.[1];
    if (address) break;
  }
  assert.ok(address, "fhaim up ended");
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ email, password: PASSWORD });
  const made = await fetch(`${address}/generation/v1/accounts`, { method: "POST", headers, body });
  assert.equal(made.status, 201);
});

after(async () => {
  server.kill();
  await new Promise((resolve) => server.on("exit", resolve));
  rmSync(folder, { recursive: true, force: true });
});

/** Another account opens the result by a link. */
async function handedOver(job, csv) {
  const link = await job.link("Ben");
  const headers = { "content-type": "application/json" };
  const credentials = { email: "ben@example.org", password: PASSWORD };
  await fetch(`${address}/generation/v1/accounts`, { method: "POST", headers, body: JSON.stringify(credentials) });
  const ben = await Client.signIn(address, credentials);
  const linked = ben.open(link);
  const card = await linked.card();
  assert.deepEqual([card.job, card.epsilon, card.runs], [job.id, 10, 2]);
  const drawn = new TextDecoder().decode(await linked.synthetic({ rows: 200, seed: 7, where: { sold: "no" } }));
  assert.equal(drawn, csv, "the link draws the same table");
  await assert.rejects(ben.job(job.id).state(), Refusal);
  assert.throws(() => ben.open(link.replace(address, "https://evil.example")), /sign in there/);
  assert.throws(() => ben.open("https://x/shared/y"), /not a link/);
  const [entry] = await job.links();
  assert.ok(entry.last_opened_at);
  await job.revoke(entry.id);
  await assert.rejects(linked.card(), Refusal);
}

test("encrypts, runs and downloads", async () => {
  const { schema, notes } = (await Holder.start()).draft(table, "small");
  assert.deepEqual(schema.columns.map(({ name }) => name), table.toString().split("\n")[0].split(","));
  assert.ok(notes.length > 0);
  const client = await Client.signIn(address, { email, password: PASSWORD });
  const told = [];
  const options = { schema, epsilon: 10, runs: 2, name: "from Node", onProgress: (progress) => told.push(progress) };
  const dataset = await client.upload(table, options);
  assert.equal(dataset.state, "ready");
  assert.ok(dataset.terms.need, "complete terms have their mechanism's need");
  assert.equal(told.length, told.at(-1).objects);
  assert.equal(told.at(-1).done, told.length);
  const job = await client.run(dataset);
  const { releases } = await job.done();
  assert.ok(releases > 0);
  const csv = new TextDecoder().decode(await job.synthetic({ rows: 200, seed: 7, where: { sold: "no" } }));
  const [header, ...rows] = csv.trim().split(/\r?\n/);
  assert.equal(header, schema.columns.map(({ name }) => name).join(","));
  assert.equal(rows.length, 200);
  assert.ok(rows.every((row) => row.endsWith(",no")));
  const again = new TextDecoder().decode(await client.job(job.id).synthetic({ rows: 200, seed: 7, where: { sold: "no" } }));
  assert.equal(again, csv, "the same seed draws the same records");
  const model = await job.model();
  assert.ok(model.length > 0 && Buffer.compare(model, await client.job(job.id).model()) === 0);
  await handedOver(job, csv);
  // The second run: the client checks the crypto service against what it saw of the ledger.
  const second = await client.run(dataset);
  await second.done();
  await assert.rejects(client.run(dataset), Refusal);
  await client.delete(dataset);
  assert.deepEqual(await client.datasets(), []);
});

test("answer with other terms is rejected before encryption", async () => {
  const { schema } = (await Holder.start()).draft(table, "small");
  const honest = globalThis.fetch;
  const asked = [];
  globalThis.fetch = async (request, options) => {
    const answer = await honest(request, options);
    asked.push(`${request.method} ${new URL(request.url).pathname}`);
    if (request.method !== "PUT" || !/^\/generation\/v1\/datasets\/[^/]+$/.test(new URL(request.url).pathname)) return answer;
    const dataset = await answer.json();
    dataset.terms.epsilon = 50;
    return new Response(JSON.stringify(dataset), { status: answer.status, headers: { "content-type": "application/json" } });
  };
  // A client keeps the `fetch` that existed when it was created.
  const client = await Client.signIn(address, { email, password: PASSWORD });
  try {
    await assert.rejects(client.upload(table, { schema, epsilon: 1 }), /other terms.*epsilon/);
  } finally {
    globalThis.fetch = honest;
  }
  assert.ok(asked.every((call) => call.includes("/generation/")), asked.join());
});

test("counts are uploaded and give a table of similar size", async () => {
  const holder = await Holder.start();
  const { schema } = holder.draft(table, "small");
  const client = await Client.signIn(address, { email, password: PASSWORD });
  let objects = 0;
  const onProgress = (progress) => (objects = progress.objects);
  const dataset = await client.upload(table, { schema, epsilon: 10, contribution: "counts", onProgress });
  assert.equal(dataset.terms.contribution, "counts");
  assert.ok(objects > 0);
  const job = await client.run(dataset);
  await job.done();
  const csv = new TextDecoder().decode(await job.synthetic());
  const drawn = csv.trim().split(/\r?\n/).length - 1;
  assert.ok(Math.abs(drawn - records) < records / 4, `${drawn} for ${records}`);
});

test("second computation service copies, confirms and deletes an upload", async () => {
  const { schema } = (await Holder.start()).draft(table, "small");
  const client = await Client.signIn(address, { email, password: PASSWORD });
  const copies = () => readdirSync(join(folder, "witness/blobs"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile()).length;
  const alone = await client.upload(table, { schema, epsilon: 10 });
  assert.equal(copies(), 0, "without `witness` nothing is copied");
  const dataset = await client.upload(table, { schema, epsilon: 10, witness: true });
  assert.equal(dataset.terms.witness, true);
  assert.ok(copies() > 0);
  const listed = await client.datasets();
  assert.deepEqual(listed.slice(0, 2).map(({ terms }) => terms.witness ?? false), [true, false]);
  const job = await client.run(dataset);
  assert.ok((await job.done()).releases > 0);
  // By its identifier, like a program that created it on another day.
  await client.delete(dataset.id);
  assert.equal(copies(), 0);
  await client.delete(alone);
});

test("an accepted rule is in the schema, and a proposed one is not", async () => {
  const holder = await Holder.start();
  const departments = { C1: "Cardiology", S1: "Surgery" };
  const row = (i) => Object.entries(departments)[i % 2].join(",");
  const text = `code,name\n${Array.from({ length: 100 }, (_, i) => row(i)).join("\n")}\n`;
  const { schema, rules } = holder.draft(new TextEncoder().encode(text), "departments");
  assert.deepEqual(schema.columns.map(({ kind }) => kind).filter((kind) => kind === "derived"), []);
  const [label] = rules.filter(({ change }) => change.column?.kind === "derived");
  assert.equal(label.records, 100);
  const accepted = holder.accept(schema, [label]);
  assert.deepEqual(accepted.columns.filter(({ kind }) => kind === "derived").length, 1);
  assert.throws(() => holder.accept({ ...schema, columns: schema.columns.slice(0, 1) }, [label]), /column/);
});

test("invalid values are reported with their place", async () => {
  const holder = await Holder.start();
  const { schema } = holder.draft(table, "small");
  const wrong = new TextEncoder().encode("colour,size,weight,sold\nultraviolet,large,4.41,no\n");
  assert.throws(() => holder.read(wrong, schema), /row 1 .*"colour".*ultraviolet/s);
  await assert.rejects(Client.signIn(address, { email, password: "not the password" }), Refusal);
});
