// The report on a synthetic table from crates/eval: first the summary, then the failed checks, the worst first.
import type { Report, Reported, Severity } from "../crypto/messages";
import { Bars, Heatmap, Legend } from "../components/charts";
import { save } from "../components/save";
import { count, Facts, Notice } from "../components/ui";

const TONES: Record<Severity, string> = { minor: "warn", major: "bad" };
const WORDS: Record<Severity, string> = { minor: "slight", major: "severe" };

export function ReportView({ name, reported: { report, page } }: { name: string; reported: Reported }) {
  const download = () => save(new Blob([page], { type: "text/html" }), `${name}-report.html`);
  return (
    <>
      <Notice tone="warn"><p>{report.statement}</p></Notice>
      <div className="row ends">
        <h3>Assessment</h3>
        <button type="button" onClick={download}>Download the report</button>
      </div>
      <ul className="assessment">{report.assessment.summary.map((sentence) => <li key={sentence}>{sentence}</li>)}</ul>
      <Facts items={[
        ["Real records", count(report.real_records)],
        ["Synthetic records", count(report.synthetic_records)],
      ]} />
      <Findings report={report} />
      <Values report={report} />
      <h3>Distance of every pair of columns</h3>
      <p className="small quiet">Total variation: 0 if both tables have the same shares, 1 if they have nothing in common. Full colour begins at 0.2.</p>
      <Heatmap names={report.columns.map((column) => column.name)} values={report.pair_total_variation} full={0.2} />
      <Shares report={report} />
    </>
  );
}

function Findings({ report: { assessment: { findings } } }: { report: Report }) {
  if (findings.length === 0) return null;
  return (
    <>
      <h3>Failed checks, the worst first</h3>
      <ol className="findings">
        {findings.map(({ text, severity }) => (
          <li key={text}><span className={`tag ${TONES[severity]}`}>{WORDS[severity]}</span> {text}</li>
        ))}
      </ol>
    </>
  );
}

const shown = (value: number | null) => (value === null ? "–" : value.toFixed(3));
const percent = (share: number) => `${(100 * share).toFixed(1)} %`;

/** Compares single values instead of bins. */
function Values({ report: { values } }: { report: Report }) {
  if (values.length === 0) return null;
  return (
    <>
      <h3>Original values</h3>
      <div className="scroll" tabIndex={0} role="region" aria-label="Original values">
        <table>
          <thead>
            <tr>
              <th>Column</th><th className="number">Single values</th><th className="number">Kolmogorov-Smirnov</th>
              <th className="number">Wasserstein</th><th>Missing</th><th>Furthest value</th>
            </tr>
          </thead>
          <tbody>
            {values.map(({ name, total_variation, kolmogorov_smirnov, wasserstein, missing, furthest }) => (
              <tr key={name}>
                <td>{name}</td>
                <td className="number">{shown(total_variation)}</td>
                <td className="number">{shown(kolmogorov_smirnov)}</td>
                <td className="number">{shown(wasserstein)}</td>
                <td>{percent(missing.real)} real, {percent(missing.synthetic)}</td>
                <td>{furthest ? `${furthest.value}: ${percent(furthest.shares.real)} real, ${percent(furthest.shares.synthetic)}` : "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p className="small quiet">Distances from 0 to 1: between the shares of single values; between the shares below a number; and the share of its range by which a number has to move.</p>
    </>
  );
}

function Shares({ report: { columns } }: { report: Report }) {
  return (
    <>
      <h3>Shares of every column’s values</h3>
      <Legend items={[{ name: "real", className: "two" }, { name: "synthetic", className: "one" }]} />
      <div className="grid">
        {columns.map(({ name, binning, labels, real, synthetic }) => (
          <div key={name}>
            <h3>{name}</h3>
            <p className="small quiet">{binning}</p>
            <Bars title={`${name}, real and synthetic shares`} labels={labels} limit={12} series={[
              { name: "real", className: "two", values: real },
              { name: "synthetic", className: "one", values: synthetic },
            ]} />
          </div>
        ))}
      </div>
    </>
  );
}
