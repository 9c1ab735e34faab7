// The client for programs: uploads tables and runs jobs over them.
import type { components } from "../../../web/src/api/generated/generation.ts";
import type { components as ComputationParts } from "../../../web/src/api/generated/computation.ts";
import type { components as CryptoParts } from "../../../web/src/api/generated/crypto.ts";
import type { Planned } from "../../../web/src/crypto/messages.ts";
import { checkTerms } from "../../../web/src/api/terms.ts";
import { Holder, type Schema } from "./holder.ts";
import { Job } from "./job.ts";
import { Linked } from "./link.ts";
import { answered, Session } from "./session.ts";

export type Terms = components["schemas"]["Terms"];
export type Dataset = components["schemas"]["Dataset"];
type Upload = ComputationParts["schemas"]["Upload"];
type KeySet = CryptoParts["schemas"]["KeySet"];
type Receipt = CryptoParts["schemas"]["Receipt"];

/** Credentials for signing in. */
export type Login = { apiKey: string } | { email: string; password: string };

/** Progress of an upload. */
export interface Progress {
  done: number;
  objects: number;
}

export interface UploadOptions {
  /** The schema, as the table's owner confirmed it. It is public. */
  schema: Schema;
  /** The privacy budget of all jobs of the dataset together. */
  epsilon: number;
  /** Delta of the budget, by default 1e-9. */
  delta?: number;
  /** Number of jobs that share the budget, by default 1. */
  runs?: number;
  mechanism?: string;
  /** What is uploaded, encrypted: every record, or counts of all pairs of columns. */
  contribution?: "records" | "counts";
  /**
   * Whether a second computation service computes everything as well, so that only results on which both agree are
   * decrypted and neither has to be trusted alone. The upload fails if the services do not know a second one.
   */
  witness?: boolean;
  /** A name for people, by default the schema's. */
  name?: string;
  onProgress?: (progress: Progress) => void;
}

/** Number of objects that are sent at the same time. */
const PARALLEL = 4;

/** An account at `fhaim up`, or at services behind one address. */
export class Client {
  private readonly receipts = new Map<string, Receipt>();

  private constructor(private readonly session: Session) {}

  /** Signs in, with an API key or with a password. */
  static async signIn(address: string, login: Login): Promise<Client> {
    const session = new Session(address, login);
    await session.begin();
    return new Client(session);
  }

  /** Returns the account's datasets, newest first. */
  async datasets(): Promise<Dataset[]> {
    const all: Dataset[] = [];
    let after: string | null | undefined;
    do {
      const query = after ? { after } : {};
      const page = await answered(this.session.generation.GET("/v1/datasets", { params: { query } }));
      all.push(...page.items);
      after = page.next;
    } while (after);
    return all;
  }

  /**
   * Encrypts a CSV table in this process and uploads it as a new dataset.
   * @returns The dataset, ready for jobs.
   */
  async upload(table: Uint8Array, options: UploadOptions): Promise<Dataset> {
    const holder = await Holder.start();
    const { records, record_bound } = holder.read(table, options.schema);
    const terms = holder.named(termsOf(options, record_bound));
    const dataset = await this.create(options.name ?? options.schema.name, terms);
    const plan = holder.plan(dataset.terms, records);
    holder.prepare(dataset.terms, await this.publicKey(dataset, plan));
    const params = { path: { dataset: dataset.id } };
    const body = plan.layout ? { terms: dataset.terms, layout: plan.layout } : { terms: dataset.terms };
    const both = dataset.terms.witness ? (["witness", "computation"] as const) : (["computation"] as const);
    for (const service of both) await answered(this.session[service].PUT("/v1/datasets/{dataset}", { params, body }));
    const digests = await this.send(dataset.id, holder, plan, options.onProgress);
    await this.seal(dataset, await manifest(digests));
    return answered(this.session.generation.POST("/v1/datasets/{dataset}/ready", { params }));
  }

  /** Starts a job: one run over the dataset, which spends its share of the budget. */
  async run(dataset: Dataset | string): Promise<Job> {
    const id = typeof dataset === "string" ? dataset : dataset.id;
    const receipt = await this.receipt(id);
    const job = await answered(this.session.generation.PUT("/v1/datasets/{dataset}/jobs/{job}", {
      params: { path: { dataset: id, job: crypto.randomUUID() } }, body: { receipt },
    }));
    return new Job(this.session, job.id);
  }

  /** Returns a job that was started before. */
  job(id: string): Job {
    return new Job(this.session, id);
  }

  /** Opens another account's link: its data card, and tables. */
  open(link: string): Linked {
    return new Linked(this.session, link);
  }

  /** Deletes a dataset everywhere: first its keys, so that nothing of it can be decrypted. */
  async delete(dataset: Dataset | string): Promise<void> {
    const params = { path: { dataset: typeof dataset === "string" ? dataset : dataset.id } };
    const known = typeof dataset === "string"
      ? await answered(this.session.generation.GET("/v1/datasets/{dataset}", { params }))
      : dataset;
    const both = known.terms.witness ? (["computation", "witness"] as const) : (["computation"] as const);
    for (const service of ["crypto", ...both, "generation"] as const) {
      const calls = this.session[service] as Session["computation"]; // the call is the same at each
      await answered(calls.DELETE("/v1/datasets/{dataset}", { params }));
    }
  }

