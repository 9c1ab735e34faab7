// Figures of models: how far a fit is from the noisy counts that it was made of.
import type { ModelView } from "../api/types";

export interface ColumnDistance {
  name: string;
  distance: number;
}

/** Of no numbers there is no mean. */
export function mean(values: number[]): number | undefined {
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function median(values: number[]): number | undefined {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length / 2;
  return mean(sorted.slice(Math.ceil(middle) - 1, Math.floor(middle) + 1));
}

/** Shares of a whole; noise may make a count negative, which is no share. */
function shares(counts: number[]): number[] {
  const positive = counts.map((value) => Math.max(0, value));
  const sum = positive.reduce((whole, value) => whole + value, 0);
  return positive.map((value) => (sum === 0 ? 0 : value / sum));
}

/** Total variation between what was measured of each column and what the model has. */
export function distances({ attributes, one_ways }: ModelView): ColumnDistance[] {
  return one_ways.flatMap(({ measured, fitted }, index) => {
    if (measured.length === 0) return [];
    const [one, other] = [shares(measured), shares(fitted)];
    const distance = one.reduce((sum, share, value) => sum + Math.abs(share - (other[value] ?? 0)), 0) / 2;
    return [{ name: attributes[index] ?? "", distance }];
  });
}
