// What encryption and upload will take, before anything is encrypted.
import { useEffect, useState, type ReactNode } from "react";
import type { Terms } from "../../api/types";
import type { Mechanism, Planned, Schema } from "../../crypto/messages";
import { objectSeconds, paceName, sendingSeconds } from "../../crypto/pace";
import { HolderSession, useSession } from "../../crypto/session";
import { tableBytes, workersFor } from "../../crypto/upload";
import { bytes, count, Facts, Notice, seconds } from "../../components/ui";

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
      return { terms: named, plan: await session.plan(named, records) };
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

/** How long an object of a plan takes to be encrypted by so many workers, once a moment of it was measured. */
export function useObjectSeconds(plan: Planned | undefined, workers: number): number | undefined {
  const [state, setState] = useState<{ name?: string; seconds?: number }>({});
  const name = plan && paceName(plan.parameter_set, workers);
  useEffect(() => {
    if (plan === undefined || name === undefined) return;
    let current = true;
    objectSeconds(plan.parameter_set, workers).then(
      (seconds) => current && setState({ name, seconds }),
      () => undefined,
    );
    return () => {
      current = false;
    };
    // Plans are made afresh; the name says whether another pace is wanted.
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
  const encryption = object === undefined ? undefined : plan.objects.length * object;
  const sending = sendingSeconds();
  const told = (all: number | undefined) => (all === undefined ? "…" : seconds(all));
  // Before the first upload nobody knows what the connection and the services take.
  const times: [string, ReactNode][] = sending === undefined
    ? [["Encryption takes about", told(encryption)], ["Sending takes beside that", "not known before a first upload"]]
    : [["Encryption and sending take about", told(encryption === undefined ? undefined : encryption + plan.bytes * sending)]];
  return [
    ["Ciphertexts", count(plan.objects.length)],
    ["Upload", bytes(plan.bytes)],
    ...times,
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
