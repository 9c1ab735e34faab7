// The key that this browser signs with as one of a dataset's holders. The browser makes it and keeps it, and
// gives it to no script: it signs, and cannot be read. One an account, since a party plays one holder.
import { hexadecimal } from "./journal";

const DATABASE = "fhaim-holder";
const STORE = "keys";
const ALGORITHM = "Ed25519";

export interface HolderKey {
  /** Its public half, as hexadecimal digits. */
  public: string;
  /** The signature of the bytes that these hexadecimal digits are, as digits too. */
  sign(message: string): Promise<string>;
}

/** The account's key; one is made and kept where there is none. */
export async function holderKey(account: string): Promise<HolderKey> {
  const { publicKey, privateKey } = await pairOf(account);
  const raw = await crypto.subtle.exportKey("raw", publicKey);
  return {
    public: hexadecimal(new Uint8Array(raw)),
    sign: async (message) =>
      hexadecimal(new Uint8Array(await crypto.subtle.sign(ALGORITHM, privateKey, bytesOf(message)))),
  };
}

async function pairOf(account: string): Promise<CryptoKeyPair> {
  const opened = await database();
  try {
    const known = await stored(opened, account);
    if (known) return known;
    const made = (await generate()) as CryptoKeyPair;
    // Another tab may have been faster: the key that is kept first counts.
    await settled(opened.transaction(STORE, "readwrite").objectStore(STORE).add(made, account)).catch(() => undefined);
    void navigator.storage?.persist?.();
    const kept = await stored(opened, account);
    if (!kept) throw new Error("This browser keeps no keys here, as in some private windows: use another window, or the command line.");
    return kept;
  } finally {
    opened.close();
  }
}

async function generate(): Promise<CryptoKeyPair | CryptoKey> {
  try {
    return await crypto.subtle.generateKey(ALGORITHM, false, ["sign", "verify"]);
  } catch {
    throw new Error("This browser cannot sign (Ed25519): use a newer one, or `fhaim dataset join` and `sign`.");
  }
}

function stored(opened: IDBDatabase, account: string): Promise<CryptoKeyPair | undefined> {
  return settled(opened.transaction(STORE).objectStore(STORE).get(account) as IDBRequest<CryptoKeyPair | undefined>);
}

function database(): Promise<IDBDatabase> {
  const request = indexedDB.open(DATABASE, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STORE);
  return settled(request);
}

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = (event) => {
      // A key that is there already ends no transaction.
      event.preventDefault();
      reject(request.error ?? new Error("The browser cannot keep the key."));
    };
  });
}

function bytesOf(digits: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** What people compare of a key: eight groups of four hexadecimal digits. */
export async function fingerprint(key: string): Promise<string> {
  const digest = hexadecimal(new Uint8Array(await crypto.subtle.digest("SHA-256", bytesOf(key))));
  return (digest.slice(0, 32).match(/..../g) ?? []).join("-");
}
