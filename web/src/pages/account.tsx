// The account that is signed in: its password and sessions, what it uses, and its end.
import { useState, type FormEvent } from "react";
import { changePassword, get, signOutEverywhere, type Service } from "../api/client";
import { closeAccount } from "../api/deletion";
import type { Account, Usage } from "../api/types";
import { bytes, Confirmed, count, Field, Loading, Notice, Trouble, useLoad, useTitle, useWork, When } from "../components/ui";
import { MIN_PASSWORD } from "./sign-in";

const SERVICES: { service: Service; name: string }[] = [
  { service: "generation", name: "Generation (GE)" },
  { service: "computation", name: "Computation (CE)" },
  { service: "crypto", name: "Keys (CSE)" },
];

export default function AccountPage() {
  useTitle("Account");
  const { value, error, reload } = useLoad(() => get<Account>("generation", "/v1/account"), "");
  return (
    <main id="content">
      <h1>Account</h1>
      <Trouble error={error} retry={reload} />
      {!value && error === undefined && <Loading />}
      {value && <p>{value.email}, made <When at={value.created_at} /></p>}
      <div className="grid two">
        <Password />
        <div className="column">
          <Sessions />
          <Close email={value?.email ?? ""} />
        </div>
      </div>
      <Limits />
    </main>
  );
}

interface SecretProps {
  label: string;
  value: string;
  isNew?: boolean;
  onChange: (value: string) => void;
}

function Secret({ label, value, isNew = false, onChange }: SecretProps) {
  return (
    <Field label={label} hint={isNew ? `At least ${MIN_PASSWORD} characters.` : undefined}>
      {(id, hint) => (
        <input id={id} type="password" required minLength={isNew ? MIN_PASSWORD : 1} value={value}
          aria-describedby={isNew ? hint : undefined} autoComplete={isNew ? "new-password" : "current-password"}
          onChange={(event) => onChange(event.target.value)} />
      )}
    </Field>
  );
}

function Password() {
  const [old, setOld] = useState("");
  const [fresh, setFresh] = useState("");
  const [isDone, setDone] = useState(false);
  const { busy, error, run } = useWork();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setDone(false);
    void run(async () => {
      await changePassword(old, fresh);
      setOld("");
      setFresh("");
      setDone(true);
    });
  };
  return (
    <form className="card" onSubmit={submit}>
      <h2>Password</h2>
      <Secret label="The password now" value={old} onChange={setOld} />
      <Secret label="The new one" value={fresh} isNew onChange={setFresh} />
      <Trouble error={error} />
      {isDone && <Notice tone="good"><p>The password is changed. Everybody else who was signed in to this account is signed out; API keys stay.</p></Notice>}
      <button className="main" disabled={busy}>Change the password</button>
    </form>
  );
}

function Sessions() {
  return (
    <section className="card">
      <h2>Sessions</h2>
      <p>Signs out here and wherever else this account is signed in. API keys stay: delete those by themselves.</p>
      <Confirmed label="Sign out everywhere" title="Sign out everywhere?" dismiss="Not now" action={signOutEverywhere}>
        <p>What was handed out already is good for a quarter of an hour at most.</p>
      </Confirmed>
    </section>
  );
}

function Close({ email }: { email: string }) {
  const [password, setPassword] = useState("");
  return (
    <section className="card">
      <h2>Delete the account</h2>
      <p>All of its datasets go, with their keys, ciphertexts and results; from those of others it withdraws.</p>
      <Confirmed label="Delete the account" title={`Delete the account ${email}?`} action={() => closeAccount(password)}>
        <p>This cannot be undone. Where it is broken off, what was deleted stays deleted; do it again then.</p>
        <Secret label="Its password" value={password} onChange={setPassword} />
      </Confirmed>
    </section>
  );
}

/** What the account uses of each service, and what it may. */
function Limits() {
  return (
    <section className="card">
      <h2>Usage and limits</h2>
      <div className="grid">
        {SERVICES.map(({ service, name }) => <Limit key={service} service={service} name={name} />)}
      </div>
    </section>
  );
}

function Limit({ service, name }: { service: Service; name: string }) {
  const { value, error, reload } = useLoad(() => get<Usage>(service, "/v1/usage"), service);
  return (
    <div>
      <h3>{name}</h3>
      <Trouble error={error} retry={reload} />
      {!value && error === undefined && <Loading />}
      {value?.limits.map(({ limit, used, most }) => {
        const shown = limit.endsWith("bytes") ? bytes : count;
        return (
          <div className="limit" key={limit}>
            <span>{limit.replaceAll("_", " ")}</span>
            <span className="quiet">{shown(used)} of {shown(most)}</span>
            <progress aria-label={`${limit.replaceAll("_", " ")} used`} max={Math.max(1, most)} value={used} />
          </div>
        );
      })}
    </div>
  );
}
