import { Component, type ReactNode } from "react";
import { Notice } from "./ui";

/**
 * Replaces a page that fails with a message. In most cases its script could not be loaded: the connection is lost, or
 * the services were updated after this tab was opened. A reload solves both.
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
          <p>This page could not be loaded. Check the connection, then reload the page; nothing is lost.</p>
          <button type="button" onClick={() => window.location.reload()}>Reload</button>
        </Notice>
      </main>
    );
  }
}
