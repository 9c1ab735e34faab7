/**
 * Synthetic tables from encrypted records, for Node and browsers. The page's WebAssembly module encrypts the table in
 * this process, and only ciphertexts are sent.
 *
 * @packageDocumentation
 */
export { Client, type Login, type Progress, type UploadOptions } from "./client.ts";
export { Holder, type Draft, type ProposedRule, type Schema } from "./holder.ts";
export { type SyntheticOptions } from "./draw.ts";
export { Job } from "./job.ts";
export { Linked, type DataCard, type LinkEntry } from "./link.ts";
export { Refusal } from "./session.ts";
