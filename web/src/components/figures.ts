// Figures of models: the distance between a fit and the noisy counts that it was made from.
import type { ModelView } from "../api/types";

export interface ColumnDistance {
  name: string;
  distance: number;
}

/** Returns the mean, or undefined for no numbers. */
export function mean(values: number[]): number | undefined {
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function median(values: number[]): number | undefined {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length / 2;
  return mean(sorted.slice(Math.ceil(middle) - 1, Math.floor(middle) + 1));
}

/** Returns shares of a whole. Noise may make a count negative; it then counts as 0. */
function shares(counts: number[]): number[] {
  const positive = counts.map((value) => Math.max(0, value));
  const sum = positive.reduce((whole, value) => whole + value, 0);
  return positive.map((value) => (sum === 0 ? 0 : value / sum));
}

/** Returns the total variation distance between the measured and the fitted counts of each column. */
export function distances({ attributes, one_ways }: ModelView): ColumnDistance[] {
  return one_ways.flatMap(({ measured, fitted }, index) => {
    if (measured.length === 0) return [];
    const [one, other] = [shares(measured), shares(fitted)];
    const distance = one.reduce((sum, share, value) => sum + Math.abs(share - (other[value] ?? 0)), 0) / 2;
    return [{ name: attributes[index] ?? "", distance }];
  });
}
