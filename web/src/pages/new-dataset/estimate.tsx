// What encryption and upload will take, before anything is encrypted.
import { useEffect, useState, type ReactNode } from "react";
import type { Terms } from "../../api/types";
import type { Mechanism, Planned, Schema } from "../../crypto/messages";
import { HolderSession, useSession } from "../../crypto/session";
import { tableBytes, workersFor } from "../../crypto/upload";
import { bytes, count, Facts, Notice, seconds } from "../../parts/ui";

/** Seconds in which one worker encrypts and sends an object (docs/BENCHMARKS.md). */
const OBJECT_SECONDS = 0.03;
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

export function figures(plan: Planned, records: number, columns: number): [string, ReactNode][] {
  const workers = workersFor(records, columns);
  return [
    ["Ciphertexts", count(plan.objects.length)],
    ["Upload", bytes(plan.objects.length * plan.object_bytes)],
    ["Encryption takes about", seconds((plan.objects.length * OBJECT_SECONDS) / workers)],
    ["Memory for the table", bytes(tableBytes(records, columns) * workers)],
  ];
}

/** A word of warning where an upload is large. */
export function LargeUpload({ plan }: { plan: Planned }) {
  if (plan.objects.length * plan.object_bytes <= LARGE_BYTES) return null;
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
  if (!offer) return null;
  return (
    <>
      <Facts items={figures(offer.plan, records, schema.columns.length)} />
      <LargeUpload plan={offer.plan} />
    </>
  );
}
