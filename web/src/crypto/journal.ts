// Digests of the objects that a service has confirmed, kept by the browser: with them an upload
// goes on after a reload. Digests of ciphertexts say nothing about the records.

const PREFIX = "fhaim.upload.";
/** Milliseconds between two writes, each of which writes everything. */
const EVERY_MS = 1000;

export class Journal {
  private readonly key: string;
  readonly digests: Map<string, string>;
  private written = 0;

  constructor(dataset: string) {
    this.key = PREFIX + dataset;
    const known = JSON.parse(localStorage.getItem(this.key) ?? "{}") as Record<string, string>;
    this.digests = new Map(Object.entries(known));
  }

  confirm(object: string, digest: Uint8Array): void {
    this.digests.set(object, hexadecimal(digest));
    if (performance.now() - this.written > EVERY_MS) this.write();
  }

  /** Forgets objects that the service does not have. */
  forget(objects: string[]): void {
    for (const object of objects) this.digests.delete(object);
  }

  write(): void {
    try {
      localStorage.setItem(this.key, JSON.stringify(Object.fromEntries(this.digests)));
    } catch {
      // Without room an upload cannot go on after a reload; it is sent again then.
    }
    this.written = performance.now();
  }

  finish(): void {
    localStorage.removeItem(this.key);
  }

  /** Digest of the manifest: every object in order of its name, with its digest. */
  async manifest(): Promise<string> {
    // Names are ASCII: the order of code units is that of bytes.
    const names = [...this.digests.keys()].sort();
    const lines = names.map((name) => `${name} ${this.digests.get(name)}\n`);
    const text = new TextEncoder().encode(lines.join(""));
    return hexadecimal(new Uint8Array(await crypto.subtle.digest("SHA-256", text)));
  }
}

export function hexadecimal(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
