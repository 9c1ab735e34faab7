import { Copyable } from "./ui";

/** Shell commands that do the same as these pages. */
export function CommandLine() {
  const commands = [
    `fhaim account login --server ${window.location.origin} --email you@example.org`,
    "fhaim schema infer --data table.csv --out table.schema.json",
    "# correct table.schema.json: everything in it becomes public",
    "dataset=$(fhaim dataset create --schema table.schema.json --data table.csv --epsilon 1)",
    "fhaim dataset upload \"$dataset\" --data table.csv",
    "job=$(fhaim job run \"$dataset\" | cut -d ' ' -f 1)",
    "fhaim job watch \"$job\"",
    "fhaim download \"$job\" --out synthetic.csv",
  ].join("\n");
  return (
    <div className="card">
      <p>The command line does the same. It uses all cores and reads tables of any size:</p>
      <Copyable text={commands} />
    </div>
  );
}
