// Enough CSV (RFC 4180) to show the first records of a file, and to read the generation service's
// output.

/** Returns at most `most` records of a text, without the byte order mark. */
export function parseCsv(text: string, delimiter = ",", most = Infinity): string[][] {
  const records: string[][] = [];
  let record: string[] = [];
  const mark = delimiter === "|" ? "\\|" : delimiter;
  const field = new RegExp(`("(?:[^"]|"")*"|[^${mark}\\r\\n]*)(${mark}|\\r?\\n|$)`, "gy");
  field.lastIndex = text.startsWith("\uFEFF") ? 1 : 0;
  for (let match = field.exec(text); match && match.index < text.length; match = field.exec(text)) {
    const [, raw = "", end] = match;
    record.push(raw.startsWith('"') ? raw.slice(1, -1).replaceAll('""', '"') : raw);
    if (end === delimiter) continue;
    records.push(record);
    if (records.length >= most) break;
    record = [];
  }
  return records;
}
