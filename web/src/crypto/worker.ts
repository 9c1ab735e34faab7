// A worker that holds one WebAssembly session: a table, and the key it is encrypted under.
import type { Answer, Ask, Read, Request } from "./messages";

interface Exports extends WebAssembly.Exports {
  memory: WebAssembly.Memory;
  fhaim_alloc(length: number): number;
  fhaim_call(from: number, length: number): void;
}

const scope = self as unknown as DedicatedWorkerGlobalScope;

/** Most that getRandomValues gives at once. */
const MAX_RANDOM = 65_536;
/** Bytes read off a file at a time. */
const SLICE = 1 << 20;

/** The bytes of a file, read synchronously as a worker may, slice by slice. */
class Input {
  private readonly reader = new FileReaderSync();
  private slice = new Uint8Array();
  private next = 0;
  private lines = 0;

  constructor(
    private readonly blob: Blob | undefined,
    private readonly tell: (read: Read) => void,
  ) {}

  read(to: Uint8Array): number {
    if (this.slice.length === 0) {
      if (!this.blob || this.next >= this.blob.size) return 0;
      const part = this.blob.slice(this.next, this.next + SLICE);
      this.slice = new Uint8Array(this.reader.readAsArrayBuffer(part));
      this.next += this.slice.length;
      this.lines += lineEnds(this.slice);
      this.tell({ bytes: this.next, lines: this.lines });
    }
    const count = Math.min(to.length, this.slice.length);
    to.set(this.slice.subarray(0, count));
    this.slice = this.slice.subarray(count);
    return count;
  }
}

function lineEnds(bytes: Uint8Array): number {
  let count = 0;
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) count += 1;
  return count;
}

/** What the module hands over: kinds are those of crates/sdk-wasm's `abi`. */
interface Reply {
  kind: number;
  bytes: Uint8Array<ArrayBuffer>;
}

let input = new Input(undefined, () => undefined);
let reply: Reply | undefined;
/** The module; after it broke there is none until the next request. */
let running: Promise<Exports> | undefined;

async function start(): Promise<Exports> {
  const view = (from: number, length: number) =>
    new Uint8Array(exports.memory.buffer, from >>> 0, length >>> 0);
  const host = {
    read(to: number, length: number): number {
      try {
        return input.read(view(to, length));
      } catch {
        return -1;
      }
    },
    random(to: number, length: number): void {
      const all = view(to, length);
      for (let at = 0; at < all.length; at += MAX_RANDOM) {
        crypto.getRandomValues(all.subarray(at, at + MAX_RANDOM));
      }
    },
    reply(kind: number, from: number, length: number): void {
      reply = { kind, bytes: view(from, length).slice() };
    },
  };
  const source = await fetch("/fhaim.wasm");
  const { instance } = await WebAssembly.instantiateStreaming(source, { host });
  const exports = instance.exports as Exports;
  return exports;
}

function call(exports: Exports, request: Request): Reply {
  const bytes = new TextEncoder().encode(JSON.stringify(request));
  const from = exports.fhaim_alloc(bytes.length);
  new Uint8Array(exports.memory.buffer, from >>> 0, bytes.length).set(bytes);
  reply = undefined;
  exports.fhaim_call(from, bytes.length);
  return reply ?? { kind: 2, bytes: new TextEncoder().encode("{}") };
}

async function answer({ id, request, input: blob }: Ask): Promise<Answer> {
  const exports = await (running ??= start());
  input = new Input(blob, (read) => scope.postMessage({ id, kind: "progress", read } satisfies Answer));
  const { kind, bytes } = call(exports, request);
  if (kind === 1) {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    return { id, kind: "encrypted", value: { bytes, digest } };
  }
  const value: unknown = JSON.parse(text(bytes));
  if (kind === 0) return { id, kind: "json", value };
  const told = value as { detail?: string; columns?: string[] };
  return { id, kind: "error", detail: told.detail ?? "", columns: told.columns ?? [] };
}

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

/** The module broke, or did not start: its memory is of no use any more. */
function failed(id: number, error: unknown): Answer {
  running = undefined;
  return { id, kind: "error", detail: why(error), columns: [] };
}

function why(error: unknown): string {
  const broke = error instanceof RangeError || error instanceof WebAssembly.RuntimeError;
  if (!broke) return `Encryption could not be started: ${error instanceof Error ? error.message : "unknown"}`;
  const place = reply?.kind === 3 ? text(reply.bytes) : "";
  // Without a place, or in the allocator, a panic is want of memory.
  if (place === "" || /alloc|raw_vec/.test(place)) {
    return "The browser ran out of memory for this table. The command line can take it.";
  }
  return `The encryption module stopped at ${place}. This is a defect: please report it.`;
}

scope.onmessage = async ({ data }: MessageEvent<Ask>) => {
  const told = await answer(data).catch((error: unknown) => failed(data.id, error));
  const moved = told.kind === "encrypted" ? [told.value.bytes.buffer] : [];
  scope.postMessage(told, moved);
};
