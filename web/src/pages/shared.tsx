// A result as another account's link shows it: its data card, a preview and the download, and nothing else.
import { Link, useLocation, useParams } from "react-router";
import { call, isMissing, json } from "../api/client";
import type { LinkedResult } from "../api/types";
import { describe } from "../components/column-words";
import { RuleList } from "../components/rule-list";
import { columnsOf, dataCard } from "../components/data-card";
import { asked, Download, Preview, type Source } from "../components/draw";
import { save } from "../components/save";
import { count, Facts, Loading, Trouble, useLoad, useTitle, When } from "../components/ui";

/** Header with the link's secret, sent with each call. The secret is never part of a URL. */
const HEADER = "fhaim-link";

export default function SharedPage() {
  const { link = "" } = useParams();
  const headers = { [HEADER]: useLocation().hash.slice(1) };
  const path = `/v1/links/${link}`;
  useTitle("Synthetic table");
  const { value, error, reload } = useLoad(() => json<LinkedResult>("generation", "GET", path, { headers }), `${link} ${headers[HEADER]}`);
  if (isMissing(error)) return <main id="content"><OpensNothing /></main>;
  return (
    <main id="content">
      <Trouble error={error} retry={reload} />
      {!value && error === undefined && <Loading />}
      {value && <Shared result={value} source={{
        key: link,
        schema: value.schema,
        total: value.total,
        labels: (column) => value.attributes.find(({ name }) => name === column)?.labels ?? [],
        draw: (query) => call("generation", "GET", `${path}/synthetic?${asked(query)}`, { headers }),
      }} />}
    </main>
  );
}

function OpensNothing() {
  return (
    <section role="alert">
      <h1>This link does not open</h1>
      <p>It was revoked or has expired, its result was deleted, or it is incomplete: the part after the # is needed too. Ask the sender for another link.</p>
      <p><Link className="button" to="/">Go to your datasets</Link></p>
    </section>
  );
}

function Shared({ result, source }: { result: LinkedResult; source: Source }) {
  return (
    <>
      <h1>Synthetic {result.name}</h1>
      <p className="quiet">Another account shares this with you: synthetic records and how they were made, but no real records.</p>
      <Facts items={[
        ["Estimated records", count(result.total)],
        ["Columns", columnsOf(result.schema)],
        ["Epsilon of all jobs", result.epsilon],
        ["Delta", result.delta.toExponential()],
        ["Created", <When at={result.made_at} />],
      ]} />
      <Card result={result} />
      <Download source={source} />
      <Preview source={source} />
    </>
  );
}

function Card({ result }: { result: LinkedResult }) {
  const { schema } = result;
  return (
    <section className="card">
      <div className="row ends">
        <h2>Before you use it</h2>
        <button type="button" onClick={() => save(new Blob([dataCard(result)], { type: "text/plain" }), `${schema.name}-data-card.txt`)}>Data card</button>
      </div>
      <ul>{result.caveats.map((caveat) => <li key={caveat}>{caveat}</li>)}</ul>
      <details>
        <summary>Columns</summary>
        <RuleList schema={schema} />
        <div className="scroll" tabIndex={0} role="region" aria-label="Columns">
          <table>
            <thead><tr><th>Column</th><th>Values</th></tr></thead>
            <tbody>
              {schema.columns.map((column) => <tr key={column.name}><td>{column.name}</td><td>{describe(column)}</td></tr>)}
            </tbody>
          </table>
        </div>
      </details>
    </section>
  );
}
