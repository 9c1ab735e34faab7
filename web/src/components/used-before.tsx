// Earlier uses of the same records, and their total cost including one more use.
import { useEffect, useState } from "react";
import { Link } from "react-router";
import type { Composed } from "../crypto/messages";
import type { Used } from "../crypto/memory";
import { useSession } from "../crypto/session";
import { Notice } from "./ui";

/** `next` is the cost of the planned use as a count of 2^-80, or undefined until it is known. */
export function UsedBefore({ used, next, delta }: { used: Used; next: string | undefined; delta: number }) {
  const before = useComposed(used.before.map(({ rho }) => rho), delta);
  const together = useComposed([...used.before.map(({ rho }) => rho), ...(next ? [next] : [])], delta);
  return (
    <Notice tone="warn">
      <p>These records were uploaded before from this browser. The costs of datasets over the same records add up:</p>
      <ul>
        {used.before.map(({ dataset, name, rho }) => (
          <li key={dataset}><Link to={`/datasets/${dataset}`}>{name}</Link>: <Rho exact={rho} /></li>
        ))}
      </ul>
      {before && together && next && (
        <p>
          Together ρ {before.rho.toPrecision(3)}, ε {before.epsilon.toFixed(2)} at δ {delta.toExponential()};
          with this dataset ρ {together.rho.toPrecision(3)}, ε {together.epsilon.toFixed(2)}.
        </p>
      )}
    </Notice>
  );
}

function Rho({ exact }: { exact: string }) {
  return <>ρ {(Number(exact) / 2 ** 80).toPrecision(3)} for all its jobs</>;
}

/** Returns the total of several costs. */
function useComposed(costs: string[], delta: number): Composed | undefined {
  const session = useSession();
  const [composed, setComposed] = useState<{ key: string; sum: Composed }>();
  const key = `${costs.join()} ${delta}`;
  useEffect(() => {
    let current = true;
    // If the costs cannot be added up, only the list is shown.
    session?.compose(costs, delta).then((sum) => current && setComposed({ key, sum }), () => undefined);
    return () => {
      current = false;
    };
    // The array of costs is new in every render; the key says whether the costs changed.
  }, [session, key]);
  return composed?.key === key ? composed.sum : undefined;
}
