// The table of `fhaim demo`, for trying everything before using a real one: crates/cli/data.
import type { Schema } from "../crypto/messages";

/** A table whose records and schema are public. */
export interface Example {
  file: File;
  schema: Schema;
}

async function fetched(name: string): Promise<Response> {
  const answer = await fetch(`/example/${name}`);
  if (!answer.ok) throw new Error(`This server has no example table: ${name} is missing. Choose a file of your own.`);
  return answer;
}

/** Returns Adult: 48,842 people of the US census of 1994. */
export async function exampleTable(): Promise<Example> {
  const [table, schema] = await Promise.all([fetched("adult.csv.gz"), fetched("adult.schema.json")]);
  const file = new File([await table.blob()], "adult.csv.gz", { type: "application/gzip", lastModified: 0 });
  return { file, schema: await schema.json() as Schema };
}
