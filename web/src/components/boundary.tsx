import { Component, type ReactNode } from "react";
import { Notice } from "./ui";

/**
 * A page that breaks says so in its place. Mostly its script could not be fetched: the connection is
 * lost, or the services were updated since this tab was opened. Both mend with a reload.
 */
export class Boundary extends Component<{ children: ReactNode }, { broken: boolean }> {
  override state = { broken: false };

  static getDerivedStateFromError() {
    return { broken: true };
  }

  override render() {
    if (!this.state.broken) return this.props.children;
    return (
      <main id="content">
        <Notice tone="bad">
          <p>This page could not be shown. Check the connection, then load it again; nothing is lost.</p>
          <button type="button" onClick={() => window.location.reload()}>Load it again</button>
        </Notice>
      </main>
    );
  }
}
