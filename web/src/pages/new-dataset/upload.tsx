// Progress of encryption and upload, with pause and resume.
import type { Dataset } from "../../api/types";
import type { Phase, Progress } from "../../crypto/upload";
import { begin, drop, uploadOf } from "../../crypto/uploads";
import { bytes, count, Facts, Notice, seconds } from "../../components/ui";

/** Seconds before the rate is shown: earlier values are unreliable. */
const MEASURED_SECONDS = 0.5;

const WORDS: Record<Phase, string> = {
  preparing: "Reading the table and creating its keys…",
  sending: "Encrypting and sending. You can visit other pages here, but keep this tab open.",
  paused: "Paused. The sent data is kept.",
  sealing: "Everything is sent; the service checks it…",
  done: "Done. The dataset is ready.",
  failed: "The upload stopped.",
};

export function UploadCard({ dataset, progress }: { dataset: Dataset; progress: Progress }) {
  const { phase, trouble } = progress;
  const upload = uploadOf(dataset.id);
  return (
    <section className="card">
      <h2>{phase === "done" ? "Encrypted and uploaded" : "Encryption and upload"}</h2>
      <p role="status">{WORDS[phase]}</p>
      <progress aria-label="Objects sent" max={Math.max(1, progress.objects)} value={progress.done} />
      <Figures progress={progress} />
      {trouble && <Notice tone={phase === "failed" ? "bad" : "warn"}><p>{trouble}</p></Notice>}
      <div className="row">
        {phase === "sending" && <button type="button" onClick={() => upload?.pause()}>Pause</button>}
        {phase === "paused" && <button type="button" className="main" onClick={() => upload?.resume()}>Resume</button>}
        {phase === "done" && <button type="button" onClick={() => drop(dataset.id)}>Close</button>}
        {phase === "failed" && upload && (
          <>
            <button type="button" className="main" onClick={() => begin(dataset, upload.file, upload.read, upload.used)}>Resume</button>
            <button type="button" onClick={() => drop(dataset.id)}>Choose another file</button>
          </>
        )}
      </div>
    </section>
  );
}

function Figures({ progress }: { progress: Progress }) {
  const { done, objects, bytesSent, sendingMs } = progress;
  const elapsed = sendingMs / 1000;
  const rate = elapsed > MEASURED_SECONDS ? bytesSent / elapsed : 0;
  const perObject = done > 0 && bytesSent > 0 ? bytesSent / done : 0;
  const left = rate > 0 ? ((objects - done) * perObject) / rate : 0;
  return (
    <Facts items={[
      ["Encrypted and sent", `${count(done)} of ${count(objects)}`],
      ["Sent", bytes(bytesSent)],
      ["Time", `${elapsed.toFixed(1)} s`],
      ["Rate", rate > 0 ? `${bytes(rate)}/s` : "–"],
      ...(done < objects ? [["Left", left > 0 ? seconds(left) : "–"] as [string, string]] : []),
    ]} />
  );
}
