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

/** What terms come to, worked out again whenever `key` changes. */
export function usePlan(terms: Terms, records: number, key: string) {
  const session = useSession();
  const [state, setState] = useState<{ plan?: Planned; error?: unknown }>({});
  useEffect(() => {
    if (!session) return;
    let current = true;
    const timer = setTimeout(() => {
      session.plan(terms, records).then(
        (plan) => current && setState({ plan }),
        (error: unknown) => current && setState({ error }),
      );
    }, PAUSE_MS);
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
    model_bytes: 64 << 20,
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
  const { plan } = usePlan(usualTerms(schema, bound), records, JSON.stringify(schema.columns));
  if (!plan) return null;
  return (
    <>
      <Facts items={figures(plan, records, schema.columns.length)} />
      <LargeUpload plan={plan} />
    </>
  );
}
