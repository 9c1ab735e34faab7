// The rules between columns: proposed ones, which are off until the holder accepts them, and others of the schema.
import { useRef, useState } from "react";
import type { Column, Drafted, ProposedRule, Schema } from "../../crypto/messages";
import type { HolderSession } from "../../crypto/session";
import { pairs } from "../../components/column-words";
import { ruleInWords } from "../../components/rule-words";
import { counted, Trouble } from "../../components/ui";
import { isAccepted, otherConstraints, shownRules, withdrawn, without } from "./rules";

interface Props {
  drafted: Drafted;
  /** The columns as drafted. */
  original: Column[];
  session: HolderSession | undefined;
  onEdit: (schema: Schema) => void;
}

export function RulesCard({ drafted: { schema, rules, rules_statement }, original, session, onEdit }: Props) {
  /** The text of the rule that the module adds to the schema. */
  const [pending, setPending] = useState<string>();
  const [error, setError] = useState<unknown>();
  const latest = useRef(schema);
  latest.current = schema;
  const accept = async (rule: ProposedRule) => {
    if (!session || pending !== undefined) return;
    setPending(rule.rule);
    setError(undefined);
    try {
      const accepted = await session.accept(schema, [rule]);
      // An edit in the meantime is not overwritten: the rule stays off.
      if (latest.current === schema) onEdit(accepted);
    } catch (problem) {
      setError(problem);
    } finally {
      setPending(undefined);
    }
  };
  const shown = shownRules(rules, schema, original);
  const others = otherConstraints(shown, schema);
  if (shown.length + others.length === 0) return null;
  return (
    <div className="card rules">
      <h2>Rules between columns</h2>
      {shown.length > 0 && <p>{rules_statement}</p>}
      <p>Accepted rules become public with the columns, and every synthetic record satisfies them.</p>
      <ul>
        {shown.map((rule) => (
          <Rule key={rule.rule} text={rule.rule} rule={rule}
            isOn={isAccepted(rule, schema) || rule.rule === pending}
            onChange={(isOn) => (isOn ? void accept(rule) : onEdit(withdrawn(schema, rule, original)))} />
        ))}
        {others.map((constraint) => (
          <Rule key={ruleInWords(constraint)} text={ruleInWords(constraint)} isOn
            onChange={() => onEdit(without(schema, constraint))} />
        ))}
      </ul>
      <Trouble error={error} />
    </div>
  );
}

interface RuleProps {
  text: string;
  isOn: boolean;
  /** The proposal, if the rule is one. */
  rule?: ProposedRule;
  onChange: (isOn: boolean) => void;
}

function Rule({ text, isOn, rule, onChange }: RuleProps) {
  const values = rule && "column" in rule.change ? rule.change.column.values : undefined;
  return (
    <li>
      <label className="check">
        <input type="checkbox" checked={isOn} onChange={(event) => onChange(event.target.checked)} />
        <span>
          {text} {rule && <span className="quiet">supported by {counted(rule.records, "record")}</span>}
        </span>
      </label>
      {values && (
        <details>
          <summary>{counted(Object.keys(values).length, "value")}</summary>
          <p className="small">{pairs(values).join(", ")}</p>
        </details>
      )}
    </li>
  );
}
