// Identifiers of objects that the page creates. The page chooses them, so that a call with a lost answer can be
// repeated without creating anything twice.

/** Returns a new UUID, version 4 (RFC 9562). The browser's own function is unavailable on plain HTTP. */
export function newId(): string {
  const bytes = Array.from(crypto.getRandomValues(new Uint8Array(16)));
  const fixed = bytes.map((byte, place) => (place === 6 ? (byte & 0x0f) | 0x40 : place === 8 ? (byte & 0x3f) | 0x80 : byte));
  const text = fixed.map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return text.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
