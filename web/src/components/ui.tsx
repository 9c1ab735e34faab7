// Small pieces that every page uses.
import { useCallback, useEffect, useId, useRef, useState, type ReactNode } from "react";
import { Link } from "react-router";
import { isMissing, words } from "../api/client";
import { newId } from "../api/ids";

export function Notice({ tone = "", children }: { tone?: "" | "bad" | "warn" | "good"; children: ReactNode }) {
  const role = tone === "bad" ? "alert" : "status";
  return <div className={`notice ${tone}`} role={role}>{children}</div>;
}

/** Shows an error and, if possible, a way to try again. */
export function Trouble(props: { error: unknown; wayOut?: string | undefined; retry?: () => void }) {
  const { error, wayOut, retry } = props;
  if (error === undefined) return null;
  if (isMissing(error)) return <NotFound />;
  return (
    <Notice tone="bad">
      <p>{words(error)}</p>
      {wayOut && <p>{wayOut}</p>}
      {retry && <button type="button" onClick={retry}>Try again</button>}
    </Notice>
  );
}

/** Nothing is at this address, or it belongs to another account: the services do not say which. */
export function NotFound() {
  return (
    <section role="alert">
      <h1>Not found</h1>
      <p>It was deleted, belongs to another account, or the address is wrong.</p>
      <p><Link className="button" to="/">Go to your datasets</Link></p>
    </section>
  );
}

/** Text to copy. */
export function Copyable({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
  };
  return (
    <>
      <pre tabIndex={0}>{text}</pre>
      {window.isSecureContext && (
        <div className="row">
          <button type="button" onClick={() => void copy().catch(() => undefined)}>{copied ? "Copied" : "Copy"}</button>
        </div>
      )}
    </>
  );
}

export function Field(props: { label: string; hint?: ReactNode; children: (id: string, hint: string) => ReactNode }) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{props.label}</label>
      {props.children(id, `${id}-hint`)}
      {props.hint && <p className="hint" id={`${id}-hint`}>{props.hint}</p>}
    </div>
  );
}

export function Facts({ items }: { items: [string, ReactNode][] }) {
  return (
    <dl className="facts">
      {items.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A button that asks for confirmation before a permanent action. */
export function Confirmed(props: {
  label: string;
  title: string;
  children: ReactNode;
  /** The identifier of the created object, if there is one. It is chosen when the dialog opens. */
  action: (id: string) => Promise<void>;
  tone?: "bad" | "main" | "";
  /** The labels of the dialog's buttons. */
  confirm?: string;
  dismiss?: string;
  disabled?: boolean;
}) {
  const { label, tone = "bad", confirm = label, dismiss = "Keep it", disabled = false } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useRef("");
  const title = useId();
  const { busy, error, run, forget } = useWork();
  const open = () => {
    id.current = newId();
    forget();
    dialog.current?.showModal();
  };
  const act = () => run(async () => {
    await props.action(id.current);
    dialog.current?.close();
  });
  return (
    <>
      <button type="button" className={tone} disabled={disabled} onClick={open}>{label}</button>
      <dialog ref={dialog} aria-labelledby={title}>
        <h2 id={title}>{props.title}</h2>
        {props.children}
        <Trouble error={error} />
        <div className="row">
          <button type="button" className={tone} disabled={busy} onClick={() => void act()}>{confirm}</button>
          <button type="button" onClick={() => dialog.current?.close()}>{dismiss}</button>
        </div>
      </dialog>
    </>
  );
}

/** Shows how much of a file has been read, with a button to stop. */
export function Reading({ file, read, onStop }: { file: File; read: number; onStop: () => void }) {
  return (
    <div className="notice" role="status">
      <p>Reading {file.name}: {bytes(Math.min(read, file.size))} of {bytes(file.size)}</p>
      <progress aria-label="Read" max={Math.max(1, file.size)} value={read} />
      <button type="button" onClick={onStop}>Stop</button>
    </div>
  );
}

/** Navigation through a long list, one page at a time. */
export function Pages(props: { name: string; from: number; size: number; total: number; onFrom: (from: number) => void }) {
  const { name, from, size, total, onFrom } = props;
  if (total <= size) return null;
  return (
    <nav className="row" aria-label={`Pages of ${name}`}>
      <button type="button" disabled={from === 0} onClick={() => onFrom(from - size)}>Previous</button>
      <span>{name} {count(from + 1)} to {count(Math.min(total, from + size))} of {count(total)}</span>
      <button type="button" disabled={from + size >= total} onClick={() => onFrom(from + size)}>Next</button>
    </nav>
  );
}

/** Work that a button starts, once at a time: whether it is running, and the last error. */
export function useWork() {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  // A second click may come before the button appears disabled.
  const working = useRef(false);
  const run = async (work: () => Promise<void>) => {
    if (working.current) return;
    working.current = true;
    setBusy(true);
    setError(undefined);
    try {
      await work();
    } catch (problem) {
      setError(problem);
    } finally {
      working.current = false;
      setBusy(false);
    }
  };
  return { busy, error, run, forget: () => setError(undefined) };
}

export interface Loaded<T> {
  value: T | undefined;
  error: unknown;
  reload: () => void;
}

/** Loads something when the page opens or `key` changes. */
export function useLoad<T>(load: () => Promise<T>, key: string): Loaded<T> {
  const [value, setValue] = useState<T>();
  const [error, setError] = useState<unknown>();
  const [turn, setTurn] = useState(0);
  const loader = useRef(load);
  loader.current = load;
  useEffect(() => {
    let current = true;
    loader.current().then(
      (loaded) => {
        if (!current) return;
        setValue(loaded);
        setError(undefined);
      },
      (problem: unknown) => current && setError(problem),
    );
    return () => {
      current = false;
    };
  }, [key, turn]);
  return { value, error, reload: useCallback(() => setTurn((n) => n + 1), []) };
}

export function Loading() {
  return <p className="quiet" role="status">Loading…</p>;
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · fhaim`;
  }, [title]);
}

const whole = new Intl.NumberFormat("en");

export function count(value: number): string {
  return whole.format(Math.round(value));
}

/** Formats a number of things: "1 field", "3 fields". */
export function counted(value: number, thing: string, things = `${thing}s`): string {
  const shown = count(value);
  return `${shown} ${shown === "1" ? thing : things}`;
}

export function bytes(value: number): string {
  if (value < 1e6) return `${Math.max(1, Math.round(value / 1e3))} kB`;
  if (value < 1e9) return `${(value / 1e6).toFixed(1)} MB`;
  return value < 1e12 ? `${(value / 1e9).toFixed(2)} GB` : `${(value / 1e12).toFixed(2)} TB`;
}

export function seconds(value: number): string {
  if (value < 1) return "under a second";
  return value < 90 ? `${Math.round(value)} s` : `${Math.round(value / 60)} min`;
}

/** A moment in the reader's local format. */
export function When({ at }: { at: string }) {
  return <time dateTime={at}>{new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}</time>;
}
