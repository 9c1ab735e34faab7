// Step 3: the privacy budget, with its effect on this table's counts.
import { useState } from "react";
import { hasWitness } from "../../api/client";
import type { Terms } from "../../api/types";
import { usesOf, type Used } from "../../crypto/memory";
import type { Planned, ReadOptions, ReadTable, Schema } from "../../crypto/messages";
import { workersFor } from "../../crypto/upload";
import { Bars } from "../../components/charts";
import { Confirmed, count, counted, Facts, Field, Notice, Trouble, useLoad, useWork } from "../../components/ui";
import { rulesInWords } from "../../components/rule-words";
import { UsedBefore } from "../../components/used-before";
import { targets, termsOf, type Choice } from "./choice";
import { figures, LargeUpload, useMechanisms, useObjectSeconds, useOffer } from "./estimate";
import { Second } from "./second";
import { Signal } from "./signal";

interface Props {
  file: File;
  read: ReadOptions;
  table: ReadTable;
  choice: Choice;
  onChoice: (choice: Choice) => void;
  onBack: () => void;
  onCreate: (used: Used, name: string, terms: Terms) => Promise<void>;
}

type Change = (change: Partial<Choice>) => void;

/** The slider's positions are tenths of a decade: 0.1 to 30. */
const epsilonAt = (position: number) => Number((10 ** (position / 10)).toPrecision(2));
const positionOf = (epsilon: number) => Math.round(10 * Math.log10(epsilon));

export function BudgetStep({ file, read, table, choice, onChoice, onBack, onCreate }: Props) {
  const { value: used, error: unread } = useLoad(() => usesOf(file), file.name);
  const { value: second, error: unknown } = useLoad(hasWitness, "");
  const change: Change = (changed) => onChoice({ ...choice, ...changed });
  const terms = termsOf(read.schema, table, choice);
  const { name, ...rest } = choice;
  const { offer, error: refused } = useOffer(terms, table.records, JSON.stringify(rest));
  const plan = offer?.plan;
  return (
    <section>
      <Explained />
      <div className="grid two">
        <div className="column">
          <Budget choice={choice} onChange={change} />
          <Purpose choice={choice} schema={read.schema} onChange={change} />
        </div>
        <div className="column">
          <NoisePicture table={table} plan={plan} />
          <Named name={name} onName={(name) => change({ name })} table={table} plan={plan} />
        </div>
      </div>
      <Signal table={table} plan={plan} />
      <Changes table={table} />
      <PublicRules schema={read.schema} />
      {second && <Second chosen={choice.witness} onChange={(witness) => change({ witness })} />}
      <Trouble error={unknown} />
      <Trouble error={refused} />
      <Notice>
        <p>All of this, including the budget, is fixed once the dataset is created. The budget that a job spends cannot be recovered.</p>
      </Notice>
      <Trouble error={unread} />
      {used && used.before.length > 0 && <UsedBefore used={used} next={plan?.budget} delta={choice.delta} />}
      <Create used={used} disabled={!offer || name.trim() === ""} onBack={onBack}
        onCreate={async (used) => { if (offer) await onCreate(used, name, offer.terms); }} />
    </section>
  );
}

/** Shows how many values were changed while the table was read. */
function Changes({ table }: { table: ReadTable }) {
  const changes = table.columns.flatMap(({ name, clamped, other, invalid }) => [
    ...(clamped > 0 ? [`${name}: ${counted(clamped, "number")} clipped to the nearest limit`] : []),
    ...(other > 0 ? [`${name}: ${counted(other, "value")} outside the list counted as the one for other values`] : []),
    ...(invalid > 0 ? [`${name}: ${counted(invalid, "invalid value")} read as missing`] : []),
  ]);
  if (changes.length === 0) return null;
  return (
    <Notice tone="warn">
      <p>Values of the file that do not match the columns:</p>
      <ul>{changes.map((text) => <li key={text}>{text}</li>)}</ul>
    </Notice>
  );
}

/** Shows the rules between columns, which are public. */
function PublicRules({ schema }: { schema: Schema }) {
  const rules = rulesInWords(schema);
  if (rules.length === 0) return null;
  return (
    <Notice>
      <p>These rules become public with the columns, and every synthetic record satisfies them:</p>
      <ul>{rules.map((rule) => <li key={rule}>{rule}</li>)}</ul>
    </Notice>
  );
}

