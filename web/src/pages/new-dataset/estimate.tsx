// Estimates encryption and upload, before anything is encrypted.
import { useEffect, useState, type ReactNode } from "react";
import type { Terms } from "../../api/types";
import type { Mechanism, Planned, Schema } from "../../crypto/messages";
import { objectSeconds, paceName, sendingSeconds } from "../../crypto/pace";
import { HolderSession, useSession } from "../../crypto/session";
import { tableBytes, workersFor } from "../../crypto/upload";
import { bytes, count, Facts, Notice, seconds } from "../../components/ui";

/** Size above which an upload should use the command line. */
const LARGE_BYTES = 4e9;
/** Delay between the last change and the estimate. */
const PAUSE_MS = 300;

/** The cost of new terms, and the terms with all defaults written out. */
export interface Offer {
  plan: Planned;
  terms: Terms;
}

/** Plans new terms, again whenever `key` changes. Returns nothing without terms. */
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
    // The previous offer was for other terms.
    setState({});
    return () => {
      current = false;
      clearTimeout(timer);
    };
    // Each render makes a new object of terms, so `key` tells whether they changed.
  }, [session, key, records]);
  return state;
}

/** Measures the seconds that this number of workers needs to encrypt an object of a plan; undefined until measured. */
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
    // Each render has a new plan, so the name tells whether another pace is needed.
  }, [name]);
  return state.name === name ? state.seconds : undefined;
}

/** Returns the mechanisms that terms may name, the default first; empty until they are loaded. */
export function useMechanisms(): Mechanism[] {
  const [mechanisms, setMechanisms] = useState<Mechanism[]>([]);
  useEffect(() => {
    // A worker for this single request. If it fails, terms with the default mechanism are still
    // valid.
    const session = new HolderSession();
    session.mechanisms().then(setMechanisms, () => undefined).finally(() => session.end());
    return () => session.end();
  }, []);
  return mechanisms;
}

/** Returns the default terms for a schema. Choices in later steps change the cost little. */
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
  // The pace of the connection and the services is unknown before the first upload.
  const times: [string, ReactNode][] = sending === undefined
    ? [["Encryption takes about", told(encryption)], ["Sending takes in addition", "unknown before the first upload"]]
    : [["Encryption and sending take about", told(encryption === undefined ? undefined : encryption + plan.bytes * sending)]];
  return [
    ["Ciphertexts", count(plan.objects.length)],
    ["Upload", bytes(plan.bytes)],
    ...times,
    ["Memory for the table", bytes(tableBytes(records, columns) * workers)],
  ];
}

/** Warns about a large upload. */
export function LargeUpload({ plan }: { plan: Planned }) {
  if (plan.bytes <= LARGE_BYTES) return null;
  return (
    <Notice tone="warn">
      <p>
        This is a large upload for a browser: the tab must stay open until it is done. Fewer columns or
        bins make it smaller. The command line uses all cores and needs no attention.
      </p>
    </Notice>
  );
}

/** Live estimate for a draft of a schema. */
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
