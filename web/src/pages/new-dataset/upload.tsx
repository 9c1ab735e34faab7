// Step 4, and the way back to it: encryption and upload with progress, pause and resume.
import { useEffect, useRef, useState } from "react";
import { useNavigate } from "react-router";
import type { Dataset } from "../../api/types";
import type { ReadOptions } from "../../crypto/messages";
import { remember } from "../../crypto/remembered";
import { Upload, type Phase, type Progress } from "../../crypto/upload";
import { bytes, count, Facts, Notice, seconds } from "../../parts/ui";

interface Props {
  dataset: Dataset;
  file: File;
  read: ReadOptions;
}

const WORDS: Record<Phase, string> = {
  preparing: "The keys are being made…",
  sending: "Encrypting and sending…",
  paused: "Paused. What was sent stays there.",
  sealing: "All is sent; the service checks it…",
  done: "Done. The dataset is ready.",
  failed: "The upload stopped.",
};

export function UploadStep({ dataset, file, read }: Props) {
  const [progress, setProgress] = useState<Progress>();
  const [attempt, setAttempt] = useState(0);
  const upload = useRef<Upload>(undefined);
  const navigate = useNavigate();
  useEffect(() => {
    remember(dataset.id, read);
    const made = new Upload(dataset, file, read, setProgress);
    upload.current = made;
    // Development mounts twice: the first is stopped before it has begun.
    const timer = setTimeout(() => void made.run(), 0);
    return () => {
      clearTimeout(timer);
      made.stop();
    };
  }, [dataset, file, read, attempt]);
  useLeaveWarning(progress?.phase === "sending");
  if (!progress) return null;
  const { phase, trouble } = progress;
  return (
    <section className="card">
      <h2>Encrypting {dataset.name}</h2>
      <p role="status">{WORDS[phase]}</p>
      <progress aria-label="Objects sent" max={Math.max(1, progress.objects)} value={progress.done} />
      <Figures progress={progress} />
      {trouble && <Notice tone={phase === "failed" ? "bad" : "warn"}><p>{trouble}</p></Notice>}
      <div className="row">
        {phase === "sending" && <button type="button" onClick={() => upload.current?.pause()}>Pause</button>}
        {phase === "paused" && <button type="button" className="main" onClick={() => upload.current?.resume()}>Resume</button>}
        {phase === "failed" && <button type="button" className="main" onClick={() => setAttempt(attempt + 1)}>Go on</button>}
        {phase === "done" && (
          <button type="button" className="main" onClick={() => void navigate(`/datasets/${dataset.id}`)}>
            Go to the dataset
          </button>
        )}
      </div>
    </section>
  );
}

function Figures({ progress }: { progress: Progress }) {
  const { done, objects, bytesSent, sendingMs } = progress;
  const elapsed = sendingMs / 1000;
  const rate = elapsed > 0 ? bytesSent / elapsed : 0;
  const perObject = done > 0 && bytesSent > 0 ? bytesSent / done : 0;
  const left = rate > 0 ? ((objects - done) * perObject) / rate : 0;
  return (
    <Facts items={[
      ["Encrypted and sent", `${count(done)} of ${count(objects)}`],
      ["Sent", bytes(bytesSent)],
      ["Time", `${elapsed.toFixed(1)} s`],
      ["Rate", rate > 0 ? `${bytes(rate)}/s` : "–"],
      ["Left", done < objects && left > 0 ? seconds(left) : "–"],
    ]} />
  );
}

/** Asks before the page is left while it is sending. */
function useLeaveWarning(active: boolean): void {
  useEffect(() => {
    if (!active) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
  }, [active]);
}
