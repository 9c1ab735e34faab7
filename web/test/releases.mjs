// Whether what a job released is the table's own counts and its noise: ciphertexts made in the
// browser, computed on and decrypted by the services, beside the sums worked out here.
import { check } from "./support.mjs";

/** Standard deviations that no noise exceeds: one in 5e8 does. */
const REACH = 6;

/** By column, the code of each record's value: fhaim-domain's coding. */
function codes(schema, lines) {
  const header = lines[0].split(",");
  const records = lines.slice(1).map((line) => line.split(","));
  return schema.columns.map((column) => {
    const at = header.indexOf(column.name);
    return records.map((record) => code(column, record[at]));
  });
}

function code(column, text) {
  const missing = column.kind === "categorical" ? column.categories.length : column.bins;
  if (text === "") return missing;
  if (column.kind === "categorical") return column.categories.indexOf(text);
  const bin = Math.floor(((Number(text) - column.min) / (column.max - column.min)) * column.bins);
  return Math.min(bin, column.bins - 1);
}

/** Sums over all records of the functions of one axis, or of the products of two. */
function sums(statistic, table) {
  if (statistic === "Total") return [table[0].length];
  const axes = statistic.OneWay ? [statistic.OneWay] : statistic.Product;
  const [first, second] = axes;
  const values = (axis) => axis.functions.map((row) => table[axis.attribute].map((x) => row[x]));
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  if (!second) return values(first).map(sum);
  return values(first).flatMap((u) => values(second).map((v) => sum(u.map((x, i) => x * v[i]))));
}

/** Checks every release of a job, and prints how far they are off in standard deviations. */
export async function checkReleases(base, authorization, job, lines) {
  const get = async (path) => (await fetch(`${base}/generation/v1/${path}`, { headers: { authorization } })).json();
  const { dataset } = await get(`jobs/${job}`);
  const { terms } = await get(`datasets/${dataset}`);
  const table = codes(terms.schema, lines);
  const off = (await get(`jobs/${job}/releases`)).flatMap(({ statistic, values, sigma }) =>
    sums(statistic, table).map((sum, cell) => (values[cell] - sum) / sigma));
  const worst = Math.max(...off.map(Math.abs));
  const spread = Math.sqrt(off.reduce((total, z) => total + z * z, 0) / off.length);
  check("every release is the table's count and its noise", worst <= REACH,
    `${off.length} numbers, at most ${worst.toFixed(2)} scales off, root mean square ${spread.toFixed(3)}`);
  check("the noise has its scale", Math.abs(spread * spread - 1) < REACH * Math.sqrt(2 / off.length));
}
