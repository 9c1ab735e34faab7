// One holder's records: checked against the schema without sending anything, then encrypted and uploaded.
import { useState } from "react";
import type { Dataset } from "../../api/types";
import { usesOf, type Used } from "../../crypto/memory";
import type { Part, ReadOptions, ReadTable } from "../../crypto/messages";
import { recall } from "../../crypto/remembered";
import { useReading } from "../../crypto/session";
import { begin } from "../../crypto/uploads";
import { count, counted, Notice, Reading, Trouble } from "../../parts/ui";
import { UsedBefore } from "../../parts/used-before";

interface Fitting {
  file: File;
  read: ReadOptions;
  table: ReadTable;
  part: Part;
  used: Used;
}

export function OwnPart({ dataset, part: number }: { dataset: Dataset; part: number }) {
  const [fitting, setFitting] = useState<Fitting>();
  const { reading, error, read: readIn, stop } = useReading();
  const check = (file: File | undefined) => file && void readIn(file, async (session, onRead) => {
    setFitting(undefined);
    const part = await session.part(dataset.terms, number);
    const read = await recall(dataset, part.schema, file, session);
    const table = await session.read(file, read, onRead);
    if (table.records > part.record_bound) {
      throw new Error(`${file.name} has ${count(table.records)} records, and your card says at most ${count(part.record_bound)}.`);
    }
    setFitting({ file, read, table, part, used: await usesOf(file, dataset) });
  });
  return (
    <section className="card">
      <h2>Your records</h2>
      <p>
        Choose your table: it is held against the columns below here, in this browser, and nothing of it is
        sent before you say so. An upload that was broken off goes on with the same file.
      </p>
      {reading ? <Reading {...reading} onStop={stop} /> : (
        <>
          <label htmlFor="own-part">Your table, as a CSV file</label>
          <input id="own-part" type="file" accept=".csv,text/csv,text/plain" onChange={(event) => check(event.target.files?.[0])} />
        </>
      )}
      <Trouble error={error} />
      {fitting && (
        <>
          <Notice tone="good">
            <p>{fitting.file.name} fits: {counted(fitting.table.records, "record")}. Nothing was sent.{left(fitting.table)}</p>
          </Notice>
          {fitting.used.before.length > 0 && <UsedBefore used={fitting.used} next={dataset.budget.exact} delta={dataset.terms.delta} />}
          <button type="button" className="main" onClick={() => begin(dataset, number, fitting.file, fitting.read, fitting.used)}>
            Encrypt and upload your records
          </button>
        </>
      )}
    </section>
  );
}

function left({ left_out }: ReadTable): string {
  return left_out.length === 0 ? "" : ` Its columns ${left_out.join(", ")} are not in the schema, and stay here.`;
}
