// A table for trying everything before using a real one. It is generated here, and its people do
// not exist.

const RECORDS = 2000;
const WARDS = ["surgery", "medicine", "maternity", "paediatrics"];
/** Middle and spread of the ages of a ward's patients. */
const AGES: [number, number][] = [[58, 22], [70, 14], [31, 6], [8, 6]];

/** Returns numbers from 0 to 1, the same each time (Park and Miller's generator). */
function numbers(): () => number {
  let state = 20_260_101;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

function stay(next: () => number): string {
  const place = Math.min(3, Math.floor(5 * next() * next()));
  const [middle, spread] = AGES[place] ?? [50, 20];
  const age = Math.round(Math.min(99, Math.max(0, middle + spread * (next() + next() + next() - 1.5))));
  const days = Math.max(1, Math.round((1 + age / 30) * -Math.log(1 - next())));
  const weight = Math.max(2.5, (age < 18 ? 4 + 3.3 * age : 76) * (0.85 + 0.3 * next()));
  const isBack = next() < 0.04 + (age > 65 ? 0.12 : 0) + (days > 6 ? 0.1 : 0);
  // A few patients were not weighed.
  return [WARDS[place], age, days, next() < 0.03 ? "" : weight.toFixed(1), isBack ? "yes" : "no"].join(",");
}

/** 2,000 stays at a hospital that does not exist. */
export function exampleTable(): File {
  const next = numbers();
  const lines = Array.from({ length: RECORDS }, () => stay(next));
  const text = `ward,age,days,weight,readmitted\n${lines.join("\n")}\n`;
  return new File([text], "example.csv", { type: "text/csv", lastModified: 0 });
}
