// The public rules between a schema's columns.
import type { Schema } from "../crypto/messages";
import { ruleInWords } from "./rule-words";

/** Lists the constraints of a schema. Columns that follow from another one say so themselves. */
export function RuleList({ schema: { constraints = [] } }: { schema: Schema }) {
  if (constraints.length === 0) return null;
  const rules = constraints.map(ruleInWords);
  return (
    <>
      <p>Rules that every record satisfies:</p>
      <ul>{rules.map((rule) => <li key={rule}>{rule}</li>)}</ul>
    </>
  );
}
