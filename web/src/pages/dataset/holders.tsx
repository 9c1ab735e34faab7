// A dataset of several holders: which of them have signed and uploaded.
import { useEffect } from "react";
import { call, isMissing } from "../../api/client";
import { keySet, withdraw } from "../../api/keys";
import { contributionsOf, isComplete, partOf } from "../../api/parts";
import type { Contribution, Dataset, HolderStanding, KeySet, Member } from "../../api/types";
import { hexadecimal } from "../../crypto/journal";
import { Confirmed, count, counted, type Loaded, Notice, Trouble, useLoad } from "../../components/ui";

/** Seconds between two requests for the progress of the holders. */
const EVERY_SECONDS = 4;

/** Progress of all holders. */
export interface Standing {
  /** Number of this account's holder. */
  part: number;
  /** The crypto service's set of keys; undefined before the keys are created. */
  set: KeySet | undefined;
  parts: Contribution[];
  /** Reason in words why no job can begin, now or ever again; empty if one can. */
  missing: string;
}

async function load(dataset: Dataset): Promise<Standing> {
  const [part, parts, set] = await Promise.all([
    partOf(dataset),
    contributionsOf(dataset.id),
    keySet(dataset.id).catch((error: unknown) => {
      if (isMissing(error)) return undefined;
      throw error;
    }),
  ]);
  return { part, parts, set, missing: missing(dataset, set, parts) };
}

/** Returns the addresses of these holders, separated by commas. */
function named(dataset: Dataset, numbers: number[]): string {
  return numbers.map((number) => dataset.holders?.[number] ?? `holder ${number + 1}`).join(", ");
}

function missing(dataset: Dataset, set: KeySet | undefined, parts: Contribution[]): string {
  const members = dataset.terms.roster?.holders ?? [];
  const numbers = (isIt: (standing: HolderStanding | undefined, number: number) => boolean) =>
    members.flatMap((_, number) => (isIt(set?.holders?.[number], number) ? [number] : []));
  const gone = numbers((standing) => standing?.withdrawn === true);
  if (gone.length > 0) return `${named(dataset, gone)} withdrew: no further job can begin. Released results stay.`;
  const unsigned = numbers((standing) => standing?.signed !== true);
  const absent = numbers((_, number) => !parts.some((part) => part.number === number && isComplete(part)));
  const words = [
    ...(unsigned.length > 0 ? [`the signature of ${named(dataset, unsigned)}`] : []),
    ...(absent.length > 0 ? [`the records of ${named(dataset, absent)}`] : []),
  ];
  return words.length === 0 ? "" : `No job can begin yet. Missing: ${words.join("; ")}.`;
}

/** Loads the progress of all holders, repeatedly until none is missing. Calls `reload` once the dataset is ready. */
export function useStanding(dataset: Dataset, reload: () => void): Loaded<Standing | undefined> {
  const isShared = dataset.terms.roster != null;
  const standing = useLoad(async () => (isShared ? load(dataset) : undefined), `${dataset.id} ${dataset.state}`);
  const { value, reload: again } = standing;
  const isOpen = isShared && value?.missing !== "";
  useEffect(() => {
    if (!isOpen) return;
    const timer = setInterval(again, EVERY_SECONDS * 1000);
    return () => clearInterval(timer);
  }, [isOpen, again]);
  const isThere = value !== undefined && value.parts.filter(isComplete).length === dataset.terms.roster?.holders.length;
  useEffect(() => {
    if (!isShared || dataset.state !== "uploading" || !isThere) return;
    // The last uploader normally reports this, but its page may have been closed first.
    call("generation", "POST", `/v1/datasets/${dataset.id}/ready`).then(reload, () => undefined);
  }, [isShared, isThere, dataset.id, dataset.state, reload]);
  return standing;
}

interface Props {
  dataset: Dataset;
  standing: Loaded<Standing | undefined>;
}

