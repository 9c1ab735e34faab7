// Names for the wire types that the page uses.
import type { components as Computation } from "./generated/computation";
import type { components as Crypto } from "./generated/crypto";
import type { components as Generation } from "./generated/generation";
import type { Schema } from "../crypto/messages";

type G = Generation["schemas"];

export type Account = G["Account"];
export type Session = G["Session"];
export type ApiKey = G["ApiKey"];
export type ApiKeyMade = G["ApiKeyMade"];
/** The document leaves the schema open, but the page knows its form. */
export type Terms = Omit<G["Terms"], "schema"> & { schema: Schema };
export type Dataset = Omit<G["Dataset"], "terms"> & { terms: Terms };
/** A link to a result, without its secret. */
export type LinkEntry = G["Link"];
export type LinkMade = G["LinkMade"];
export type LinkedResult = Omit<G["LinkedResult"], "schema"> & { schema: Schema };
export type Voucher = G["Voucher"];
export type Job = G["Job"];
export type Receipt = G["Receipt"];
export type JobEvent = G["JobEvent"];
export type ModelView = G["ModelView"];
export type OneWayView = G["OneWayView"];
export type ReleasedStatistic = G["ReleasedStatistic"];
export type Problem = G["Problem"];
export type Roster = G["Roster"];
/** A holder of a roster. */
export type Member = G["Member"];
export type Usage = G["Usage"];
export type Upload = Computation["schemas"]["Upload"];
export type Contribution = Computation["schemas"]["Contribution"];
export type Missing = Computation["schemas"]["Missing"];
export type HolderStanding = Crypto["schemas"]["HolderStanding"];
export type KeySet = Crypto["schemas"]["KeySet"];
export type DatasetLedger = Crypto["schemas"]["DatasetLedger"];

export interface Page<T> {
  items: T[];
  next?: string | null;
  /** Identifiers of items that are left out because their stored data is damaged. */
  damaged?: string[];
}