/** Creates the dataset. For records that were used before, it asks for confirmation first. */
function Create(props: { used: Used | undefined; disabled: boolean; onBack: () => void; onCreate: (used: Used) => Promise<void> }) {
  const { used, disabled, onBack, onCreate } = props;
  const { busy, error, run } = useWork();
  const label = "Encrypt and upload";
  return (
    <>
      <Trouble error={error} />
      <div className="row">
        <button type="button" onClick={onBack}>Back</button>
        {used && used.before.length > 0 ? (
          <Confirmed label={label} title="Use the same records again?" tone="main" dismiss="Not now" disabled={disabled}
            action={() => onCreate(used)}>
            <p>They were uploaded before from this browser. The spending of this dataset’s jobs adds to the earlier spending, as shown on the page.</p>
          </Confirmed>
        ) : (
          <button type="button" className="main" disabled={busy || disabled || !used} onClick={() => used && void run(() => onCreate(used))}>{label}</button>
        )}
      </div>
    </>
  );
}

const PRESETS = [
  { name: "Strong", epsilon: 0.5, words: "for very sensitive records, at the cost of coarse tables" },
  { name: "Balanced", epsilon: 1, words: "as in most publications" },
  { name: "Detailed", epsilon: 5, words: "more detail, for trusted readers" },
];

function Budget({ choice, onChange }: { choice: Choice; onChange: Change }) {
  const { epsilon, delta, runs } = choice;
  return (
    <div className="card">
      <h2>The budget</h2>
      <fieldset className="presets">
        <legend>How much protection?</legend>
        {PRESETS.map((preset) => (
          <label key={preset.name} className="check">
            <input type="radio" name="preset" checked={epsilon === preset.epsilon} onChange={() => onChange({ epsilon: preset.epsilon })} />
            <span><strong>{preset.name}</strong> (ε {preset.epsilon}): {preset.words}</span>
          </label>
        ))}
      </fieldset>
      <Field label="Jobs that share it" hint={<Shared runs={runs} />}>
        {(id, hint) => (
          <select id={id} aria-describedby={hint} value={runs} onChange={(event) => onChange({ runs: Number(event.target.value) })}>
            {[1, 2, 3, 4, 5, 8, 10].map((value) => <option key={value}>{value}</option>)}
          </select>
        )}
      </Field>
      <details>
        <summary>Advanced: epsilon, delta, uploaded data</summary>
        <Advanced choice={choice} onChange={onChange} />
      </details>
      <p className="small quiet">ε {epsilon} at δ {delta.toExponential()} for all jobs together.</p>
    </div>
  );
}

function Advanced({ choice: { epsilon, delta, contribution }, onChange }: { choice: Choice; onChange: Change }) {
  return (
    <>
      <Field label={`Epsilon: ${epsilon}`} hint="A smaller epsilon protects more, with more noise. 1 is a common choice; above 10 the protection is weak.">
        {(id, hint) => (
          <input id={id} aria-describedby={hint} type="range" min={-10} max={15} value={positionOf(epsilon)}
            aria-valuetext={String(epsilon)} onChange={(event) => onChange({ epsilon: epsilonAt(Number(event.target.value)) })} />
        )}
      </Field>
      <Field label="Delta" hint="Probability that the guarantee fails: it should be far below one divided by the number of records.">
        {(id, hint) => (
          <select id={id} aria-describedby={hint} value={delta} onChange={(event) => onChange({ delta: Number(event.target.value) })}>
            {[1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12].map((value) => <option key={value} value={value}>{value.toExponential()}</option>)}
          </select>
        )}
      </Field>
      <Field label="Uploaded data (encrypted)" hint="Counts take megabytes for any number of records, and do not reveal this number. Tables of three columns cannot be released from them.">
        {(id, hint) => (
          <select id={id} aria-describedby={hint} value={contribution}
            onChange={(event) => onChange({ contribution: event.target.value as Choice["contribution"] })}>
            <option value="records">every record</option>
            <option value="counts">counts of all pairs of columns</option>
          </select>
        )}
      </Field>
    </>
  );
}

/** Explains the cost of several jobs: with n jobs, the noise is larger by a factor of √n. */
function Shared({ runs }: { runs: number }) {
  return (
    <>
      A job uses the encrypted records once and produces one model, from which any number of synthetic tables
      can be drawn. {runs === 1
        ? "With one job, the model is as good as the budget allows. Choose more only if you want to try again later."
        : `With ${runs} jobs, each gets ${runs === 2 ? "half" : `1/${runs}`} of the budget, and its noise is ${Math.sqrt(runs).toFixed(1)} times as large.`}
    </>
  );
}

