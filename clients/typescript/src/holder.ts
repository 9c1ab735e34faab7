// The holder's side: drafts schemas, reads tables and encrypts them, in this process.
import type { Drafted, Encrypted, Planned, ProposedRule, ReadTable, Request, Schema } from "../../../web/src/crypto/messages.ts";
import { Module, type Source } from "../../../web/src/crypto/module.ts";
import type { Terms } from "./client.ts";

export type { ProposedRule, Schema };

/** A draft of a schema. Its owner corrects and confirms it, because a schema is public. */
export interface Draft {
  schema: Schema;
  /** Points to check, by column. */
  notes: { column: string; text: string }[];
  /**
   * Rules between columns that hold in all records. They are not in the schema: see `Holder.accept`. A rule that holds in
   * the data is a statistic of the data, and its number of records is private.
   */
  rules: ProposedRule[];
}

/** Bytes that are read piece by piece. */
class Bytes implements Source {
  constructor(private rest: Uint8Array) {}

  read(to: Uint8Array): number {
    const count = Math.min(to.length, this.rest.length);
    to.set(this.rest.subarray(0, count));
    this.rest = this.rest.subarray(count);
    return count;
  }
}

/** Reads the module, which lies next to this file. */
async function beside(): Promise<Uint8Array<ArrayBuffer>> {
  const address = new URL("./fhaim.wasm", import.meta.url);
  if (address.protocol !== "file:") return new Uint8Array(await (await fetch(address)).arrayBuffer());
  const { readFile } = await import("node:fs/promises");
  return new Uint8Array(await readFile(address));
}

/** One table, and the keys that it is encrypted under. This class does not send anything. */
export class Holder {
  private constructor(private readonly module: Module) {}

  /**
   * Starts the module.
   * @param bytes The module, if it does not lie next to this file, for example in a bundle.
   */
  static async start(bytes?: Uint8Array<ArrayBuffer>): Promise<Holder> {
    return new Holder(await Module.start(bytes ?? (await beside())));
  }

  /** Drafts a schema from a CSV table. The draft is read from the records, so the table's owner has to confirm it. */
  draft(table: Uint8Array, name = "table"): Draft {
    return this.ask<Drafted>({ op: "draft", format: this.format(), name, leave_out: [] }, table);
  }

  /**
   * Returns a drafted schema with these rules, which then hold in synthetic tables. Accept a rule only if public knowledge
   * says the same of every possible table.
   */
  accept(schema: Schema, rules: ProposedRule[]): Schema {
    return this.ask({ op: "accept", schema, rules });
  }

  /** Reads a table with a schema, and keeps it. */
  read(table: Uint8Array, schema: Schema): ReadTable {
    const options = { format: this.format(), schema, clamp: false };
    return this.ask({ op: "read", ...options }, table);
  }

  /** Completes new terms with everything that is left to the program. */
  named(terms: Terms): Terms {
    return this.ask({ op: "name", terms: terms as never });
  }

  plan(terms: Terms, records: number): Planned {
    return this.ask({ op: "plan", terms: terms as never, records });
  }

  prepare(terms: Terms, publicKey: Uint8Array): number {
    const upload_key = this.ask<string>({ op: "upload-key", terms: terms as never });
    return this.ask({ op: "prepare", terms: terms as never, upload_key }, publicKey);
  }

  /** Encrypts one object of the upload. */
  async encrypt(object: string): Promise<Encrypted> {
    const { kind, bytes } = this.call({ op: "encrypt", object });
    if (kind !== 1) throw new Error("the module returned no object");
    return { bytes, digest: new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)) };
  }

  /** Everything about the table's text is detected. */
  private format() {
    return { file: "table.csv", missing: [] };
  }

  private ask<T>(request: Request, bytes?: Uint8Array): T {
    return JSON.parse(new TextDecoder().decode(this.call(request, bytes).bytes)) as T;
  }

  private call(request: Request, bytes: Uint8Array = new Uint8Array()) {
    const reply = this.module.call(request, new Bytes(bytes));
    if (reply.kind !== 2) return reply;
    const { detail = "the request was not answered" } = JSON.parse(new TextDecoder().decode(reply.bytes)) as { detail?: string };
    throw new Error(detail);
  }
}
