// Converts a column to another kind, as a starting point that the user corrects.
import type { Bound, Column, Kind } from "../../crypto/messages";
import { isTime, listed } from "../../components/column-words";

const BINS = 10;
/** Maximum number of digits per bin in a converted column. */
const MAX_DIGITS = 64;
/** Whole numbers of a smaller range than this become one category each. */
const MAX_NUMBERS = 50;

/** Maximum number of samples whose date format is looked at. */
const MAX_DATES = 12;

/** Date formats that are tried on the samples, as in the draft. */
const DATES: [RegExp, string][] = [
  [/^\d{4}-\d{2}-\d{2}/, "%Y-%m-%d"],
  [/^\d{2}\.\d{2}\.\d{4}/, "%d.%m.%Y"],
  [/^\d{1,2}\.\d{1,2}\.\d{4}/, "%-d.%-m.%Y"],
  [/^\d{2}\/\d{2}\/\d{4}/, "%d/%m/%Y"],
  [/^\d{1,2}\/\d{1,2}\/\d{4}/, "%-d/%-m/%Y"],
];

/** Number of records that must share a value before the page lists it: as in the draft. */
const SHARED_BY = 20;

/**
 * Returns the column as another kind.
 * @param first Its values in the first records; none if the column is near-unique.
 */
export function converted(column: Column, kind: Kind, first: string[]): Column {
  const { name, nullable, missing, invalid } = column;
  const common: Column = {
    name, kind,
    ...(nullable ? { nullable } : {}),
    ...(missing ? { missing } : {}),
    ...(invalid ? { invalid } : {}),
  };
  const samples = [...new Set(first.filter((value) => value !== ""))];
  switch (kind) {
    case "categorical":
      return { ...common, categories: texts(column, first), ...otherOf(column) };
    case "code":
      return { ...common, codes: texts(column, first), prefix: 1, ...otherOf(column) };
    case "number":
      return { ...common, ...numbers(column, samples) };
    case "date":
    case "datetime":
      return { ...common, ...times(column, kind, samples.slice(0, MAX_DATES)) };
    case "time":
      return { ...common, ...timeOfDay(samples) };
    case "duration":
      return { ...common, format: clock("%H", samples), min: "0:00", max: "24:00", bins: BINS, digits: MAX_DIGITS };
    case "identifier":
      return { name, kind, pattern: "sequence" };
    case "left-out":
      return { name, kind, reason: "its holder left it out" };
    default:
      return { ...common, min: 0, max: 100, bins: BINS };
  }
}

/**
 * Returns a column of another kind in place of a derived one.
 * @param drafted The column as drafted, before it became derived.
 */
export function turnedBack(drafted: Column, kind: Kind, first: string[]): Column {
  return drafted.kind === kind ? drafted : converted(drafted, kind, first);
}

/** Returns the name of the values outside the list, if the column has one. */
function otherOf({ other }: Column): Partial<Column> {
  return other === undefined ? {} : { other };
}

/** Returns the known texts of the column, or those that enough of the first records share. */
function texts(column: Column, first: string[]): string[] {
  const { integer, min, max } = column;
  const known = listed(column);
  if (known) return known;
  if (integer && typeof min === "number" && typeof max === "number" && max - min < MAX_NUMBERS) {
    return Array.from({ length: max - min + 1 }, (_, step) => String(min + step));
  }
  const counts = new Map<string, number>();
  for (const value of first) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].filter(([value, shared]) => value !== "" && shared >= SHARED_BY).map(([value]) => value).sort();
}

function numbers(column: Column, samples: string[]): Partial<Column> {
  const known = listed(column);
  const all = known ?? samples;
  const comma = all.some((text) => /^-?\d+,\d+$/.test(text)) && all.every((text) => !text.includes("."));
  const values = all.map((text) => Number(comma ? text.replace(",", ".") : text)).filter(Number.isFinite);
  const decimals = Math.max(0, ...all.map((text) => /[.,](\d+)$/.exec(text)?.[1]?.length ?? 0));
  const range: [number, number] = values.length > 1 ? [Math.min(...values), Math.max(...values)] : [0, 100];
  const [min, max] = known ? range : rounded(range);
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

/** Rounds a range of values outward, to a power of ten of about its size, because its ends are values of records. */
function rounded([min, max]: [number, number]): [number, number] {
  const unit = 10 ** Math.max(0, Math.ceil(Math.log10(Math.max(1, max - min))));
  return [Math.floor(min / unit) * unit, Math.ceil(max / unit) * unit || unit];
}

function timeOfDay(samples: string[]): Partial<Column> {
  const format = clock("%H", samples);
  return { format, min: "00:00", max: format.endsWith("%S") ? "23:59:59" : "23:59", bins: 24, digits: 60 };
}

/** Returns the format of times of day or durations, with the seconds of the samples. */
function clock(hours: string, samples: string[]): string {
  const seconds = samples.some((text) => /:\d{2}:\d{2}$/.test(text));
  return `${hours}:%M${seconds ? ":%S" : ""}`;
}

function times(column: Column, kind: Kind, samples: string[]): Partial<Column> {
  const { format: old, first_year, months, weekdays } = isTime(column) ? column : {};
  const written = DATES.find(([looks]) => samples.length > 0 && samples.every((text) => looks.test(text)));
  const date = written?.[1] ?? "%Y-%m-%d";
  const letter = samples[0]?.includes("T") ? "T" : " ";
  const format = kind === "date" ? date : `${date}${letter}${clock("%H", samples)}`;
  const isSame = old !== undefined && column.kind === kind;
  return {
    format: isSame ? old : format,
    ...(isSame && first_year !== undefined ? { first_year } : {}),
    ...(isSame && months ? { months } : {}),
    ...(isSame && weekdays ? { weekdays } : {}),
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
  const { relative_to: _, edges: __, clock, ...rest } = column;
  if (base === undefined) return { ...rest, ...ABSOLUTE };
  return { ...rest, ...(clock ? { clock } : {}), relative_to: base, min: 0, max: 99, bins: BINS, digits: BINS };
}

/** Replaces edges by bins of equal width. */
export function evenBins({ edges = [], ...rest }: Column): Column {
  return { ...rest, min: edges[0] as Bound, max: edges.at(-1) as Bound, bins: Math.max(1, edges.length - 1) };
}