export function Holders({ dataset, standing: { value, error, reload } }: Props) {
  const { roster } = dataset.terms;
  if (!roster) return null;
  const own = value?.set?.holders?.[value.part];
  const isUploaded = value?.parts.some((part) => part.number === value.part && isComplete(part));
  return (
    <section className="card">
      <div className="row ends">
        <h2>Holders</h2>
        {value && own?.withdrawn === false && <Withdraw dataset={dataset} part={value.part} reload={reload} />}
      </div>
      <p>{trust(roster.holders.length, roster.honest)}</p>
      <Trouble error={error} retry={reload} />
      <List dataset={dataset} members={roster.holders} standing={value} />
      {value?.missing && <p role="status">{value.missing}</p>}
      {value && !own?.withdrawn && !(own?.signed && isUploaded) && (
        <Notice>
          <p>
            This page uploads datasets of one holder only. Sign the terms of this one with <code>fhaim dataset sign</code>,
            and upload your part with <code>fhaim dataset upload</code>.
          </p>
        </Notice>
      )}
    </section>
  );
}

/** Explains in words which holders' noise the guarantee relies on. */
function trust(holders: number, honest: number): string {
  if (honest === 1) return "Every holder adds enough noise for all, so no holder has to trust another, and the tables are noisier.";
  if (honest >= holders) {
    return `The noise of all ${holders} holders is needed: this protects against services and readers, but not against other holders, who can subtract their own noise.`;
  }
  return `The privacy guarantee relies on the noise of any ${honest} of the ${holders} holders.`;
}

/** Returns a key's fingerprint, which people compare by telephone: eight groups of four hexadecimal digits. */
async function fingerprint(key: string): Promise<string> {
  const bytes = Uint8Array.from(key.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  const digest = hexadecimal(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
  return (digest.slice(0, 32).match(/..../g) ?? []).join("-");
}

function Fingerprint({ of: key }: { of: string }) {
  const { value } = useLoad(() => fingerprint(key), key);
  return <code>{value ?? "…"}</code>;
}

function List({ dataset, members, standing }: { dataset: Dataset; members: Member[]; standing: Standing | undefined }) {
  return (
    <table className="stack">
      <thead><tr><th>Holder</th><th>Maximum records</th><th>Fingerprint of its key</th><th>Terms</th><th>Records</th></tr></thead>
      <tbody>
        {members.map((member, number) => (
          <tr key={member.key}>
            <td>{dataset.holders?.[number]}{standing?.part === number && " (you)"}</td>
            <td data-label="Maximum records">{count(member.record_bound)}</td>
            <td data-label="Fingerprint of its key"><Fingerprint of={member.key} /></td>
            <td data-label="Terms"><Consent standing={standing?.set?.holders?.[number]} /></td>
            <td data-label="Records"><Uploaded part={standing?.parts.find((part) => part.number === number)} /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Consent({ standing }: { standing: HolderStanding | undefined }) {
  if (standing?.withdrawn) return <span className="tag bad">withdrew</span>;
  return standing?.signed ? <span className="tag good">signed</span> : <span className="tag">not signed</span>;
}

function Uploaded({ part }: { part: Contribution | undefined }) {
  if (!part) return <span className="tag">not uploaded</span>;
  if (isComplete(part)) return <span className="tag good">uploaded</span>;
  return <span className="tag busy">{count(part.objects_present)} of {counted(part.objects, "object")}</span>;
}

function Withdraw({ dataset, part, reload }: { dataset: Dataset; part: number; reload: () => void }) {
  return (
    <Confirmed label="Withdraw" title={`Withdraw from “${dataset.name}”?`} dismiss="Stay"
      action={async () => { await withdraw(dataset, part); reload(); }}>
      <p>
        This permanently prevents further jobs of this dataset, for all holders. If no job has begun, your encrypted
        records are deleted too. Released results cannot be taken back.
      </p>
    </Confirmed>
  );
}
