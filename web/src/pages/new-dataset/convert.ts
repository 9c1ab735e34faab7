// Converts a column to another kind, as a starting point that the user corrects.
import type { Bound, Column, Kind } from "../../crypto/messages";
import { isTime } from "../../components/column-words";

const BINS = 10;
/** Maximum number of digits per bin in a converted column. */
const MAX_DIGITS = 64;
/** Whole numbers of a smaller range than this become one category each. */
const MAX_NUMBERS = 50;

/** Date formats that are tried on the samples, as in the draft. */
const DATES: [RegExp, string][] = [
  [/^\d{4}-\d{2}-\d{2}/, "%Y-%m-%d"],
  [/^\d{2}\.\d{2}\.\d{4}/, "%d.%m.%Y"],
  [/^\d{1,2}\.\d{1,2}\.\d{4}/, "%-d.%-m.%Y"],
  [/^\d{2}\/\d{2}\/\d{4}/, "%d/%m/%Y"],
  [/^\d{1,2}\/\d{1,2}\/\d{4}/, "%-d/%-m/%Y"],
];

/** Returns the column as another kind. */
export function converted(column: Column, kind: Kind, samples: string[]): Column {
  const { name, nullable, missing, invalid } = column;
  const common: Column = {
    name, kind,
    ...(nullable ? { nullable } : {}),
    ...(missing ? { missing } : {}),
    ...(invalid ? { invalid } : {}),
  };
  switch (kind) {
    case "categorical":
      return { ...common, categories: texts(column, samples) };
    case "code":
      return { ...common, codes: texts(column, samples), prefix: 1 };
    case "number":
      return { ...common, ...numbers(column, samples) };
    case "date":
    case "datetime":
      return { ...common, ...times(column, kind, samples) };
    case "identifier":
      return { name, kind, pattern: "sequence" };
    case "left-out":
      return { name, kind, reason: "its holder left it out" };
    default:
      return { ...common, min: 0, max: 100, bins: BINS };
  }
}

/** Returns the known texts of the column. */
function texts({ categories, codes, integer, min, max }: Column, samples: string[]): string[] {
  const known = categories ?? codes;
  if (known) return known;
  if (integer && typeof min === "number" && typeof max === "number" && max - min < MAX_NUMBERS) {
    return Array.from({ length: max - min + 1 }, (_, step) => String(min + step));
  }
  return [...samples].sort();
}

function numbers({ categories, codes }: Column, samples: string[]): Partial<Column> {
  const all = categories ?? codes ?? samples;
  const comma = all.some((text) => /^-?\d+,\d+$/.test(text)) && all.every((text) => !text.includes("."));
  const values = all.map((text) => Number(comma ? text.replace(",", ".") : text)).filter(Number.isFinite);
  const decimals = Math.max(0, ...all.map((text) => /[.,](\d+)$/.exec(text)?.[1]?.length ?? 0));
  const [min, max] = values.length > 1 ? [Math.min(...values), Math.max(...values)] : [0, 100];
  const steps = Math.round((max - min) * 10 ** decimals) + 1;
  const bins = Math.min(BINS, steps);
  const digits = Math.min(MAX_DIGITS, Math.ceil(steps / bins));
  return {
    min, max, bins,
    ...(digits > 1 ? { digits } : {}),
    ...(decimals > 0 ? { decimals } : { integer: true }),
    ...(comma ? { decimal_comma: true } : {}),
  };
}

function times(column: Column, kind: Kind, samples: string[]): Partial<Column> {
  const written = DATES.find(([looks]) => samples.length > 0 && samples.every((text) => looks.test(text)));
  const date = written?.[1] ?? "%Y-%m-%d";
  const letter = samples[0]?.includes("T") ? "T" : " ";
  const seconds = samples.some((text) => /:\d{2}:\d{2}$/.test(text));
  const format = kind === "date" ? date : `${date}${letter}%H:%M${seconds ? ":%S" : ""}`;
  const old = isTime(column) ? column : undefined;
  return {
    format: old && old.kind === kind ? (old.format ?? format) : format,
    ...ABSOLUTE,
    ...(kind === "datetime" ? { unit: "hour" as const } : {}),
  };
}

/** Settings of a date that is not relative to another column. */
const ABSOLUTE = { min: "2000-01-01", max: "2030-12-31", bins: BINS, digits: MAX_DIGITS } satisfies Partial<Column>;

/** Sets whether a column may be missing. Only then can its invalid values be read as missing. */
export function nullableIf(column: Column, nullable: boolean): Column {
  if (nullable) return { ...column, nullable };
  const { invalid: _, ...rest } = column;
  return { ...rest, nullable };
}

/** Makes a date relative to the column `base`, or absolute without one. */
export function relativeTo(column: Column, base: string | undefined): Column {
  const { relative_to: _, edges: __, ...rest } = column;
  if (base === undefined) return { ...rest, ...ABSOLUTE };
  return { ...rest, relative_to: base, min: 0, max: 99, bins: BINS, digits: BINS };
}

/** Replaces edges by bins of equal width. */
export function evenBins({ edges = [], ...rest }: Column): Column {
  return { ...rest, min: edges[0] as Bound, max: edges.at(-1) as Bound, bins: Math.max(1, edges.length - 1) };
}
