// Choice of a second computation service that also computes everything, with its benefit and its cost.
interface Props {
  chosen: boolean;
  onChange: (chosen: boolean) => void;
}

/** Shown only if the services know a second one. */
export function Second({ chosen, onChange }: Props) {
  return (
    <details className="card" open={chosen}>
      <summary>A second computation service</summary>
      <p>
        The service that computes on your encrypted records could return other results than requested, such as counts
        without noise. With a second one, both compute everything, and the crypto service decrypts only results on
        which they agree. This helps if different operators run the two: ask who they are.
      </p>
      <p>
        It costs time: the second service copies your upload from the first, and jobs wait for the slower of the two,
        also while one is unavailable. You encrypt and send the same amount of data.
      </p>
      <label className="check">
        <input type="checkbox" checked={chosen} onChange={(event) => onChange(event.target.checked)} />
        <span>Let a second computation service compute everything too</span>
      </label>
    </details>
  );
}
