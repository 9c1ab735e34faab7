// Another account's result, opened by the link that it sent: `SERVER/shared/LINK#SECRET`.
import type { components } from "../../../web/src/api/generated/generation.ts";
import { asked, bytes, type SyntheticOptions } from "./draw.ts";
import { answered, type Session } from "./session.ts";

export type DataCard = components["schemas"]["LinkedResult"];
/** A link, without its secret. */
export type LinkEntry = components["schemas"]["Link"];

/** Returns a link to send. The part after the # is in no call's address; a header carries it. */
export function written(server: string, link: string, secret: string): string {
  return `${server}/shared/${link}#${secret}`;
}

export class Linked {
  private readonly id: string;
  private readonly secret: string;

  /** Rejects a text that is not a link, and a link of another server: its secret is sent only to its own server. */
  constructor(private readonly session: Session, link: string) {
    const [, server, id, secret] = /^(.+)\/shared\/([0-9a-f-]{36})#([\w-]+)$/i.exec(link.trim()) ?? [];
    if (server === undefined || id === undefined || secret === undefined) throw new Error("this is not a link: use SERVER/shared/LINK#SECRET");
    if (server.replace(/\/$/, "") !== session.server) throw new Error(`the link belongs to ${server}: sign in there`);
    this.id = id;
    this.secret = secret;
  }

  /** Returns the data card: how the table was made, and what to know before using it. */
  card(): Promise<DataCard> {
    return answered(this.session.generation.GET("/v1/links/{link}", { params: this.params() }));
  }

  /** Draws a synthetic table. This costs nothing, and can be repeated. */
  synthetic(options: SyntheticOptions = {}): Promise<Uint8Array> {
    return bytes(this.session.generation.GET("/v1/links/{link}/synthetic", {
      params: { ...this.params(), query: asked(options) }, parseAs: "arrayBuffer",
    }));
  }

  private params() {
    return { path: { link: this.id }, header: { "fhaim-link": this.secret } };
  }
}
