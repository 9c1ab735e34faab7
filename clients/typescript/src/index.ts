/**
 * Synthetic tables from encrypted records, from Node and from browsers: the table is encrypted in this
 * process, by the WebAssembly module that the page has, and only ciphertexts are sent.
 *
 * @packageDocumentation
 */
export { Client, type Login, type Progress, type UploadOptions } from "./client.ts";
export { Holder, type Draft, type Schema } from "./holder.ts";
export { type SyntheticOptions } from "./draw.ts";
export { Job } from "./job.ts";
export { Linked, type DataCard, type LinkEntry } from "./link.ts";
export { Refusal } from "./session.ts";
