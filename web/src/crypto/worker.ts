// A worker that holds one WebAssembly session: a table, and the key it is encrypted under.
import type { Answer, Ask, Request } from "./messages";

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

  constructor(private readonly blob: Blob | undefined) {}

  read(to: Uint8Array): number {
    if (this.slice.length === 0) {
      if (!this.blob || this.next >= this.blob.size) return 0;
      const part = this.blob.slice(this.next, this.next + SLICE);
      this.slice = new Uint8Array(this.reader.readAsArrayBuffer(part));
      this.next += this.slice.length;
    }
    const count = Math.min(to.length, this.slice.length);
    to.set(this.slice.subarray(0, count));
    this.slice = this.slice.subarray(count);
    return count;
  }
}

let input = new Input(undefined);
let reply: { kind: number; bytes: Uint8Array<ArrayBuffer> } | undefined;

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

const started = start();

function call(exports: Exports, request: Request): { kind: number; bytes: Uint8Array<ArrayBuffer> } {
  const bytes = new TextEncoder().encode(JSON.stringify(request));
  const from = exports.fhaim_alloc(bytes.length);
  new Uint8Array(exports.memory.buffer, from >>> 0, bytes.length).set(bytes);
  reply = undefined;
  exports.fhaim_call(from, bytes.length);
  return reply ?? { kind: 2, bytes: new TextEncoder().encode("{}") };
}

async function answer({ id, request, input: blob }: Ask): Promise<Answer> {
  const exports = await started;
  input = new Input(blob);
  const { kind, bytes } = call(exports, request);
  if (kind === 1) {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    return { id, kind: "encrypted", value: { bytes, digest } };
  }
  const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
  if (kind === 0) return { id, kind: "json", value };
  const told = value as { detail?: string; columns?: string[] };
  return { id, kind: "error", detail: told.detail ?? "", columns: told.columns ?? [] };
}

function failed(id: number, error: unknown): Answer {
  const memory = error instanceof RangeError || error instanceof WebAssembly.RuntimeError;
  const detail = memory
    ? "The browser ran out of memory for this table. The command line has no such limit."
    : `Encryption could not be started: ${error instanceof Error ? error.message : "unknown"}`;
  return { id, kind: "error", detail, columns: [] };
}

scope.onmessage = async ({ data }: MessageEvent<Ask>) => {
  const told = await answer(data).catch((error: unknown) => failed(data.id, error));
  const moved = told.kind === "encrypted" ? [told.value.bytes.buffer] : [];
  scope.postMessage(told, moved);
};
