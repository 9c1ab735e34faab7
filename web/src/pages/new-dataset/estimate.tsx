// What encryption and upload will take, before anything is encrypted.
import { useEffect, useState, type ReactNode } from "react";
import type { Terms } from "../../api/types";
import type { Mechanism, Planned, Schema } from "../../crypto/messages";
import { HolderSession, useSession } from "../../crypto/session";
import { tableBytes, workersFor } from "../../crypto/upload";
import { bytes, count, Facts, Notice, seconds } from "../../parts/ui";

/** Objects that each worker is timed at. */
const REHEARSED = 8;
/** What an object takes to be encrypted and sent, over what it takes to be encrypted (docs/BENCHMARKS.md). */
const SENDING = 1.6;
/** Uploads larger than this are better made with the command line. */
const LARGE_BYTES = 4e9;
/** Waits so long after the last change. */
const PAUSE_MS = 300;

/** What new terms come to, and how they are written once all is named that is left to the program. */
export interface Offer {
  plan: Planned;
  terms: Terms;
}

/** What new terms come to, worked out again whenever `key` changes; nothing without terms. */
export function useOffer(terms: Terms | undefined, records: number, key: string) {
  const session = useSession();
  const [state, setState] = useState<{ offer?: Offer; error?: unknown }>({});
  useEffect(() => {
    if (!session || !terms) return;
    let current = true;
    const work = async () => {
      const named = await session.named(terms);
      return { terms: named, plan: await session.plan(named, 0, records) };
    };
    const timer = setTimeout(() => {
      work().then(
        (offer) => current && setState({ offer }),
        (error: unknown) => current && setState({ error }),
      );
    }, PAUSE_MS);
    // What was offered before is of other terms.
    setState({});
    return () => {
      current = false;
      clearTimeout(timer);
    };
    // Terms are made afresh with every render; the key says whether they changed.
  }, [session, key, records]);
  return state;
}

/** What an object takes to be encrypted depends on. */
type Kind = Pick<Planned, "parameter_set" | "encryption">;

/** Seconds in which the workers of an upload encrypt an object, by its kind and how many they are. */
const timed = new Map<string, Promise<number>>();

async function time({ parameter_set, encryption }: Kind, workers: number): Promise<number> {
  // Workers of their own: others wait for what they asked meanwhile. As many as upload, since two on one core are no
  // faster than one.
  const sessions = Array.from({ length: workers }, () => new HolderSession());
  const all = async (objects: number) => {
    const done = await Promise.all(sessions.map((session) => session.rehearse(parameter_set, encryption, objects)));
    return done.reduce((sum, one) => sum + one, 0);
  };
  try {
    // The first makes the key.
    await all(1);
    const start = performance.now();
    const objects = await all(REHEARSED);
    return (performance.now() - start) / 1000 / objects;
  } finally {
    for (const session of sessions) session.end();
  }
}

/** How long an object of a plan takes to be encrypted by so many workers, once a moment of it was measured. */
export function useObjectSeconds(plan: Kind | undefined, workers: number): number | undefined {
  const [state, setState] = useState<{ name?: string; seconds?: number }>({});
  const name = plan && `${plan.parameter_set} ${plan.encryption} ${workers}`;
  useEffect(() => {
    if (plan === undefined || name === undefined) return;
    let current = true;
    const measured = timed.get(name) ?? time(plan, workers);
    timed.set(name, measured);
    measured.then(
      (seconds) => current && setState({ name, seconds }),
      // It is measured again when it is next asked for.
      () => timed.delete(name),
    );
    return () => {
      current = false;
    };
    // Plans are made afresh; the name says whether they are of another kind.
  }, [name]);
  return state.name === name ? state.seconds : undefined;
}

/** The mechanisms that terms may name, the default first: none until they are known. */
export function useMechanisms(): Mechanism[] {
  const [mechanisms, setMechanisms] = useState<Mechanism[]>([]);
  useEffect(() => {
    // A worker for one answer: whatever keeps it away, terms with the default mechanism stand.
    const session = new HolderSession();
    session.mechanisms().then(setMechanisms, () => undefined).finally(() => session.end());
    return () => session.end();
  }, []);
  return mechanisms;
}

/** The usual terms for a schema: what later steps choose changes them little. */
export function usualTerms(schema: Schema, record_bound: number): Terms {
  return {
    schema,
    epsilon: 1,
    delta: 1e-9,
    mechanism: "staged",
    record_bound,
    runs: 1,
    model_bytes: 64_000_000,
    target_weight: 1,
  };
}

export function figures(plan: Planned, records: number, columns: number, object: number | undefined): [string, ReactNode][] {
  const workers = workersFor(records, columns);
  const encryption = object === undefined ? "…" : seconds(plan.objects.length * object * SENDING);
  return [
    ["Ciphertexts", count(plan.objects.length)],
    ["Upload", bytes(plan.bytes)],
    ["Encryption takes about", encryption],
    ["Memory for the table", bytes(tableBytes(records, columns) * workers)],
  ];
}

/** A word of warning where an upload is large. */
export function LargeUpload({ plan }: { plan: Planned }) {
  if (plan.bytes <= LARGE_BYTES) return null;
  return (
    <Notice tone="warn">
      <p>
        That is much for a browser: the tab must stay open all the while. Fewer columns or bins make it
        smaller; the command line uses all cores and can be left alone.
      </p>
    </Notice>
  );
}

/** For a draft of a schema, live. */
export function Estimate({ schema, records }: { schema: Schema; records: number }) {
  const bound = 2 ** Math.ceil(Math.log2(Math.max(64, records)));
  const { offer } = useOffer(usualTerms(schema, bound), records, JSON.stringify(schema.columns));
  const workers = workersFor(records, schema.columns.length);
  const object = useObjectSeconds(offer?.plan, workers);
  if (!offer) return null;
  return (
    <>
      <Facts items={figures(offer.plan, records, schema.columns.length, object)} />
      <LargeUpload plan={offer.plan} />
    </>
  );
}
