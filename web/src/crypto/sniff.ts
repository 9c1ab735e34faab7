// What a file is, by its first bytes: a file that is no CSV table is refused before it is read.

/** Larger files do not fit into the memory that a browser gives a page, with room to work. */
export const MAX_FILE_BYTES = 1e9;

const HEAD_BYTES = 64 * 1024;

/** Files that are taken for tables by mistake: how they begin, and what to do with them. */
const OTHERS: { begins: string; words: string }[] = [
  { begins: "\x89PNG", words: "is a picture (PNG), not a table" },
  { begins: "\xff\xd8\xff", words: "is a picture (JPEG), not a table" },
  { begins: "GIF8", words: "is a picture (GIF), not a table" },
  { begins: "%PDF", words: "is a PDF document, not a table" },
  { begins: "PK\x03\x04", words: "is an Excel workbook or a zip archive. Open it and save the table as CSV" },
  { begins: "\xd0\xcf\x11\xe0", words: "is an old Excel workbook. Open it and save the table as CSV" },
  { begins: "\x1f\x8b", words: "is compressed (gzip). Unpack it first" },
  { begins: "PAR1", words: "is a Parquet file. Save the table as CSV first" },
  { begins: "\xff\xfe", words: "is in UTF-16. Save it as CSV in UTF-8" },
  { begins: "\xfe\xff", words: "is in UTF-16. Save it as CSV in UTF-8" },
  { begins: "<!DOCTYPE", words: "is a web page, not a table" },
  { begins: "<html", words: "is a web page, not a table" },
];

const DELIMITERS = [",", ";", "\t", "|"];

export interface Sniffed {
  /** Why it cannot be a table, in words; nothing where it can. */
  refusal?: string;
  /** Character between fields, by the first line. */
  delimiter: string;
  /** Names in the first line. */
  header: string[];
}

export async function sniff(file: File): Promise<Sniffed> {
  const bytes = new Uint8Array(await file.slice(0, HEAD_BYTES).arrayBuffer());
  const refusal = refused(file, bytes);
  if (refusal !== undefined) return { refusal: `${file.name} ${refusal}.`, delimiter: ",", header: [] };
  const line = firstLine(new TextDecoder().decode(bytes));
  const delimiter = delimiterOf(line);
  return { delimiter, header: fields(line, delimiter) };
}

function refused(file: File, bytes: Uint8Array): string | undefined {
  if (file.size === 0) return "is empty";
  const start = String.fromCharCode(...bytes.subarray(0, 16));
  const other = OTHERS.find(({ begins }) => start.startsWith(begins));
  if (other) return other.words;
  if (bytes.includes(0)) return "is not a text file. Save the table as CSV in UTF-8";
  if (file.size <= MAX_FILE_BYTES) return undefined;
  const gigabytes = (file.size / 1e9).toFixed(1);
  return `has ${gigabytes} GB: more than a browser can hold. The command line, below, has no such limit`;
}

/** The first line, without what stands between quotes going over its end. */
function firstLine(text: string): string {
  return /^\uFEFF?((?:"(?:[^"]|"")*"|[^"\r\n])*)/.exec(text)?.[1] ?? "";
}

function delimiterOf(line: string): string {
  const bare = line.replaceAll(/"(?:[^"]|"")*"/g, "");
  const times = (character: string) => bare.split(character).length;
  return DELIMITERS.reduce((best, next) => (times(next) > times(best) ? next : best));
}

function fields(line: string, delimiter: string): string[] {
  const field = new RegExp(`"((?:[^"]|"")*)"|([^"${delimiter === "|" ? "\\|" : delimiter}]+)`, "g");
  return [...line.matchAll(field)].map(([, quoted, bare]) => quoted?.replaceAll('""', '"') ?? bare ?? "");
}
