// Whether a second computation service is to compute everything too: what that buys, and what it costs.
interface Props {
  chosen: boolean;
  onChange: (chosen: boolean) => void;
}

/** Shown only where the services know a second one. */
export function Second({ chosen, onChange }: Props) {
  return (
    <details className="card" open={chosen}>
      <summary>A second computation service</summary>
      <p>
        The service that computes on your encrypted records could compute something else than it was asked, such as
        counts without noise. With a second one, both compute everything, and the crypto service decrypts nothing
        that they do not agree on. That helps where different people run the two: ask who does.
      </p>
      <p>
        It costs time: the second copies your upload from the first, jobs wait for the slower of the two, and while
        either is away they wait for it. You encrypt and send no more than without.
      </p>
      <label className="check">
        <input type="checkbox" checked={chosen} onChange={(event) => onChange(event.target.checked)} />
        <span>Have a second computation service compute everything too</span>
      </label>
    </details>
  );
}
