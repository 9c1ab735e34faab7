// Links by which other accounts see a result: made, listed, revoked.
import { useMemo, useState, type FormEvent } from "react";
import { call, json, list } from "../../api/client";
import { newId } from "../../api/ids";
import type { LinkEntry, LinkMade } from "../../api/types";
import { Confirmed, Copyable, Field, Loading, Notice, Trouble, useLoad, useWork, When } from "../../components/ui";

export function Links({ job }: { job: string }) {
  const path = `/v1/jobs/${job}/links`;
  const { value, error, reload } = useLoad(() => list<LinkEntry>("generation", path), path);
  const [made, setMade] = useState<LinkMade>();
  return (
    <section className="card">
      <h2>Give another account a link</h2>
      <p>
        Whoever opens it, signed in to an account of their own, sees the preview, the download and a data card: no
        report against the real records, and nothing else of the dataset. It ends by itself, and you can revoke it
        at any time.
      </p>
      <NewLink path={path} onMade={(link) => { setMade(link); reload(); }} />
      {made && (
        <Notice tone="good">
          <p>This is the only time that the link for “{made.link.name}” is shown. Send it as you would a password.</p>
          <Copyable text={addressOf(made)} />
        </Notice>
      )}
      <Trouble error={error} retry={reload} />
      {!value && error === undefined && <Loading />}
      {value && value.length > 0 && (
        <Table path={path} links={value} onRevoked={(id) => { setMade((last) => (last?.link.id === id ? undefined : last)); reload(); }} />
      )}
    </section>
  );
}

/** What is behind the # stays in the browser that opens it: no server is sent it as part of an address. */
function addressOf({ link, secret }: LinkMade): string {
  return `${location.origin}/shared/${link.id}#${secret}`;
}

/** How long a link is good, by the days that the service is asked for; 0: until it is revoked. */
const TERMS: [days: number, words: string][] = [[7, "a week"], [30, "30 days"], [90, "90 days"], [365, "a year"], [0, "until it is revoked"]];

function NewLink({ path, onMade }: { path: string; onMade: (made: LinkMade) => void }) {
  const [name, setName] = useState("");
  const [days, setDays] = useState(90);
  const { busy, error, run } = useWork();
  // Of the link that this name and time are for: made again after a lost answer, it is the same link.
  const id = useMemo(newId, [name, days]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void run(async () => {
      onMade(await json<LinkMade>("generation", "PUT", `${path}/${id}`, { json: { name, ...(days > 0 && { days }) } }));
      setName("");
    });
  };
  return (
    <form onSubmit={submit}>
      <Field label="Whom is it for?" hint="Only the dataset’s holders see it.">
        {(id, hint) => (
          <input id={id} aria-describedby={hint} required maxLength={100} value={name} onChange={(event) => setName(event.target.value)} />
        )}
      </Field>
      <Field label="How long is it good?">
        {(id) => (
          <select id={id} value={days} onChange={(event) => setDays(Number(event.target.value))}>
            {TERMS.map(([days, words]) => <option key={days} value={days}>{words}</option>)}
          </select>
        )}
      </Field>
      <Trouble error={error} />
      <button disabled={busy}>Make a link</button>
    </form>
  );
}

function Table({ path, links, onRevoked }: { path: string; links: LinkEntry[]; onRevoked: (id: string) => void }) {
  const revoke = (id: string) => async () => {
    await call("generation", "DELETE", `${path}/${id}`);
    onRevoked(id);
  };
  return (
    <table className="stack links">
      <thead><tr><th>For</th><th>Made</th><th>Last opened</th><th>Good until</th><th>Revoke</th></tr></thead>
      <tbody>
        {links.map(({ id, name, created_at, last_opened_at, expires_at }) => (
          <tr key={id}>
            <td>{name}</td>
            <td data-label="Made"><When at={created_at} /></td>
            <td data-label="Last opened">{last_opened_at ? <When at={last_opened_at} /> : "never"}</td>
            <td data-label="Good until">{expires_at ? <When at={expires_at} /> : "revoked"}</td>
            <td>
              <Confirmed label="Revoke" title={`Revoke the link for “${name}”?`} action={revoke(id)}>
                <p>It opens nothing from now on. Tables that were downloaded by it stay where they are.</p>
              </Confirmed>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
