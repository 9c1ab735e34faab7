// Digests of the objects that a service has confirmed, kept by the browser: with them an upload
// goes on after a reload. Digests of ciphertexts say nothing about the records.
//
// An upload continues under the same upload key. The key is kept with the digests, encrypted under a key that no script
// can read, and is deleted with them.
//
// They are kept in IndexedDB as a log. What was confirmed since the last write is one entry, and no
// entry is written twice: an object of a large table costs no more than one of a small table.

const DATABASE = "fhaim";
const STORE = "uploads";
const BY_DATASET = "dataset";
/** Milliseconds between two writes. What was sent since the last may have to be sent again. */
const EVERY_MS = 500;
const DIGEST_BYTES = 32;

interface Entry {
  dataset: string;
  objects: string[];
  /** One after the other, in the order of `objects`. */
  digests: Uint8Array<ArrayBuffer>;
  /** The upload key of what follows; what came before does not count any more. */
  sealed?: Sealed;
}

/** A text under a key that the browser keeps to itself. */
interface Sealed {
  key: CryptoKey;
  iv: Uint8Array<ArrayBuffer>;
  bytes: ArrayBuffer;
}

export class Journal {
  readonly digests = new Map<string, Uint8Array<ArrayBuffer>>();
  /** The upload key, once there is one. */
  uploadKey: string | undefined;
  /** Confirmed since the last write. */
  private fresh: string[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private database: IDBDatabase | undefined;

  constructor(private readonly dataset: string) {}

  /** Reads what was kept. Of an object that was sent twice, the later digest counts. */
  async load(): Promise<void> {
    this.database = await database();
    const entries = this.database ? await entriesOf(this.database, this.dataset) : [];
    for (const { objects, digests, sealed } of entries) {
      if (sealed) {
        this.digests.clear();
        this.uploadKey = await opened(sealed);
      }
      objects.forEach((object, place) => {
        this.digests.set(object, digests.slice(place * DIGEST_BYTES, (place + 1) * DIGEST_BYTES));
      });
    }
  }

  /** Begins again, under another upload key. */
  async begin(uploadKey: string): Promise<void> {
    this.digests.clear();
    this.fresh = [];
    this.uploadKey = uploadKey;
    if (!this.database) return;
    const entry = { dataset: this.dataset, objects: [], digests: new Uint8Array() };
    append(this.database, { ...entry, sealed: await sealed(uploadKey) });
  }

  confirm(object: string, digest: Uint8Array<ArrayBuffer>): void {
    this.digests.set(object, digest);
    this.fresh.push(object);
    this.timer ??= setTimeout(() => this.write(), EVERY_MS);
  }

  /** Forgets objects that the service does not have. */
  forget(objects: string[]): void {
    for (const object of objects) this.digests.delete(object);
  }

  /** Appends what is new. It is on its way when this returns, also where the page is left then. */
  write(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const objects = this.fresh.splice(0);
    if (!this.database || objects.length === 0) return;
    const digests = new Uint8Array(objects.length * DIGEST_BYTES);
    objects.forEach((object, place) => {
      const digest = this.digests.get(object);
      if (digest) digests.set(digest, place * DIGEST_BYTES);
    });
    append(this.database, { dataset: this.dataset, objects, digests });
  }

  /** Forgets everything, on the disk too. */
  async finish(): Promise<void> {
    clearTimeout(this.timer);
    this.fresh = [];
    await forgetUpload(this.dataset);
  }

  /** Digest of the manifest: every object in order of its name, with its digest. */
  async manifest(): Promise<string> {
    // Names are ASCII: the order of code units is that of bytes.
    const entries = [...this.digests].sort(([one], [other]) => (one < other ? -1 : 1));
    const lines = entries.map(([object, digest]) => `${object} ${hexadecimal(digest)}\n`);
    const text = new TextEncoder().encode(lines.join(""));
    return hexadecimal(new Uint8Array(await crypto.subtle.digest("SHA-256", text)));
  }
}

async function sealed(text: string): Promise<Sealed> {
  const key = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
  const iv = crypto.getRandomValues(new Uint8Array(12));
  const bytes = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, new TextEncoder().encode(text));
  return { key, iv, bytes };
}

/** Nothing where it cannot be opened: the upload begins anew then. */
async function opened({ key, iv, bytes }: Sealed): Promise<string | undefined> {
  try {
    return new TextDecoder().decode(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, bytes));
  } catch {
    return undefined;
  }
}

/** Forgets what was sent of a dataset that is done, or gone. */
export async function forgetUpload(dataset: string): Promise<void> {
  const opened = await database();
  if (!opened) return;
  try {
    const store = opened.transaction(STORE, "readwrite").objectStore(STORE);
    const keys = await settled(store.index(BY_DATASET).getAllKeys(dataset));
    await Promise.all(keys.map((key) => settled(store.delete(key))));
  } catch {
    // What is left over is in nobody's way.
  }
}

const HEXADECIMAL = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

export function hexadecimal(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += HEXADECIMAL[byte];
  return text;
}

let opening: Promise<IDBDatabase | undefined> | undefined;

/** Nothing where the browser keeps nothing, as some do in private windows. */
function database(): Promise<IDBDatabase | undefined> {
  opening ??= open().catch(() => undefined);
  return opening;
}

async function open(): Promise<IDBDatabase> {
  const request = indexedDB.open(DATABASE, 1);
  request.onupgradeneeded = () => {
    const store = request.result.createObjectStore(STORE, { autoIncrement: true });
    store.createIndex(BY_DATASET, "dataset");
  };
  return settled(request);
}

async function entriesOf(opened: IDBDatabase, dataset: string): Promise<Entry[]> {
  try {
    const store = opened.transaction(STORE).objectStore(STORE);
    return await settled(store.index(BY_DATASET).getAll(dataset));
  } catch {
    // What cannot be read is as if it was not kept.
    return [];
  }
}

function append(opened: IDBDatabase, entry: Entry): void {
  try {
    const transaction = opened.transaction(STORE, "readwrite");
    transaction.objectStore(STORE).add(entry);
    transaction.commit();
  } catch {
    // Where the browser refuses, an upload cannot go on after a reload; it is sent again then.
  }
}

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("The browser cannot keep what was sent."));
  });
}
