// Pictures as plain SVG. Each has a text next to it or inside it with the same information.
import { counted } from "./ui";

export interface Series {
  name: string;
  className: string;
  values: number[];
}

interface BarsProps {
  title: string;
  labels: string[];
  series: Series[];
  /** Two standard deviations around the first series, as a bracket. */
  spread?: number;
  limit?: number;
}

/** Horizontal bars by category, with the bars of all series next to each other. */
export function Bars({ title, labels, series, spread = 0, limit = 24 }: BarsProps) {
  const top = Math.max(1e-12, ...series.flatMap(({ values }) => values)) + spread;
  const percent = (value: number) => `${(100 * Math.max(0, value)) / top}%`;
  return (
    <figure className="bars" aria-label={title}>
      {labels.slice(0, limit).map((label, row) => (
        <div key={label} title={`${label}: ${series.map(({ name, values }) => `${name} ${format(values[row] ?? 0)}`).join(", ")}`}>
          <span className="bar-label">{label}</span>
          <span className="bar-track">
            {series.map(({ name, className, values }) => (
              <span key={name} className={`bar ${className}`} style={{ width: percent(values[row] ?? 0) }} />
            ))}
            {spread > 0 && <Bracket value={series[0]?.values[row] ?? 0} spread={spread} percent={percent} />}
          </span>
          <span className="bar-value">{series.map(({ values }) => format(values[row] ?? 0)).join(" / ")}</span>
        </div>
      ))}
      {labels.length > limit && <p className="small quiet">and {labels.length - limit} more</p>}
    </figure>
  );
}

function Bracket({ value, spread, percent }: { value: number; spread: number; percent: (v: number) => string }) {
  const low = Math.max(0, value - spread);
  return <span className="bracket" style={{ left: percent(low), width: percent(value + spread - low) }} />;
}

function format(value: number): string {
  if (Number.isInteger(value) || Math.abs(value) >= 10) return Math.round(value).toLocaleString("en");
  return value.toFixed(Math.abs(value) < 1 ? 3 : 1);
}

export function Legend({ items }: { items: { name: string; className: string }[] }) {
  return (
    <ul className="legend">
      {items.map(({ name, className }) => (
        <li key={name}>
          <svg width={12} height={12} aria-hidden="true"><rect width={12} height={12} rx={2} className={className} /></svg>
          {name}
        </li>
      ))}
    </ul>
  );
}

const PHASES = ["one", "two", "three", "four"];

/** A budget as one bar: the spending by part, and the rest. */
export function LedgerBar({ budget, parts }: { budget: number; parts: { name: string; rho: number }[] }) {
  let start = 0;
  const share = (rho: number) => (budget > 0 ? (100 * rho) / budget : 0);
  const spent = parts.reduce((sum, { rho }) => sum + rho, 0);
  const label = `${share(spent).toFixed(0)} % of the budget is spent`;
  return (
    <>
      <svg viewBox="0 0 100 6" preserveAspectRatio="none" width="100%" height={28} role="img" aria-label={label}>
        <rect width={100} height={6} className="left" />
        {parts.map(({ name, rho }, index) => {
          const from = start;
          start += share(rho);
          return (
            <rect key={name} x={from} width={share(rho)} height={6} className={PHASES[index % PHASES.length]}>
              <title>{`${name}: ${share(rho).toFixed(1)} %`}</title>
            </rect>
          );
        })}
      </svg>
      <Legend items={[
        ...parts.map(({ name, rho }, index) => ({
          name: `${name} ${share(rho).toFixed(1)} %`,
          className: PHASES[index % PHASES.length] ?? "one",
        })),
        ...(spent < 0.999 * budget ? [{ name: `left ${(100 - share(spent)).toFixed(1)} %`, className: "left" }] : []),
      ]} />
    </>
  );
}

/** Attributes on a circle, with a line for every measured pair. A larger weight makes the line thicker. */
export function ModelGraph(props: { attributes: string[]; pairs: number[][]; weights: number[] }) {
  const { attributes, pairs, weights } = props;
  const heaviest = Math.max(1e-12, ...weights);
  const [size, radius] = [460, 140];
  const at = (index: number, far: number): [number, number] => {
    const angle = (2 * Math.PI * index) / attributes.length - Math.PI / 2;
    return [size / 2 + far * Math.cos(angle), size / 2 + far * Math.sin(angle) * 0.92];
  };
  const label = `${counted(attributes.length, "column")}, ${counted(pairs.length, "measured pair")}`;
  return (
    <svg className="graph" viewBox={`-80 50 ${size + 160} ${size - 110}`} width={size + 160} role="img" aria-label={label}>
      {pairs.map(([a = 0, b = 0], index) => {
        const [[x1, y1], [x2, y2]] = [at(a, radius), at(b, radius)];
        return (
          <line key={`${a}-${b}`} {...{ x1, y1, x2, y2 }} stroke="var(--one)" opacity={0.65}
            strokeWidth={0.5 + 5.5 * ((weights[index] ?? 0) / heaviest)}>
            <title>{`${attributes[a]} and ${attributes[b]}`}</title>
          </line>
        );
      })}
      {attributes.map((name, index) => {
        const [x, y] = at(index, radius);
        const [tx, ty] = at(index, radius + 14);
        const side = Math.abs(tx - size / 2) < 20 ? "middle" : tx > size / 2 ? "start" : "end";
        return (
          <g key={name}>
            <circle cx={x} cy={y} r={6} className="one"><title>{name}</title></circle>
            <text x={tx} y={ty + 4} textAnchor={side}>{name.length > 14 ? `${name.slice(0, 13)}…` : name}</text>
          </g>
        );
      })}
    </svg>
  );
}
