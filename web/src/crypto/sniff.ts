// Inspects a file's first bytes, and rejects a file that is not a CSV table before it is read.
import { parseCsv } from "../components/csv";
import type { Dialect } from "./messages";
import type { HolderSession } from "./session";

/** Larger files do not fit into the memory of a page together with room to work. */
export const MAX_FILE_BYTES = 1e9;

const HEAD_BYTES = 64 * 1024;

/** Files that are mistaken for tables: how they begin, and what to do with them. */
const OTHERS: { begins: string; words: string }[] = [
  { begins: "\x89PNG", words: "is a picture (PNG), not a table" },
  { begins: "\xff\xd8\xff", words: "is a picture (JPEG), not a table" },
  { begins: "GIF8", words: "is a picture (GIF), not a table" },
  { begins: "%PDF", words: "is a PDF document, not a table" },
  { begins: "PK\x03\x04", words: "is an Excel workbook or a zip archive. Open it and save the table as CSV" },
  { begins: "\xd0\xcf\x11\xe0", words: "is an old Excel workbook. Open it and save the table as CSV" },
  { begins: "\x1f\x8b", words: "is compressed (gzip). Unpack it first" },
  { begins: "PAR1", words: "is a Parquet file. Save the table as CSV first" },
  { begins: "<!DOCTYPE", words: "is a web page, not a table" },
  { begins: "<html", words: "is a web page, not a table" },
];

export interface Sniffed extends Dialect {
  /** Why the file cannot be a table; undefined if it can. */
  refusal?: string;
  /** The first records, without the names in the first line. */
  samples: string[][];
  /** Names in the first line. */
  header: string[];
}

/** Number of records whose values are shown in a column's picture. */
const MAX_SAMPLES = 500;

export async function sniff(file: File, session: HolderSession): Promise<Sniffed> {
  const head = file.slice(0, HEAD_BYTES);
  const bytes = new Uint8Array(await head.arrayBuffer());
  const refusal = refused(file, bytes);
  const usual = { delimiter: ",", encoding: "utf-8" };
  if (refusal !== undefined) return { ...usual, refusal: `${file.name} ${refusal}.`, samples: [], header: [] };
  const dialect = await session.dialect(head);
  const records = parseCsv(new TextDecoder(dialect.encoding).decode(bytes), dialect.delimiter, MAX_SAMPLES + 2);
  // The last record may be cut off.
  const whole = file.size > HEAD_BYTES ? records.slice(0, -1) : records;
  return { ...dialect, header: whole[0] ?? [], samples: whole.slice(1, MAX_SAMPLES + 1) };
}

function refused(file: File, bytes: Uint8Array): string | undefined {
  if (file.size === 0) return "is empty";
  const start = String.fromCharCode(...bytes.subarray(0, 16));
  const other = OTHERS.find(({ begins }) => start.startsWith(begins));
  if (other) return other.words;
  const isWide = /^(\xff\xfe|\xfe\xff)/.test(start);
  if (!isWide && bytes.includes(0)) return "is not a text file. Save the table as CSV";
  if (file.size <= MAX_FILE_BYTES) return undefined;
  const gigabytes = (file.size / 1e9).toFixed(1);
  return `has ${gigabytes} GB: more than a browser can hold. The command line, below, has no limit`;
}
