// Compares a job's releases with the table's own counts: the browser encrypts, the services compute
// and decrypt, and this module computes the same sums from the plain table.
import { check } from "./support.mjs";

/** Bound on the noise in standard deviations. A value exceeds it with probability 2e-9. */
const REACH = 6;

/** Returns the codes of the records' values, by attribute: a second implementation of fhaim-domain's coding. */
function codes(schema, lines) {
  const header = lines[0].split(",");
  const records = lines.slice(1).map((line) => line.split(","));
  return schema.columns.flatMap((column) => {
    const at = header.indexOf(column.name);
    const texts = records.map((record) => record[at]);
    return column.kind === "number" ? digits(column, texts) : [texts.map((text) => code(column, text))];
  });
}

function code(column, text) {
  if (column.kind !== "categorical") throw new Error(`this test has no coding of ${column.kind} columns`);
  const { categories, other, missing } = column;
  if (categories.includes(text)) return categories.indexOf(text);
  // Other values are read as `other` or, without it, as missing.
  const isMissing = text === "" || (missing ?? []).includes(text) || other === undefined;
  return isMissing ? categories.length : categories.indexOf(other);
}

/** Divides consecutive steps into `count` groups of nearly equal size. */
function cut(first, last, count) {
  const steps = last - first + 1;
  const edge = (part) => first + Math.floor((part * steps) / count);
  return Array.from({ length: count }, (_, part) => [edge(part), edge(part + 1) - 1]);
}

/** Returns the bins of steps, from edges or of equal width. */
function binsOf({ edges, min, max, bins }, step) {
  if (!edges) return cut(step(min), step(max), bins);
  const begin = edges.map(step);
  return begin.slice(1).map((next, at) => [begin[at], at + 2 === begin.length ? next : next - 1]);
}

/** Returns the attributes of a number: its bin or special value, and its part of the bin if there are several. */
function digits(column, texts) {
  const unit = 10 ** (column.decimals ?? 0);
  const step = (value) => Math.round((Number(value) * unit) / Math.round((column.step ?? 1 / unit) * unit));
  const special = (column.special ?? []).map(step).map((value) => ({ span: [value, value], special: true, parts: [[value, value]] }));
  const bins = binsOf(column, step).map((span) => {
    const parts = cut(...span, Math.min(column.digits ?? 1, span[1] - span[0] + 1));
    const has = ([first, last]) => special.filter(({ span: [value] }) => value >= first && value <= last).length <= last - first;
    return { span, special: false, parts: parts.filter(has) };
  });
  const groups = [...special, ...bins].sort((one, two) => one.parts[0][0] - two.parts[0][0] || Number(two.special) - Number(one.special));
  const find = (text) => {
    if (text === "") return [groups.length, 0];
    const value = step(text);
    const inside = ({ span: [first, last] }) => value >= first && value <= last;
    const at = groups.findIndex((group) => group.special && inside(group));
    const coarse = at >= 0 ? at : groups.findIndex((group) => !group.special && inside(group));
    return [coarse, groups[coarse].parts.findLastIndex(([first]) => first <= value)];
  };
  const found = texts.map(find);
  const hasDigit = groups.some(({ parts }) => parts.length > 1);
  return [found.map(([coarse]) => coarse), ...(hasDigit ? [found.map(([, fine]) => fine)] : [])];
}

/** Returns the sums over all records of the functions of one axis, or of the products of two. */
function sums(statistic, table) {
  if (statistic === "Total") return [table[0].length];
  const axes = statistic.OneWay ? [statistic.OneWay] : statistic.Product;
  const [first, second] = axes;
  const values = (axis) => axis.functions.map((row) => table[axis.attribute].map((x) => row[x]));
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  if (!second) return values(first).map(sum);
  return values(first).flatMap((u) => values(second).map((v) => sum(u.map((x, i) => x * v[i]))));
}

/** Checks every release of a job, and prints its distance from the counts in standard deviations. */
export async function checkReleases(base, authorization, job, lines) {
  const get = async (path) => (await fetch(`${base}/generation/v1/${path}`, { headers: { authorization } })).json();
  const { dataset } = await get(`jobs/${job}`);
  const { terms } = await get(`datasets/${dataset}`);
  const table = codes(terms.schema, lines);
  const off = (await get(`jobs/${job}/releases`)).flatMap(({ statistic, values, sigma }) =>
    sums(statistic, table).map((sum, cell) => (values[cell] - sum) / sigma));
  const worst = Math.max(...off.map(Math.abs));
  const spread = Math.sqrt(off.reduce((total, z) => total + z * z, 0) / off.length);
  check("every release is the table's count plus noise", worst <= REACH,
    `${off.length} numbers, at most ${worst.toFixed(2)} scales off, root mean square ${spread.toFixed(3)}`);
  check("the noise has the stated scale", Math.abs(spread * spread - 1) < REACH * Math.sqrt(2 / off.length));
}
