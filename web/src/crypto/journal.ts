// Digests of the objects that a service has confirmed, stored by the browser so that an upload can be resumed after a
// reload. Digests of ciphertexts reveal nothing about the records.
//
// A resumed upload uses the same upload key. The key is stored with the digests, encrypted under a key that no script
// can read, and is deleted with them.
//
// The digests are stored in IndexedDB as a log. Each write adds one entry with the digests since the last write, and no
// entry is written twice. Therefore an object of a large table costs no more than one of a small table.

const DATABASE = "fhaim";
const STORE = "uploads";
const BY_DATASET = "dataset";
/** Milliseconds between two writes. Objects sent since the last write may have to be sent again. */
const EVERY_MS = 500;
const DIGEST_BYTES = 32;

interface Entry {
  dataset: string;
  objects: string[];
  /** The digests in the order of `objects`, without separators. */
  digests: Uint8Array<ArrayBuffer>;
  /** The upload key of the following entries. Earlier entries do not count any more. */
  sealed?: Sealed;
}

/** A text encrypted under a key that only the browser can use. */
interface Sealed {
  key: CryptoKey;
  iv: Uint8Array<ArrayBuffer>;
  bytes: ArrayBuffer;
}

export class Journal {
  readonly digests = new Map<string, Uint8Array<ArrayBuffer>>();
  /** The upload key, once there is one. */
  uploadKey: string | undefined;
  /** Objects that were confirmed since the last write. */
  private fresh: string[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private database: IDBDatabase | undefined;

  constructor(private readonly dataset: string) {}

  /** Reads the stored entries. If an object was sent twice, the later digest counts. */
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

  /** Starts over under another upload key. */
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

  /** Forgets objects that the service lacks. */
  forget(objects: string[]): void {
    for (const object of objects) this.digests.delete(object);
  }

  /** Appends the new digests. The write has started when this returns, even if the page is then left. */
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

  /** Forgets everything, including the stored entries. */
  async finish(): Promise<void> {
    clearTimeout(this.timer);
    this.fresh = [];
    await forgetUpload(this.dataset);
  }

  /** Returns the digest of the manifest: every object with its digest, in order of the names. */
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

/** Returns undefined if the text cannot be decrypted: then the upload starts over. */
async function opened({ key, iv, bytes }: Sealed): Promise<string | undefined> {
  try {
    return new TextDecoder().decode(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, bytes));
  } catch {
    return undefined;
  }
}

/** Forgets the stored digests of a dataset that is complete or deleted. */
export async function forgetUpload(dataset: string): Promise<void> {
  const opened = await database();
  if (!opened) return;
  try {
    const store = opened.transaction(STORE, "readwrite").objectStore(STORE);
    const keys = await settled(store.index(BY_DATASET).getAllKeys(dataset));
    await Promise.all(keys.map((key) => settled(store.delete(key))));
  } catch {
    // Entries that stay behind do no harm.
  }
}

const HEXADECIMAL = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

export function hexadecimal(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += HEXADECIMAL[byte];
  return text;
}

let opening: Promise<IDBDatabase | undefined> | undefined;

/** Returns undefined if the browser stores nothing, as in some private windows. */
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
    // Unreadable entries count as missing.
    return [];
  }
}

function append(opened: IDBDatabase, entry: Entry): void {
  try {
    const transaction = opened.transaction(STORE, "readwrite");
    transaction.objectStore(STORE).add(entry);
    transaction.commit();
  } catch {
    // If the browser cannot store it, the upload cannot be resumed after a reload and everything is sent again.
  }
}

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("The browser cannot store the record of the upload."));
  });
}
