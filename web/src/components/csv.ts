// Enough CSV (RFC 4180) to read the generation service's output.

/** Returns the records of a text, without the byte order mark. */
export function parseCsv(text: string): string[][] {
  const records: string[][] = [];
  let record: string[] = [];
  const field = /("(?:[^"]|"")*"|[^,\r\n]*)(,|\r?\n|$)/gy;
  field.lastIndex = text.startsWith("\uFEFF") ? 1 : 0;
  for (let match = field.exec(text); match && match.index < text.length; match = field.exec(text)) {
    const [, raw = "", end] = match;
    record.push(raw.startsWith('"') ? raw.slice(1, -1).replaceAll('""', '"') : raw);
    if (end === ",") continue;
    records.push(record);
    record = [];
  }
  return records;
}
