// The rule that no password and no token is sent in plain text to another machine.

/** Rejects an `http` address that is not on this machine. */
export function checkTransport(address: string): void {
  if (!isPlain(address)) return;
  throw new Error(
    `${address}: this address would get the password and the tokens in plain text: use an https address. For a ` +
      "service without https, make a tunnel to its machine (`ssh -L 8080:127.0.0.1:8080 MACHINE`) and use " +
      "http://127.0.0.1:8080",
  );
}

/** Returns whether calls to an address cross a network in plain text. */
function isPlain(address: string): boolean {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol !== "http:") return false; // an address without a protocol gets no call
  const { hostname } = url;
  const isHere = hostname === "localhost" || hostname.endsWith(".localhost") || hostname === "[::1]";
  // The URL parser writes every form of an IPv4 address as four numbers.
  return !isHere && !/^127\.\d+\.\d+\.\d+$/.test(hostname);
}