  private async create(name: string, terms: Terms): Promise<Dataset> {
    const path = { dataset: crypto.randomUUID() };
    const made = await answered(
      this.session.generation.PUT("/v1/datasets/{dataset}", { params: { path }, body: { name, terms } }),
    );
    checkTerms(terms, made.terms);
    return made;
  }

  /** Returns the key to encrypt under, after checking that the crypto service has the same plan as this process. */
  private async publicKey({ id, terms }: Dataset, plan: Planned): Promise<Uint8Array<ArrayBuffer>> {
    const params = { path: { dataset: id } };
    const { voucher } = await answered(this.session.generation.GET("/v1/datasets/{dataset}/voucher", { params }));
    const set: KeySet = await answered(this.session.crypto.PUT("/v1/datasets/{dataset}", { params, body: { terms, voucher } }));
    if (set.parameter_set !== plan.parameter_set || set.budget.exact !== plan.budget) {
      throw new Error("the crypto service works with another budget or other parameters");
    }
    this.keep(set.receipt);
    const key = this.session.crypto.GET("/v1/datasets/{dataset}/public-key", { params, parseAs: "arrayBuffer" });
    const bytes = new Uint8Array(await answered<ArrayBuffer>(key as never));
    if (hexadecimal(await sha256(bytes)) !== set.public_key) {
      throw new Error("the public key differs from the one that the crypto service announced");
    }
    return bytes;
  }

  /** Encrypts and sends every object. Returns their digests. */
  private async send(dataset: string, holder: Holder, { objects }: Planned, tell?: (progress: Progress) => void) {
    const digests = new Map<string, Uint8Array>();
    let next = 0;
    const lane = async () => {
      for (;;) {
        const object = objects[next++];
        if (object === undefined) return;
        const { bytes, digest } = await holder.encrypt(object);
        await answered(this.session.computation.PUT("/v1/datasets/{dataset}/contributions/{contribution}/objects/{object}", {
          params: { path: { dataset, contribution: 0, object }, header: { "Content-Digest": contentDigest(digest) } },
          body: bytes as never,
          bodySerializer: (body) => body as never,
          headers: { "content-type": "application/octet-stream" },
        }));
        digests.set(object, digest);
        tell?.({ done: digests.size, objects: objects.length });
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, lane));
    return digests;
  }

  /** Has an upload sealed by all services. Each call to the second one copies objects from the first for a while. */
  private async seal({ id, terms }: Dataset, manifest: string): Promise<void> {
    const complete = (service: "computation" | "witness"): Promise<Upload> =>
      answered(this.session[service].POST("/v1/datasets/{dataset}/contributions/{contribution}/complete", {
        params: { path: { dataset: id, contribution: 0 } }, body: { manifest },
      }));
    await complete("computation");
    while (terms.witness) {
      const { contributions } = await complete("witness");
      if (contributions.some(({ number, state }) => number === 0 && state === "complete")) return;
    }
  }

  /** Returns the end of a dataset's ledger, after checking it against what was seen of the ledger before. */
  private async receipt(dataset: string): Promise<Receipt> {
    const shown = this.receipts.get(dataset);
    const headers = shown ? { "fhaim-receipt": base64url(JSON.stringify(shown)) } : {};
    const told: Receipt = await answered(
      this.session.crypto.GET("/v1/datasets/{dataset}/receipt", { params: { path: { dataset } }, headers }),
    );
    if (shown && (told.height < shown.height || (told.height === shown.height && told.head !== shown.head))) {
      throw new Error("the crypto service was set back to an older copy of this dataset's ledger: tell its operator");
    }
    this.keep(told);
    return told;
  }

  private keep(receipt: Receipt): void {
    const known = this.receipts.get(receipt.dataset);
    if (!known || known.height < receipt.height) this.receipts.set(receipt.dataset, receipt);
  }
}

function termsOf(options: UploadOptions, record_bound: number): Terms {
  const { schema, epsilon, delta = 1e-9, runs = 1, mechanism = "staged", contribution = "records", witness } = options;
  return {
    version: 1, schema: schema as never, epsilon, delta, runs, mechanism, contribution, record_bound,
    model_bytes: 64_000_000, target_weight: 1, ...(witness ? { witness } : {}),
  };
}

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

function hexadecimal(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function contentDigest(digest: Uint8Array): string {
  return `sha-256=:${btoa(String.fromCharCode(...digest))}:`;
}

/** Returns the digest of the manifest: every object with its digest, in order of the names. */
async function manifest(digests: Map<string, Uint8Array>): Promise<string> {
  const entries = [...digests].sort(([one], [other]) => (one < other ? -1 : 1));
  const lines = entries.map(([object, digest]) => `${object} ${hexadecimal(digest)}\n`);
  return hexadecimal(await sha256(new TextEncoder().encode(lines.join(""))));
}

function base64url(text: string): string {
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=*$/, "");
}
