// Another account's result, by the link that it sent: `SERVER/shared/LINK#SECRET`.
import type { components } from "../../../web/src/api/generated/generation.ts";
import { asked, bytes, type SyntheticOptions } from "./draw.ts";
import { answered, type Session } from "./session.ts";

export type DataCard = components["schemas"]["LinkedResult"];
/** A link, without its secret. */
export type LinkEntry = components["schemas"]["Link"];

/** What is behind the # is part of no call's address: it goes along in a header. */
export function written(server: string, link: string, secret: string): string {
  return `${server}/shared/${link}#${secret}`;
}

export class Linked {
  private readonly id: string;
  private readonly secret: string;

  /** Refuses what is no link, and a link of another server: its secret is shown to its own alone. */
  constructor(private readonly session: Session, link: string) {
    const [, server, id, secret] = /^(.+)\/shared\/([0-9a-f-]{36})#([\w-]+)$/i.exec(link.trim()) ?? [];
    if (server === undefined || id === undefined || secret === undefined) throw new Error("this is no link: SERVER/shared/LINK#SECRET");
    if (server.replace(/\/$/, "") !== session.server) throw new Error(`the link is of ${server}: sign in there`);
    this.id = id;
    this.secret = secret;
  }

  /** How the table was made, and what to know before it is used. */
  card(): Promise<DataCard> {
    return answered(this.session.generation.GET("/v1/links/{link}", { params: this.params() }));
  }

  /** Draws a synthetic table. It costs nothing: draw as many as are wanted. */
  synthetic(options: SyntheticOptions = {}): Promise<Uint8Array> {
    return bytes(this.session.generation.GET("/v1/links/{link}/synthetic", {
      params: { ...this.params(), query: asked(options) }, parseAs: "arrayBuffer",
    }));
  }

  private params() {
    return { path: { link: this.id }, header: { "fhaim-link": this.secret } };
  }
}
