// The report on a synthetic table: the page that crates/eval makes, shown as it is downloaded.
import { useEffect, useRef } from "react";
import type { Reported } from "../crypto/messages";
import { save } from "../components/save";

export function ReportView({ name, reported: { page } }: { name: string; reported: Reported }) {
  const download = () => save(new Blob([page], { type: "text/html" }), `${name}-report.html`);
  return (
    <>
      <div className="row ends">
        <h3>Report</h3>
        <button type="button" onClick={download}>Download the report</button>
      </div>
      <Embedded page={page} />
    </>
  );
}

/** Shows a report in a shadow tree, so that its style and the style of this page do not meet. */
function Embedded({ page }: { page: string }) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (host.current) show(page, host.current);
  }, [page]);
  return <div ref={host} />;
}

function show(page: string, host: HTMLElement) {
  // The content security policy allows a constructed style sheet, but no `style` element.
  const [style = "", css = ""] = /<style>([^<]*)<\/style>/.exec(page) ?? [];
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  const parsed = new DOMParser().parseFromString(page.replace(style, ""), "text/html");
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  root.adoptedStyleSheets = [sheet];
  const content = document.createElement("div");
  content.className = "page";
  content.append(...(parsed.querySelector("main")?.childNodes ?? []));
  content.addEventListener("click", scroll);
  root.replaceChildren(content);
}

/** Follows a link to a section. The browser itself does not look for sections in a shadow tree. */
function scroll(event: MouseEvent) {
  const target = event.target instanceof Element ? event.target.closest("a") : null;
  const section = target?.hash && (target.getRootNode() as ShadowRoot).getElementById(target.hash.slice(1));
  if (!section) return;
  event.preventDefault();
  section.scrollIntoView();
}
