// Rules for columns that list their values. A schema is public, so a list must not come from a few records.
import type { Column, ColumnDraft } from "../../crypto/messages";
import { listed } from "../../components/column-words";

/** Returns whether the column lists its values. Each list is confirmed separately. */
export function hasList(column: Column): boolean {
  return listed(column) !== undefined;
}

/**
 * Returns whether a near-unique column mainly lists values of its records.
 * @param first Its values in the first records.
 */
export function listsRecords(column: Column, about: ColumnDraft | undefined, first: string[]): boolean {
  const list = listed(column);
  if (about?.flag !== "near-unique" || list === undefined) return false;
  const found = new Set(first.map((value) => value.trim()));
  return 2 * list.filter((value) => found.has(value.trim())).length > list.length;
}
