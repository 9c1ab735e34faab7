// Addresses that would get a password in plain text. No server is needed: the check is before any call.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { Client } from "fhaim";

const credentials = { email: "ana@example.org", password: "a long test password" };
const refusal = async (address) => {
  const refused = await Client.signIn(address, credentials).then(() => undefined, (error) => error);
  return refused?.message ?? "no error";
};

test("plain http is accepted only on this machine", async () => {
  const addresses = [
    "http://fhaim.example", "http://10.0.0.7:8080", "http://localhost.example", "HTTP://fhaim.example", "http://[fe80::1]",
    "http://127.0.0.1.example",
  ];
  for (const address of addresses) {
    const words = await refusal(address);
    assert.ok(words.startsWith(`${address}: `) && words.includes("in plain text: use an https address"), words);
  }
});

test("addresses of this machine get the sign-in", async () => {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.headers.host);
    response.writeHead(401, { "content-type": "application/problem+json" });
    response.end(JSON.stringify({ kind: "credentials", title: "refused", status: 401 }));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  for (const host of ["127.0.0.1", "localhost"]) {
    assert.equal(await refusal(`http://${host}:${port}`), "refused");
  }
  assert.equal(asked.length, 2);
  server.close();
  // Nothing listens here, and the address itself is accepted.
  for (const address of ["https://127.0.0.1:1", "http://127.9.9.9:1", "http://[::1]:1", "http://fhaim.localhost:1"]) {
    assert.doesNotMatch(await refusal(address), /plain text/);
  }
});
