import { useMemo, useState, type FormEvent } from "react";
import { call, json, list } from "../api/client";
import { newId } from "../api/ids";
import type { ApiKey, ApiKeyMade } from "../api/types";
import { Confirmed, Copyable, Field, Loading, Notice, Trouble, useLoad, useTitle, useWork, When } from "../components/ui";

const PATH = "/v1/api-keys";

export default function ApiKeys() {
  useTitle("API keys");
  const { value, error, reload } = useLoad(() => list<ApiKey>("generation", PATH), "");
  const [made, setMade] = useState<ApiKeyMade>();
  return (
    <main id="content">
      <h1>API keys</h1>
      <p>For programs and the command line, in place of your password. A key can do everything that you can do.</p>
      <NewKey onMade={(key) => { setMade(key); reload(); }} />
      {made && (
        <Notice tone="good">
          <p>This is the only time that the key “{made.key.name}” is shown. Keep it where only the program can read it.</p>
          <Copyable text={made.text} />
        </Notice>
      )}
      <Trouble error={error} retry={reload} />
      {!value && error === undefined && <Loading />}
      {value?.length === 0 && <p className="quiet">You have no keys yet.</p>}
      {value && value.length > 0 && <Table keys={value} reload={reload} />}
    </main>
  );
}

function NewKey({ onMade }: { onMade: (key: ApiKeyMade) => void }) {
  const [name, setName] = useState("");
  const { busy, error, run } = useWork();
  // One identifier per name: a retry after a lost answer returns the same key instead of a second
  // one.
  const id = useMemo(newId, [name]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void run(async () => {
      onMade(await json<ApiKeyMade>("generation", "PUT", `${PATH}/${id}`, { json: { name } }));
      setName("");
    });
  };
  return (
    <form className="card" onSubmit={submit}>
      <Field label="What is the key for?">
        {(id) => (
          <input id={id} required maxLength={100} value={name} onChange={(event) => setName(event.target.value)} />
        )}
      </Field>
      <Trouble error={error} />
      <button className="main" disabled={busy}>Create a key</button>
    </form>
  );
}

function Table({ keys, reload }: { keys: ApiKey[]; reload: () => void }) {
  const remove = (key: ApiKey) => async () => {
    await call("generation", "DELETE", `${PATH}/${key.id}`);
    reload();
  };
  return (
    <div className="card">
      <table className="stack">
        <thead><tr><th>For</th><th>Created</th><th>Last used</th><th>Delete</th></tr></thead>
        <tbody>
          {keys.map((key) => (
            <tr key={key.id}>
              <td>{key.name}</td>
              <td data-label="Created"><When at={key.created_at} /></td>
              <td data-label="Last used">{key.last_used_at ? <When at={key.last_used_at} /> : "never"}</td>
              <td>
                <Confirmed label="Delete" title={`Delete the key “${key.name}”?`} action={remove(key)}>
                  <p>Programs that use it are rejected from now on.</p>
                </Confirmed>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
