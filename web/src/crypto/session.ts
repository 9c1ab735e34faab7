// The page's side of a worker: one promise per request.
import { useEffect, useRef, useState } from "react";
import type {
  Answer,
  Ask,
  Checked,
  Composed,
  Dialect,
  Drafted,
  Encrypted,
  Format,
  Mechanism,
  Part,
  Planned,
  ProposedRule,
  Read,
  ReadOptions,
  ReadTable,
  Reported,
  Request,
  Schema,
} from "./messages";
import type { Terms } from "../api/types";

/** An error of the worker, with its message. */
export class WorkerRefusal extends Error {}

/** Called with how much of its file a worker has read. */
export type OnRead = (read: Read) => void;

interface Waiting {
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
  onRead: OnRead | undefined;
}

/** A worker with its own table. */
export class HolderSession {
  private readonly worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  private readonly waiting = new Map<number, Waiting>();
  private next = 0;

  constructor() {
    this.worker.onmessage = ({ data }: MessageEvent<Answer>) => this.settle(data);
    this.worker.onerror = () => this.end("The encryption worker stopped. Reload the page.");
  }

  draft(file: File, format: Format, leave_out: string[], onRead?: OnRead): Promise<Drafted> {
    const name = file.name.replace(/\.[^.]*$/, "") || "table";
    return this.ask({ op: "draft", format, name, leave_out }, file, onRead);
  }

  /** Detects what a format does not state, from the file's first bytes. */
  dialect(file: File, format: Format): Promise<Dialect> {
    return this.ask({ op: "dialect", format }, file);
  }

  mechanisms(): Promise<Mechanism[]> {
    return this.ask({ op: "mechanisms" });
  }

  /** Returns a drafted schema, which may have been edited, with these rules. */
  accept(schema: Schema, rules: ProposedRule[]): Promise<Schema> {
    return this.ask({ op: "accept", schema, rules });
  }

  check(schema: Schema): Promise<Checked> {
    return this.ask({ op: "check", schema });
  }

  read(file: File, options: ReadOptions, onRead?: OnRead): Promise<ReadTable> {
    return this.ask({ op: "read", ...options }, file, onRead);
  }

  /** Completes new terms with everything that their holder leaves to the program. */
  named(terms: Terms): Promise<Terms> {
    return this.ask({ op: "name", terms });
  }

  part(terms: Terms, part: number): Promise<Part> {
    return this.ask({ op: "part", terms, part });
  }

  plan(terms: Terms, records: number): Promise<Planned> {
    return this.ask({ op: "plan", terms, records });
  }

  compose(costs: string[], delta: number): Promise<Composed> {
    return this.ask({ op: "compose", costs, delta });
  }

  /** Returns a new upload key. It is a secret: only the workers of the upload may get it. */
  uploadKey(terms: Terms): Promise<string> {
    return this.ask({ op: "upload-key", terms });
  }

  prepare(terms: Terms, publicKey: Blob, upload_key: string): Promise<number> {
    return this.ask({ op: "prepare", terms, upload_key }, publicKey);
  }

  encrypt(object: string): Promise<Encrypted> {
    return this.ask({ op: "encrypt", object });
  }

  /** Encrypts objects of zeros under a temporary key. Returns their number. */
  rehearse(parameter_set: number, objects: number): Promise<number> {
    return this.ask({ op: "rehearse", parameter_set, objects });
  }

  /** Compares a synthetic table with the one that was read together with its values. */
  report(synthetic: Blob, facts: [string, string][]): Promise<Reported> {
    return this.ask({ op: "report", file: "synthetic.csv", facts }, synthetic);
  }

  end(reason = "The work was stopped."): void {
    this.worker.terminate();
    for (const { reject } of this.waiting.values()) reject(new WorkerRefusal(reason));
    this.waiting.clear();
  }

  private ask<T>(request: Request, input?: Blob, onRead?: OnRead): Promise<T> {
    const id = this.next++;
    const ask: Ask = input ? { id, request, input } : { id, request };
    return new Promise<T>((resolve, reject) => {
      this.waiting.set(id, { resolve: (value) => resolve(value as T), reject, onRead });
      this.worker.postMessage(ask);
    });
  }

  private settle(answer: Answer): void {
    const waiting = this.waiting.get(answer.id);
    if (answer.kind === "progress") {
      waiting?.onRead?.(answer.read);
      return;
    }
    this.waiting.delete(answer.id);
    if (answer.kind === "error") waiting?.reject(new WorkerRefusal(answer.detail));
    else waiting?.resolve(answer.value);
  }
}

/** A session that lasts while a part of the page is shown. */
export function useSession(): HolderSession | undefined {
  const [session, setSession] = useState<HolderSession>();
  useEffect(() => {
    const made = new HolderSession();
    setSession(made);
    return () => made.end();
  }, []);
  return session;
}

/** Reads a file in a separate session: its progress, its error, and a function to stop. */
export function useReading() {
  const [reading, setReading] = useState<{ file: File; read: number }>();
  const [error, setError] = useState<unknown>();
  const session = useRef<HolderSession>(undefined);
  const read = async (file: File, work: (session: HolderSession, onRead: OnRead) => Promise<void>) => {
    const own = new HolderSession();
    session.current = own;
    setReading({ file, read: 0 });
    setError(undefined);
    try {
      await work(own, ({ bytes }) => setReading({ file, read: bytes }));
    } catch (problem) {
      // Stopping is not an error.
      if (session.current === own) setError(problem);
    } finally {
      own.end();
      setReading(undefined);
    }
  };
  const stop = () => {
    session.current?.end();
    session.current = undefined;
  };
  return { reading, error, read, stop };
}

/** Returns whether this browser can encrypt: it needs WebAssembly, and digests, which need a secure origin. */
export function canEncrypt(): boolean {
  return typeof WebAssembly === "object" && window.isSecureContext;
}
