// A worker with one WebAssembly session: a table, and the key that it is encrypted under.
import type { Answer, Ask, Read } from "./messages";
import { Module, type Source } from "./module";

const scope = self as unknown as DedicatedWorkerGlobalScope;

/** Number of bytes read from a file at a time. */
const SLICE = 1 << 20;

/** The bytes of a file, read synchronously in slices, which only a worker may do. */
class Input implements Source {
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

/** The module. After a failure there is no module until the next request. */
let running: Promise<Module> | undefined;

async function answer({ id, request, input: blob }: Ask, module: Module): Promise<Answer> {
  const input = new Input(blob, (read) => scope.postMessage({ id, kind: "progress", read } satisfies Answer));
  const { kind, bytes } = module.call(request, input);
  if (kind === 1) {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    return { id, kind: "encrypted", value: { bytes, digest } };
  }
  const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
  if (kind === 0) return { id, kind: "json", value };
  return { id, kind: "error", detail: (value as { detail?: string }).detail ?? "" };
}

function why(error: unknown, module: Module | undefined): string {
  const broke = error instanceof RangeError || error instanceof WebAssembly.RuntimeError;
  if (!broke) return `Encryption could not be started: ${error instanceof Error ? error.message : "unknown"}`;
  const place = module?.place ?? "";
  // A panic without a place, or in the allocator, means that memory ran out.
  if (place === "" || /alloc|raw_vec/.test(place)) {
    return "The browser ran out of memory for this table. Use the command line instead.";
  }
  return `The encryption module stopped at ${place}. This is a defect: please report it.`;
}

scope.onmessage = async ({ data }: MessageEvent<Ask>) => {
  let module: Module | undefined;
  let told: Answer;
  try {
    module = await (running ??= Module.start(fetch("/fhaim.wasm")));
    told = await answer(data, module);
  } catch (error) {
    // The module failed or did not start, so its memory cannot be used any more.
    running = undefined;
    told = { id: data.id, kind: "error", detail: why(error, module) };
  }
  const moved = told.kind === "encrypted" ? [told.value.bytes.buffer] : [];
  scope.postMessage(told, moved);
};
