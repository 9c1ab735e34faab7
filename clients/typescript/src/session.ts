// Calls to the services, typed by their OpenAPI documents, and the session that they need.
import createClient, { type Client as Calls } from "openapi-fetch";
import type { paths as Computation } from "../../../web/src/api/generated/computation.ts";
import type { paths as Crypto } from "../../../web/src/api/generated/crypto.ts";
import type { components, paths as Generation } from "../../../web/src/api/generated/generation.ts";
import type { Login } from "./client.ts";
import { checkTransport } from "./transport.ts";

type Tokens = components["schemas"]["Session"];
type Service = "generation" | "computation" | "witness" | "crypto";

/** Time before its expiry at which a session is renewed. */
const MARGIN_MS = 30_000;

/** A service's refusal, with its message. */
export class Refusal extends Error {
  readonly kind: string;
  readonly status: number;

  constructor(problem: { detail?: string | null; title?: string; kind?: string }, status: number) {
    super(problem.detail ?? problem.title ?? `the service answered with status ${status}`);
    this.kind = problem.kind ?? "";
    this.status = status;
  }
}

/** Returns the data of an answer, or throws the service's refusal. */
export async function answered<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await call;
  if (!response.ok) throw new Refusal((error ?? {}) as { detail?: string }, response.status);
  return data as T;
}

export class Session {
  /** The address of the services. */
  readonly server: string;
  readonly generation: Calls<Generation>;
  readonly computation: Calls<Computation>;
  /** The second computation service, for datasets whose terms have one. */
  readonly witness: Calls<Computation>;
  readonly crypto: Calls<Crypto>;
  private tokens: Tokens | undefined;
  private expires = 0;
  private renewal: Promise<Tokens> | undefined;

  constructor(private readonly address: string, private readonly login: Login) {
    checkTransport(address);
    const base = address.replace(/\/$/, "");
    this.server = base;
    this.generation = this.authorised(createClient<Generation>({ baseUrl: `${base}/generation` }), "generation");
    this.computation = this.authorised(createClient<Computation>({ baseUrl: `${base}/computation` }), "computation");
    this.witness = this.authorised(createClient<Computation>({ baseUrl: `${base}/witness` }), "witness");
    this.crypto = this.authorised(createClient<Crypto>({ baseUrl: `${base}/crypto` }), "crypto");
  }

  /** Signs in now, so that wrong credentials are rejected at once. */
  async begin(): Promise<void> {
    await this.current();
  }

  private authorised<T extends {}>(calls: Calls<T>, service: Service): Calls<T> {
    calls.use({
      onRequest: async ({ request }) => {
        request.headers.set("authorization", `Bearer ${await this.token(service)}`);
        return request;
      },
    });
    return calls;
  }

  /** Returns the token for a service. Each service has a separate token, so that none can use it at another. */
  private async token(service: Service): Promise<string> {
    const { access_token, computation_token, witness_token, crypto_token } = await this.current();
    const tokens = {
      generation: access_token, computation: computation_token, witness: witness_token, crypto: crypto_token,
    };
    const token = tokens[service];
    if (token == null) throw new Error(`the generation service gave no token for the ${service} service`);
    return token;
  }

  /**
   * Returns the current tokens. Only one renewal runs at a time: a refresh token is valid until its successor is used.
   */
  private async current(): Promise<Tokens> {
    if (this.tokens && this.expires - MARGIN_MS > Date.now()) return this.tokens;
    this.renewal ??= this.renew().finally(() => (this.renewal = undefined));
    return this.renewal;
  }

  private async renew(): Promise<Tokens> {
    const calls = createClient<Generation>({ baseUrl: `${this.address.replace(/\/$/, "")}/generation` });
    const { login, tokens } = this;
    const signIn = () => "apiKey" in login
      ? calls.POST("/v1/sessions/api-key", { body: { api_key: login.apiKey } })
      : calls.POST("/v1/sessions", { body: { email: login.email, password: login.password } });
    const refresh_token = "apiKey" in login ? undefined : tokens?.refresh_token;
    const made = refresh_token
      ? answered<Tokens>(calls.POST("/v1/sessions/refresh", { body: { refresh_token } }) as never).catch((error: unknown) => {
          // The refresh token has expired or was revoked: sign in again with the password.
          if (error instanceof Refusal && error.status < 500) return answered<Tokens>(signIn() as never);
          throw error;
        })
      : answered<Tokens>(signIn() as never);
    this.tokens = await made;
    this.expires = Date.now() + this.tokens.expires_in * 1000;
    return this.tokens;
  }
}
