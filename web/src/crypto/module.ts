// The WebAssembly module of crates/sdk-wasm, with the interface of its src/abi.rs: three imports and two exports. The
// page's worker and the TypeScript package both use this file.

/** Source of the bytes that belong to a request. */
export interface Source {
  /** Fills `to` from its beginning. Returns the number of bytes, 0 at the end. */
  read(to: Uint8Array): number;
}

/** An answer of the module. */
export interface Reply {
  /** 0 JSON, 1 bytes, 2 an error as JSON. */
  kind: number;
  bytes: Uint8Array<ArrayBuffer>;
}

interface Exports extends WebAssembly.Exports {
  memory: WebAssembly.Memory;
  fhaim_alloc(length: number): number;
  fhaim_call(from: number, length: number): void;
}

/** The most bytes that getRandomValues returns at once. */
const MAX_RANDOM = 65_536;

/** The kind of a reply with the place of a panic, after which the module cannot be used. */
const PANIC = 3;

const NOTHING: Source = { read: () => 0 };

/** One session: a table, and the key that it is encrypted under. */
export class Module {
  private source = NOTHING;
  private reply: Reply | undefined;

  private constructor(private readonly exports: Exports) {}

  /** Starts a module from its bytes. */
  static async start(bytes: BufferSource | Response | Promise<Response>): Promise<Module> {
    let module: Module;
    const host = {
      read: (to: number, length: number) => module.take(to, length),
      random: (to: number, length: number) => module.fill(to, length),
      reply: (kind: number, from: number, length: number) => module.keep(kind, from, length),
    };
    const isLoaded = bytes instanceof ArrayBuffer || ArrayBuffer.isView(bytes);
    const { instance } = isLoaded
      ? await WebAssembly.instantiate(bytes, { host })
      : await WebAssembly.instantiateStreaming(bytes, { host });
    module = new Module(instance.exports as Exports);
    return module;
  }

  /** Answers a request, reading `source` meanwhile. */
  call(request: unknown, source: Source = NOTHING): Reply {
    this.source = source;
    this.reply = undefined;
    const bytes = new TextEncoder().encode(JSON.stringify(request));
    const from = this.exports.fhaim_alloc(bytes.length);
    this.view(from, bytes.length).set(bytes);
    this.exports.fhaim_call(from, bytes.length);
    return this.reply ?? { kind: 2, bytes: new TextEncoder().encode("{}") };
  }

  /** The place of a panic, if the module reported one. */
  get place(): string {
    return this.reply?.kind === PANIC ? new TextDecoder().decode(this.reply.bytes) : "";
  }

  private view(from: number, length: number): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.exports.memory.buffer as ArrayBuffer, from >>> 0, length >>> 0);
  }

  private take(to: number, length: number): number {
    try {
      return this.source.read(this.view(to, length));
    } catch {
      return -1;
    }
  }

  private fill(to: number, length: number): void {
    const all = this.view(to, length);
    for (let at = 0; at < all.length; at += MAX_RANDOM) {
      crypto.getRandomValues(all.subarray(at, at + MAX_RANDOM));
    }
  }

  private keep(kind: number, from: number, length: number): void {
    this.reply = { kind, bytes: this.view(from, length).slice() };
  }
}
