// Links that show a result to other accounts: creates, lists and revokes them.
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
      <h2>Share with another account</h2>
      <p>
        Anyone who opens the link, signed in to any account, sees the preview, the download and a data card, but no
        comparison with the real records and nothing else of the dataset. It expires automatically, and you can
        revoke it at any time.
      </p>
      <NewLink path={path} onMade={(link) => { setMade(link); reload(); }} />
      {made && (
        <Notice tone="good">
          <p>This is the only time that the link for “{made.link.name}” is shown. Send it like a password.</p>
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

/** Returns the link's address. Browsers do not send the part after the # to a server. */
function addressOf({ link, secret }: LinkMade): string {
  return `${location.origin}/shared/${link.id}#${secret}`;
}

/** How long a link is valid: days in the request, and words. 0 means until it is revoked. */
const TERMS: [days: number, words: string][] = [[7, "a week"], [30, "30 days"], [90, "90 days"], [365, "a year"], [0, "until it is revoked"]];

function NewLink({ path, onMade }: { path: string; onMade: (made: LinkMade) => void }) {
  const [name, setName] = useState("");
  const [days, setDays] = useState(90);
  const { busy, error, run } = useWork();
  // One identifier per name and validity: a retry after a lost answer returns the same link instead of a second one.
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
      <Field label="Who is it for?" hint="Only the dataset’s holders see it.">
        {(id, hint) => (
          <input id={id} aria-describedby={hint} required maxLength={100} value={name} onChange={(event) => setName(event.target.value)} />
        )}
      </Field>
      <Field label="How long is it valid?">
        {(id) => (
          <select id={id} value={days} onChange={(event) => setDays(Number(event.target.value))}>
            {TERMS.map(([days, words]) => <option key={days} value={days}>{words}</option>)}
          </select>
        )}
      </Field>
      <Trouble error={error} />
      <button disabled={busy}>Create a link</button>
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
      <thead><tr><th>For</th><th>Created</th><th>Last opened</th><th>Valid until</th><th>Revoke</th></tr></thead>
      <tbody>
        {links.map(({ id, name, created_at, last_opened_at, expires_at }) => (
          <tr key={id}>
            <td>{name}</td>
            <td data-label="Created"><When at={created_at} /></td>
            <td data-label="Last opened">{last_opened_at ? <When at={last_opened_at} /> : "never"}</td>
            <td data-label="Valid until">{expires_at ? <When at={expires_at} /> : "revoked"}</td>
            <td>
              <Confirmed label="Revoke" title={`Revoke the link for “${name}”?`} action={revoke(id)}>
                <p>It no longer opens. Tables that were already downloaded are not affected.</p>
              </Confirmed>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