function Purpose({ choice, schema, onChange }: { choice: Choice; schema: Schema; onChange: Change }) {
  const { mechanism, target, weight } = choice;
  const mechanisms = useMechanisms();
  const chosen = mechanisms.find(({ name }) => name === mechanism);
  return (
    <div className="card">
      <h2>Purpose</h2>
      <Field label="Method" hint={chosen && `${chosen.about}.`}>
        {(id, hint) => (
          <select id={id} aria-describedby={hint} value={mechanism} onChange={(event) => onChange({ mechanism: event.target.value })}>
            {mechanisms.map(({ name, label }, index) => (
              <option key={name} value={name}>{index === 0 ? `${label}, recommended` : label}</option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Column to predict" hint="For example a diagnosis or an outcome. More of the budget goes to columns that depend on it.">
        {(id, hint) => (
          <select id={id} aria-describedby={hint} value={target} onChange={(event) => onChange({ target: event.target.value })}>
            <option value="">none: all columns are equal</option>
            {targets(schema).map((name) => <option key={name} value={name}>{name}</option>)}
          </select>
        )}
      </Field>
      {target !== "" && (
        <Field label="Weight of its pairs">
          {(id) => (
            <select id={id} value={weight} onChange={(event) => onChange({ weight: Number(event.target.value) })}>
              {[1, 2, 4, 8].map((times) => <option key={times} value={times}>{times === 1 ? "the same as others" : `${times} times the weight of others`}</option>)}
            </select>
          )}
        </Field>
      )}
    </div>
  );
}

interface NamedProps {
  name: string;
  onName: (name: string) => void;
  table: ReadTable;
  plan: Planned | undefined;
}

function Named({ name, onName, table, plan }: NamedProps) {
  return (
    <div className="card">
      <h2>The dataset</h2>
      <Field label="Name">
        {(id) => <input id={id} required maxLength={200} value={name} onChange={(event) => onName(event.target.value)} />}
      </Field>
      {plan && <Cost plan={plan} table={table} />}
    </div>
  );
}

function Explained() {
  return (
    <div className="card">
      <h2>How much may be learned about one person?</h2>
      <p>
        Every number that is decrypted contains random noise, drawn so that adding or removing one
        record changes the probability of any result by a factor of at most e<sup>ε</sup>, except with
        probability δ. At ε = 1 that factor is 2.7; at 0.1 it is 1.1. The noise comes from your browser,
        encrypted: no service knows it.
      </p>
    </div>
  );
}

function NoisePicture({ table, plan }: { table: ReadTable; plan: Planned | undefined }) {
  // A digit means nothing without its coarse attribute.
  const shown = table.columns.flatMap((column, attribute) => (column.digit ? [] : [attribute]));
  const [chosen, setChosen] = useState(shown[0] ?? 0);
  const column = table.columns[chosen];
  const sigma = plan?.sigmas[chosen] ?? 0;
  if (!column) return null;
  return (
    <div className="card">
      <h2>Effect on your counts</h2>
      <Field label="Column">
        {(id) => (
          <select id={id} value={chosen} onChange={(event) => setChosen(Number(event.target.value))}>
            {shown.map((attribute) => <option key={attribute} value={attribute}>{table.columns[attribute]?.name}</option>)}
          </select>
        )}
      </Field>
      <Bars title={`Counts of ${column.name} with the noise of their first release`} labels={column.labels}
        series={[{ name: "records", className: "one", values: column.counts }]} spread={2 * sigma} limit={12} />
      <p className="small quiet">
        Bars: your records, visible only on this page. Brackets: the range of 19 of 20 noisy counts at the
        first release{sigma > 0 && `, ± ${count(2 * sigma)}`}; later releases narrow it.
      </p>
    </div>
  );
}

function Cost({ plan, table }: { plan: Planned; table: ReadTable }) {
  const object = useObjectSeconds(plan, workersFor(table.records, table.columns.length));
  return (
    <>
      <Facts items={[
        ["Records", count(table.records)],
        ["Revealed record count", plan.layout ? `at most ${count(table.record_bound)}` : "nothing"],
        ...figures(plan, table.records, table.columns.length, object),
      ]} />
      <LargeUpload plan={plan} />
    </>
  );
}
