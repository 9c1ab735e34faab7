/**
 * Synthetic tables from encrypted records, from Node and from browsers: the table is encrypted in this
 * process, by the WebAssembly module that the page has, and only ciphertexts are sent.
 *
 * @packageDocumentation
 */
export { Client, type Login, type Progress, type UploadOptions } from "./client.ts";
export { Holder, type Draft, type Schema } from "./holder.ts";
export { Job, type SyntheticOptions } from "./job.ts";
export { Refusal } from "./session.ts";
