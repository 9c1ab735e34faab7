// Enough CSV (RFC 4180) to show what the generation service writes.

export function parseCsv(text: string): string[][] {
  const records: string[][] = [];
  let record: string[] = [];
  const field = /("(?:[^"]|"")*"|[^,\r\n]*)(,|\r?\n|$)/gy;
  for (let match = field.exec(text); match && match.index < text.length; match = field.exec(text)) {
    const [, raw = "", end] = match;
    record.push(raw.startsWith('"') ? raw.slice(1, -1).replaceAll('""', '"') : raw);
    if (end !== ",") {
      records.push(record);
      record = [];
    }
  }
  return records;
}
