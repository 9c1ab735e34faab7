// A holder's card: what whoever makes a dataset of several holders needs of each.
import { useState, type FormEvent } from "react";
import { get } from "../api/client";
import type { Account, Member } from "../api/types";
import { holderKey } from "../crypto/holder-key";
import { Copyable, Facts, Field, Notice, Trouble, useTitle, useWork } from "../parts/ui";
import { Fingerprint } from "./new-dataset/holders";

export default function Join() {
  useTitle("Join a dataset");
  const [bound, setBound] = useState("");
  const [card, setCard] = useState<Member>();
  const { busy, error, run } = useWork();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void run(async () => {
      const { id } = await get<Account>("generation", "/v1/account");
      setCard({ account: id, record_bound: Number(bound), key: (await holderKey(id)).public });
    });
  };
  return (
    <main id="content">
      <h1>Join a dataset of several holders</h1>
      <p>
        Each holder has records of the same table, encrypts them in its own browser, and shows them to nobody.
        Together they get synthetic tables of all records. Nothing of yours is sent with the card.
      </p>
      <form className="card" onSubmit={submit}>
        <Field label="Records that you have, at most" hint="Public. Your upload may have fewer, and not more.">
          {(id, hint) => (
            <input id={id} aria-describedby={hint} type="number" min={1} step={1} required value={bound}
              onChange={(event) => { setBound(event.target.value); setCard(undefined); }} />
          )}
        </Field>
        <Trouble error={error} />
        <button className="main" disabled={busy}>Make the card</button>
      </form>
      {card && <Card card={card} />}
    </main>
  );
}

function Card({ card }: { card: Member }) {
  return (
    <section className="card">
      <h2>Your card</h2>
      <p>Send it to whoever makes the dataset, by e-mail or any other way: nothing in it is secret.</p>
      <Copyable text={JSON.stringify(card, null, 2)} />
      <Facts items={[["Fingerprint of your key", <Fingerprint of={card.key} />]]} />
      <Notice>
        <p>
          Tell the fingerprint by telephone. Once the dataset is made it is among your datasets: there you
          check your table against its columns, sign its terms with the key that this browser keeps, and upload.
        </p>
      </Notice>
    </section>
  );
}
