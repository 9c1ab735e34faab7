// Calls to the services, which share the page's origin, and their session.
import type { Page, Problem, Session } from "./types";

export type Service = "generation" | "computation" | "witness" | "crypto";

/** A service's refusal, with its message. */
export class Refusal extends Error {
  readonly kind: string;
  readonly status: number;
  readonly retryAfter: number | undefined;

  constructor(problem: Problem) {
    super(problem.detail ?? problem.title);
    this.kind = problem.kind;
    this.status = problem.status;
    this.retryAfter = problem.retry_after ?? undefined;
  }
}

/** No answer at all: the connection is lost or the service is down. */
export class Unreachable extends Error {
  constructor() {
    super("The server does not answer. Check the connection; nothing is lost.");
  }
}

const REFRESH_TOKEN = "fhaim.refresh";
const EMAIL = "fhaim.email";
/** Time before its expiry at which a session is renewed. */
const MARGIN_MS = 30_000;

let access: { session: Session; expires: number } | undefined;
let renewal: Promise<Session> | undefined;
const listeners = new Set<() => void>();

/** Returns the address of the signed-in account. */
export function signedInAs(): string | undefined {
  const known = sessionStorage.getItem(REFRESH_TOKEN) !== null;
  return known ? (sessionStorage.getItem(EMAIL) ?? "") : undefined;
}

export function onSession(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function keep(session: Session): Session {
  access = { session, expires: Date.now() + session.expires_in * 1000 };
  if (session.refresh_token) sessionStorage.setItem(REFRESH_TOKEN, session.refresh_token);
  return session;
}

/** Discards the session, which has ended. */
export function forget(): void {
  access = undefined;
  sessionStorage.removeItem(REFRESH_TOKEN);
  sessionStorage.removeItem(EMAIL);
  listeners.forEach((listener) => listener());
}

export async function signIn(email: string, password: string): Promise<void> {
  const answer = await send("generation", "POST", "/v1/sessions", { json: { email, password } });
  keep((await answer.json()) as Session);
  sessionStorage.setItem(EMAIL, email);
  listeners.forEach((listener) => listener());
}

export async function signUp(email: string, password: string): Promise<void> {
  await send("generation", "POST", "/v1/accounts", { json: { email, password } });
  await signIn(email, password);
}

export async function signOut(): Promise<void> {
  const refresh_token = sessionStorage.getItem(REFRESH_TOKEN);
  try {
    if (refresh_token) {
      await send("generation", "DELETE", "/v1/sessions", { json: { refresh_token } });
    }
  } finally {
    forget();
  }
}

/** Changes the account's password, and ends all its sessions except this one. */
export async function changePassword(password: string, new_password: string): Promise<void> {
  keep(await json<Session>("generation", "PUT", "/v1/account/password", { json: { password, new_password } }));
}

/** Ends all sessions of the account, including this one. */
export async function signOutEverywhere(): Promise<void> {
  await call("generation", "DELETE", "/v1/account/sessions");
  forget();
}

/** Returns the token for calls to a service. Each service has a separate token, so that none can use it at another. */
async function token(service: Service): Promise<string> {
  const { access_token, computation_token, witness_token, crypto_token } = await session();
  const tokens = {
    generation: access_token, computation: computation_token, witness: witness_token, crypto: crypto_token,
  };
  const token = tokens[service];
  if (token == null) throw new Error(`the generation service gave no token for the ${service} service`);
  return token;
}

/** Returns whether the services know a second computation service, for which sessions then have a token. */
export async function hasWitness(): Promise<boolean> {
  return (await session()).witness_token != null;
}

/**
 * Returns a session that is valid for some time. Only one renewal runs at a time: a refresh token is valid until its
 * successor is used. If an answer is lost, the next call uses the same refresh token again.
 */
async function session(): Promise<Session> {
  if (access && access.expires - MARGIN_MS > Date.now()) return access.session;
  renewal ??= renew().finally(() => (renewal = undefined));
  return renewal;
}

async function renew(): Promise<Session> {
  const refresh_token = sessionStorage.getItem(REFRESH_TOKEN);
  if (!refresh_token) throw signedOut();
  try {
    const answer = await send("generation", "POST", "/v1/sessions/refresh", {
      json: { refresh_token },
    });
    return keep((await answer.json()) as Session);
  } catch (error) {
    if (error instanceof Refusal && error.status < 500 && error.status !== 429) {
      forget();
      throw signedOut();
    }
    throw error;
  }
}

function signedOut(): Refusal {
  const title = "Your session has ended. Sign in again; nothing is lost.";
  return new Refusal({ type: "", kind: "unauthenticated", title, status: 401 });
}

interface Options {
  json?: unknown;
  bytes?: Uint8Array<ArrayBuffer>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

async function send(
  service: Service,
  method: string,
  path: string,
  options: Options,
): Promise<Response> {
  const headers = new Headers(options.headers);
  let body: BodyInit | null = null;
  if (options.bytes) {
    body = options.bytes;
    headers.set("content-type", "application/octet-stream");
  } else if (options.json !== undefined) {
    body = JSON.stringify(options.json);
    headers.set("content-type", "application/json");
  }
  const request: RequestInit = { method, headers, body, cache: "no-store" };
  if (options.signal) request.signal = options.signal;
  let response: Response;
  try {
    response = await fetch(`/${service}${path}`, request);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Unreachable();
  }
  if (!response.ok) throw new Refusal(await problem(response));
  return response;
}

async function problem(response: Response): Promise<Problem> {
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("application/problem+json")) return (await response.json()) as Problem;
  const title = `The server answered with status ${response.status}.`;
  const kind = response.status >= 500 ? "unavailable" : "malformed";
  return { type: "", kind, title, status: response.status };
}

/**
 * Makes a call with the session's token. If the service refuses a token that has not expired, such as after the operator
 * revoked an API key, the call is made once more with a new token: nothing was done.
 */
export async function call(
  service: Service,
  method: string,
  path: string,
  options: Options = {},
): Promise<Response> {
  const attempt = async () => {
    const headers = { ...options.headers, authorization: `Bearer ${await token(service)}` };
    return send(service, method, path, { ...options, headers });
  };
  const used = (await session()).access_token;
  try {
    return await attempt();
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 401) throw error;
    if (access?.session.access_token === used) access = undefined;
    return attempt();
  }
}

