// The upload of a sole holder: encrypted in workers while it is sent, paused, gone on with after a break.
import { backoff, call, get, json, mayPass, words } from "../api/client";
import { makeKeys } from "../api/keys";
import { computationsOf, contributionsOf, isComplete, type Computation } from "../api/parts";
import type { Dataset, Missing, Upload as Uploaded } from "../api/types";
import { hexadecimal, Journal } from "./journal";
import { rememberUse, type Used } from "./memory";
import type { Encrypted, Planned, ReadOptions, ReadTable } from "./messages";
import { rememberSending } from "./pace";
import { HolderSession } from "./session";

export type Phase = "preparing" | "sending" | "paused" | "sealing" | "done" | "failed";

export interface Progress {
  phase: Phase;
  done: number;
  objects: number;
  bytesSent: number;
  /** Milliseconds since the first object, pauses left out. */
  sendingMs: number;
  /** Why it stands still, in words. */
  trouble?: string;
}

/** Objects on their way for each worker. */
const PARALLEL = 2;

/** Said where the first computation service has all, the second has not, and what was sent is not known any more. */
const UNCOPIED =
  "The second computation service has no copy of this upload, and this browser does not know any more what it sent: " +
  "go on in the browser that began it, or make the dataset again.";

/** Milliseconds between two counts that the page is told of. */
const TELL_MS = 100;

const MAX_WORKERS = 4;
/** Memory that the workers' copies of the table may take together. */
const TABLES_BYTES = 2e9;

/** What a worker's copy of a table takes: four bytes a field. */
export function tableBytes(records: number, columns: number): number {
  return 4 * records * columns;
}

/** How many workers encrypt a table: each reads it for itself. */
export function workersFor(records: number, columns: number): number {
  const room = Math.floor(TABLES_BYTES / Math.max(1, tableBytes(records, columns)));
  return Math.max(1, Math.min(MAX_WORKERS, navigator.hardwareConcurrency || 2, room));
}

