// Whether others hold records of the same table: their cards, and on whose noise to rely.
import { useState } from "react";
import type { Member } from "../../api/types";
import { fingerprint } from "../../crypto/holder-key";
import { Copyable, count, counted, Field, Trouble, useLoad, useWork } from "../../parts/ui";
import type { Choice } from "./choice";

interface Props {
  choice: Choice;
  own: Member | undefined;
  onChange: (change: Partial<Choice>) => void;
}

/** A card as the page of another holder, or `fhaim dataset join`, shows it. */
function card(text: string, known: Member[]): Member {
  let read: Partial<Member>;
  try {
    read = JSON.parse(text) as Partial<Member>;
  } catch {
    throw new Error("That is not a card: paste all of it, from { to }.");
  }
  const { account = "", record_bound = 0, key = "", columns = [] } = read;
  if (!/^[0-9a-f-]{36}$/.test(account) || !/^[0-9a-f]{64}$/.test(key) || !Number.isSafeInteger(record_bound) || record_bound < 1) {
    throw new Error("That is not a holder’s card: it has an account, a record_bound and a key.");
  }
  if (columns.length > 0) throw new Error("That is the card of a holder of columns: the command line makes datasets of those.");
  if (known.some((other) => other.account === account || other.key === key)) throw new Error("That holder is here already.");
  return { account, record_bound, key };
}

export function Holders({ choice: { others, honest }, own, onChange }: Props) {
  return (
    <details className="card" open={others.length > 0}>
      <summary>Other holders, who have records of the same table</summary>
      <p>
        Each holder encrypts its own records in its own browser and shows them to nobody. Send the others this
        address; each opens it, signs in, and sends you the card that it shows:
      </p>
      <Copyable text={`${window.location.origin}/join`} />
      <AddCard known={[...(own ? [own] : []), ...others]} onAdd={(member) => onChange({ others: [...others, member] })} />
      {others.length > 0 && (
        <>
          <List members={[...(own ? [own] : []), ...others]} isOwn={(member) => member === own}
            onRemove={(member) => onChange({ others: others.filter((other) => other !== member) })} />
          <Honest holders={others.length + 1} honest={honest} onChange={(honest) => onChange({ honest })} />
        </>
      )}
    </details>
  );
}

function AddCard({ known, onAdd }: { known: Member[]; onAdd: (member: Member) => void }) {
  const [text, setText] = useState("");
  const { error, run } = useWork();
  const add = () => run(async () => {
    onAdd(card(text, known));
    setText("");
  });
  return (
    <>
      <Field label="The card of another holder">
        {(id) => <textarea id={id} rows={3} value={text} onChange={(event) => setText(event.target.value)} />}
      </Field>
      <Trouble error={error} />
      <button type="button" disabled={text.trim() === ""} onClick={() => void add()}>Add this holder</button>
    </>
  );
}

interface ListProps {
  members: Member[];
  isOwn: (member: Member) => boolean;
  onRemove: (member: Member) => void;
}

function List({ members, isOwn, onRemove }: ListProps) {
  return (
    <table className="stack">
      <thead><tr><th>Holder</th><th>Records, at most</th><th>Fingerprint of its key</th><th>Remove</th></tr></thead>
      <tbody>
        {members.map((member, index) => (
          <tr key={member.key}>
            <td>{isOwn(member) ? "you" : `holder ${index + 1}`}</td>
            <td data-label="Records, at most">{count(member.record_bound)}</td>
            <td data-label="Fingerprint of its key"><Fingerprint of={member.key} /></td>
            <td>{!isOwn(member) && <button type="button" className="plain" onClick={() => onRemove(member)}>remove</button>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** What people compare of a key, by telephone: whoever issues accounts could else sign for them. */
export function Fingerprint({ of: key }: { of: string }) {
  const { value } = useLoad(() => fingerprint(key), key);
  return <code>{value ?? "…"}</code>;
}

function Honest({ holders, honest, onChange }: { holders: number; honest: number; onChange: (honest: number) => void }) {
  return (
    <Field label="On whose noise to rely" hint={trust(holders, honest)}>
      {(id, hint) => (
        <select id={id} aria-describedby={hint} value={Math.min(honest, holders)} onChange={(event) => onChange(Number(event.target.value))}>
          {Array.from({ length: holders }, (_, index) => index + 1).map((number) => (
            <option key={number} value={number}>{number === 1 ? "nobody’s but one’s own" : `that of ${number} of ${counted(holders, "holder")}`}</option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** What relying on so many holders' noise means, in words. */
export function trust(holders: number, honest: number): string {
  if (honest === 1) return "Every holder adds noise enough for all: nobody need trust another’s, and the tables are noisier.";
  if (honest >= holders) {
    return `All ${holders} holders’ noise is relied upon: this protects against services and readers, and not against other holders, who can subtract their own.`;
  }
  return `The noise of ${honest} of ${holders} holders is relied upon, whichever they are.`;
}