/** Makes a call and reads its answer as JSON. */
export async function json<T>(
  service: Service,
  method: string,
  path: string,
  options: Options = {},
): Promise<T> {
  return (await (await call(service, method, path, options)).json()) as T;
}

export function get<T>(service: Service, path: string): Promise<T> {
  return json<T>(service, "GET", path);
}

/** The items of a list, and the identifiers of those that are left out because their stored data is damaged. */
export interface Listed<T> {
  items: T[];
  damaged: string[];
}

/** Returns all pages of a list. */
export async function listAll<T>(service: Service, path: string): Promise<Listed<T>> {
  const listed: Listed<T> = { items: [], damaged: [] };
  let after: string | null | undefined;
  do {
    const query = after ? `?after=${encodeURIComponent(after)}` : "";
    const page = await get<Page<T>>(service, `${path}${query}`);
    listed.items.push(...page.items);
    listed.damaged.push(...(page.damaged ?? []));
    after = page.next;
  } while (after);
  return listed;
}

/** Returns the items of all pages of a list. */
export async function list<T>(service: Service, path: string): Promise<T[]> {
  return (await listAll<T>(service, path)).items;
}

/** Returns a message for any error. */
export function words(error: unknown): string {
  if (!(error instanceof Error)) return "Something went wrong.";
  return error instanceof Refusal ? sentence(error.message) : error.message;
}

/** Adds the capital letter and the full stop that the services omit in their messages. */
function sentence(text: string): string {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

/** Returns whether the object does not exist, or is not visible to this account. */
export function isMissing(error: unknown): boolean {
  return error instanceof Refusal && error.status === 404;
}

/** Returns whether the call contradicts the state of the service. */
export function isConflict(error: unknown): boolean {
  return error instanceof Refusal && error.status === 409;
}

/** Returns whether the same call may succeed later. */
export function mayPass(error: unknown): boolean {
  if (error instanceof Unreachable) return true;
  return error instanceof Refusal && (error.status >= 500 || error.status === 429);
}

/** Waits before another attempt: for the time that the service requested, or otherwise longer with each attempt. */
export function backoff(attempt: number, error: unknown): Promise<void> {
  const told = error instanceof Refusal ? error.retryAfter : undefined;
  const seconds = told ?? Math.min(0.3 * 2 ** attempt, 10);
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}