export class Upload {
  private progress: Progress = { phase: "preparing", done: 0, objects: 0, bytesSent: 0, sendingMs: 0 };
  private readonly sessions: HolderSession[] = [];
  /** What is to be sent, and how far down the list it is. */
  private queue: string[] = [];
  private next = 0;
  /** Complete at the computation service before anything was sent. */
  private complete = false;
  private readonly journal: Journal;
  private resumed: (() => void)[] = [];
  private stopped = false;
  private resumedAt = 0;
  private parameterSet: number | undefined;
  private telling: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly dataset: Dataset,
    readonly file: File,
    readonly read: ReadOptions,
    readonly used: Used,
    private readonly tell: () => void,
  ) {
    this.journal = new Journal(dataset.id);
  }

  /** How far it is. The same object until something changes. */
  get state(): Progress {
    return this.progress;
  }

  /** Runs to the end; what goes wrong is told as progress. */
  async run(): Promise<void> {
    try {
      await this.prepare();
      this.resumedAt = performance.now();
      this.say({ phase: "sending" });
      const lanes = this.sessions.flatMap((session) => Array(PARALLEL).fill(session));
      await Promise.all(lanes.map((session: HolderSession) => this.lane(session)));
      if (this.stopped) return;
      this.say({ phase: "sealing", sendingMs: this.elapsed() });
      await this.seal();
      await this.remember();
      this.say({ phase: "done" });
    } catch (error) {
      if (!this.stopped) this.say({ phase: "failed", trouble: words(error) });
    } finally {
      this.stop();
    }
  }

  pause(): void {
    this.say({ phase: "paused", sendingMs: this.elapsed() });
    this.keep();
  }

  resume(): void {
    this.resumedAt = performance.now();
    this.say({ phase: "sending" });
    this.resumed.splice(0).forEach((go) => go());
  }

  /** Writes down what was sent, for the upload to go on after a reload. */
  keep(): void {
    if (this.progress.phase !== "done") this.journal.write();
  }

  /** Ends it; what was sent stays, and another upload goes on from there. */
  stop(): void {
    this.stopped = true;
    this.resumed.splice(0).forEach((go) => go());
    this.sessions.forEach((session) => session.end());
    this.keep();
  }

  /** Milliseconds spent sending up to now; the count goes on from here. */
  private elapsed(): number {
    if (this.progress.phase !== "sending") return this.progress.sendingMs;
    const now = performance.now();
    const total = this.progress.sendingMs + now - this.resumedAt;
    this.resumedAt = now;
    return total;
  }

  private say(change: Partial<Progress>): void {
    const { trouble: _, ...rest } = this.progress;
    this.progress = { ...rest, ...change };
    this.tell();
  }

  private async prepare(): Promise<void> {
    const first = await this.open();
    const { records, columns } = first.table;
    const plan = await first.session.plan(this.dataset.terms, records);
    this.parameterSet = plan.parameter_set;
    rememberUse(this.used, this.dataset);
    const key = await this.publicKey(plan);
    await this.register(plan);
    const others = Array.from({ length: workersFor(records, columns.length) - 1 }, () => this.open());
    const { objects: missing } = await this.persist(() =>
      get<Missing>("computation", this.own("/missing")),
    );
    await this.journal.load();
    this.journal.forget(missing);
    const own = await this.uploadKey(first.session);
    await Promise.all([first, ...(await Promise.all(others))].map(({ session }) =>
      session.prepare(this.dataset.terms, key, own),
    ));
    this.queue = plan.objects.filter((object) => !this.journal.digests.has(object));
    if (this.queue.length > 0 && (await this.isComplete())) {
      if (this.dataset.terms.witness && !(await this.isComplete("witness"))) throw new Error(UNCOPIED);
      // Complete, and so of no journal any more, and not ready: the generation service was set back.
      this.complete = true;
      this.queue = [];
    }
    this.say({ objects: plan.objects.length, done: plan.objects.length - this.queue.length });
  }

  /** The upload key. An upload that was begun before continues under its key. */
  private async uploadKey(session: HolderSession): Promise<string> {
    if (this.journal.digests.size > 0 && this.journal.uploadKey) return this.journal.uploadKey;
    const key = await session.uploadKey(this.dataset.terms);
    await this.journal.begin(key);
    return key;
  }

  private async open(): Promise<{ session: HolderSession; table: ReadTable }> {
    const session = new HolderSession();
    this.sessions.push(session);
    return { session, table: await session.read(this.file, this.read) };
  }

  /** The dataset's public key, once the crypto service sees the plan that the page sees. */
  private async publicKey(plan: Planned): Promise<Blob> {
    const set = await this.persist(() => makeKeys(this.dataset));
    if (set.parameter_set !== plan.parameter_set || set.budget.exact !== plan.budget) {
      throw new Error("The crypto service works with another budget or other parameters.");
    }
    const bytes = await this.persist(async () =>
      (await call("crypto", "GET", this.path("/public-key"))).arrayBuffer(),
    );
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    if (hexadecimal(digest) !== set.public_key) {
      throw new Error("The public key is not the one that the crypto service announced.");
    }
    return new Blob([bytes]);
  }

  private async register({ layout }: Planned): Promise<void> {
    const terms = this.dataset.terms;
    const registration = layout ? { terms, layout } : { terms };
    // The second before the first, to which objects are sent.
    for (const service of computationsOf(this.dataset).reverse()) {
      await this.persist(() => call(service, "PUT", this.path(""), { json: registration }));
    }
  }

  private async isComplete(service: Computation = "computation"): Promise<boolean> {
    const parts = await this.persist(() => contributionsOf(this.dataset.id, service));
    return parts.some(isComplete);
  }

  private path(rest: string): string {
    return `/v1/datasets/${this.dataset.id}${rest}`;
  }

  private own(rest: string): string {
    return this.path(`/contributions/0${rest}`);
  }

  /** Takes objects off the queue, one after the other. */
  private async lane(session: HolderSession): Promise<void> {
    for (;;) {
      if (this.progress.phase === "paused") await new Promise<void>((go) => this.resumed.push(go));
      const object = this.stopped ? undefined : this.queue[this.next++];
      if (object === undefined) return;
      const encrypted = await session.encrypt(object);
      await this.put(object, encrypted);
      // Another upload of the same table may be under way, and its objects are what counts then.
      if (this.stopped) return;
      this.journal.confirm(object, encrypted.digest);
      this.count(encrypted.bytes.length);
    }
  }

  /** One object more was sent. The page is told a few times a second, however fast they go. */
  private count(size: number): void {
    const { done, bytesSent } = this.progress;
    const change = { done: done + 1, bytesSent: bytesSent + size, sendingMs: this.elapsed() };
    this.progress = { ...this.progress, ...change };
    this.telling ??= setTimeout(() => {
      this.telling = undefined;
      this.tell();
    }, TELL_MS);
  }

  /** Sends an object. */
  private async put(object: string, { bytes, digest }: Encrypted): Promise<void> {
    const path = this.own(`/objects/${object.replaceAll("/", "%2F")}`);
    const text = btoa(String.fromCharCode(...digest));
    const headers = { "content-digest": `sha-256=:${text}:` };
    await this.persist(() => call("computation", "PUT", path, { bytes, headers }));
  }

  /** Notes how long it took, for what the next one is told to take. */
  private async remember(): Promise<void> {
    const { bytesSent, sendingMs } = this.progress;
    const sent = { objects: this.queue.length, bytes: bytesSent, seconds: sendingMs / 1000 };
    if (this.parameterSet !== undefined) await rememberSending(this.parameterSet, this.sessions.length, sent);
  }

  private async seal(): Promise<void> {
    if (!this.complete) {
      const manifest = await this.journal.manifest();
      await this.persist(() => call("computation", "POST", this.own("/complete"), { json: { manifest } }));
      if (this.dataset.terms.witness) await this.haveCopied(manifest);
    }
    if (await this.isComplete()) await this.persist(() => call("generation", "POST", this.path("/ready")));
    await this.journal.finish();
  }

  /**
   * Has the second computation service copy the upload from the first, for a while with each call: it holds what it
   * gets against the manifest that it is told here.
   */
  private async haveCopied(manifest: string): Promise<void> {
    for (;;) {
      const { contributions } = await this.persist(() =>
        json<Uploaded>("witness", "POST", this.own("/complete"), { json: { manifest } }),
      );
      if (this.stopped || contributions.some(isComplete)) return;
    }
  }

  /** Does it again and again while the connection is lost. */
  private async persist<T>(work: () => Promise<T>): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        const value = await work();
        if (this.progress.trouble !== undefined) this.say({});
        return value;
      } catch (error) {
        if (this.stopped || !mayPass(error)) throw error;
        this.say({ trouble: `${words(error)} Trying again.` });
        await backoff(attempt, error);
      }
    }
  }
}
