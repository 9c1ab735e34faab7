// A small picture of the distribution of a column's values in the first records, for the holder's eyes only.

const WIDTH = 120;
const HEIGHT = 24;
const MAX_BARS = 12;

export interface Bar {
  label: string;
  records: number;
}

/** Parses a number with either decimal mark. Returns NaN for any other text. */
function numberOf(text: string): number {
  return /^\s*-?\d+([.,]\d+)?\s*$/.test(text) ? Number(text.replace(",", ".")) : Number.NaN;
}

function evenBins(numbers: number[]): Bar[] {
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const width = (high - low) / MAX_BARS;
  const bins = Array.from({ length: MAX_BARS }, (_, bin) => ({ label: `from ${Number((low + bin * width).toPrecision(4))}`, records: 0 }));
  for (const value of numbers) {
    const bin = bins[Math.min(MAX_BARS - 1, Math.floor((value - low) / width))];
    if (bin) bin.records += 1;
  }
  return bins;
}

/**
 * Returns the bars of some values: numbers in order, in equal bins if there are many; otherwise the most frequent
 * texts.
 */
export function barsOf(values: string[]): Bar[] {
  const counts = new Map<string, number>();
  for (const value of values) if (value !== "") counts.set(value, (counts.get(value) ?? 0) + 1);
  const distinct = [...counts].map(([label, records]) => ({ label, records }));
  const areNumbers = distinct.length > 0 && distinct.every(({ label }) => !Number.isNaN(numberOf(label)));
  if (!areNumbers) return distinct.sort((a, b) => b.records - a.records).slice(0, MAX_BARS);
  if (distinct.length > MAX_BARS) return evenBins(values.filter((value) => value !== "").map(numberOf));
  return distinct.sort((a, b) => numberOf(a.label) - numberOf(b.label));
}

/** Shows bars next to each other. */
export function Sketch({ name, values }: { name: string; values: string[] }) {
  const bars = barsOf(values);
  const most = Math.max(0, ...bars.map(({ records }) => records));
  // If every value belongs to one record, as names do, there is nothing to show.
  if (most < 2) return null;
  const step = WIDTH / Math.max(4, bars.length);
  const words = bars.map(({ label, records }) => `${label}: ${records}`).join(", ");
  return (
    <svg className="sketch" role="img" width={WIDTH} height={HEIGHT} aria-label={`${name} in the first ${values.length} records: ${words}`}>
      {bars.map(({ label, records }, place) => {
        const height = Math.max(1, (HEIGHT * records) / most);
        return (
          <rect key={place} x={place * step} y={HEIGHT - height} width={step - 1} height={height}>
            <title>{`${label}: ${records} of the first ${values.length}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}
