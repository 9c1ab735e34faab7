import { useState, type FormEvent } from "react";
import { Link, useLocation, useNavigate } from "react-router";
import { signIn, signUp } from "../api/client";
import { Field, Trouble, useTitle, useWork } from "../components/ui";

export const MIN_PASSWORD = 12;

export function SignIn({ isNew = false }: { isNew?: boolean }) {
  const title = isNew ? "Create an account" : "Sign in";
  useTitle(title);
  const navigate = useNavigate();
  const from = (useLocation().state as { from?: string } | null)?.from ?? "/";
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const { busy, error, run } = useWork();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void run(async () => {
      await (isNew ? signUp : signIn)(email, password);
      void navigate(from, { replace: true });
    });
  };
  return (
    <main id="content" className="narrow">
      <h1>{title}</h1>
      <p className="quiet">
        Synthetic tables from encrypted records. This browser encrypts your table before it sends anything. The operator
        of the computation service and the operator of the key service can read it only together, so they must be
        different. If one operator runs all services, as with <code>fhaim up</code>, that operator can read your table.
      </p>
      <form className="card" onSubmit={submit}>
        <Field label="Email">
          {(id) => (
            <input id={id} type="email" autoComplete="username" required value={email}
              onChange={(event) => setEmail(event.target.value)} />
          )}
        </Field>
        <Field label="Password" hint={isNew ? `At least ${MIN_PASSWORD} characters.` : undefined}>
          {(id, hint) => (
            <input id={id} type="password" required minLength={isNew ? MIN_PASSWORD : 1} value={password}
              aria-describedby={isNew ? hint : undefined}
              autoComplete={isNew ? "new-password" : "current-password"}
              onChange={(event) => setPassword(event.target.value)} />
          )}
        </Field>
        <Trouble error={error} />
        <button className="main" disabled={busy}>{title}</button>
      </form>
      <OtherWay isNew={isNew} from={from} />
    </main>
  );
}

function OtherWay({ isNew, from }: { isNew: boolean; from: string }) {
  return isNew
    ? <p>You have an account? <Link to="/sign-in" state={{ from }}>Sign in</Link></p>
    : <p>No account yet? <Link to="/sign-up" state={{ from }}>Create one</Link></p>;
}
