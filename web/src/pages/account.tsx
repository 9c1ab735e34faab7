// The account page: password, sessions, usage and limits, and deletion of the account.
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
      {value && <p>{value.email}, created <When at={value.created_at} /></p>}
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
      <Secret label="Current password" value={old} onChange={setOld} />
      <Secret label="New password" value={fresh} isNew onChange={setFresh} />
      <Trouble error={error} />
      {isDone && <Notice tone="good"><p>The password is changed. All other sessions of this account are signed out. API keys stay valid.</p></Notice>}
      <button className="main" disabled={busy}>Change password</button>
    </form>
  );
}

function Sessions() {
  return (
    <section className="card">
      <h2>Sessions</h2>
      <p>Signs out here and everywhere else this account is signed in. API keys stay valid: delete them separately.</p>
      <Confirmed label="Sign out everywhere" title="Sign out everywhere?" dismiss="Not now" action={signOutEverywhere}>
        <p>Uploads of other sessions stop within seconds.</p>
      </Confirmed>
    </section>
  );
}

function Close({ email }: { email: string }) {
  const [password, setPassword] = useState("");
  return (
    <section className="card">
      <h2>Delete the account</h2>
      <p>Deletes all datasets of the account, with their keys, ciphertexts and results, and withdraws from datasets of other accounts.</p>
      <Confirmed label="Delete the account" title={`Delete the account ${email}?`} action={() => closeAccount(password)}>
        <p>This cannot be undone. If it is interrupted, deleted data stays deleted: start it again then.</p>
        <Secret label="Your password" value={password} onChange={setPassword} />
      </Confirmed>
    </section>
  );
}

/** Usage and limits of the account at each service. */
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
