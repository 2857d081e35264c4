// SPDX-License-Identifier: MIT
// main.ts: starts the page: opens the trace (from the page itself, or from the server that the page came from), waits
// until it is loaded, and puts the parts together.
import "./theme.css";
import "./panels/panels.css";
import "./timeline/timeline.css";
import type { App } from "./app";
import { embeddedData, openEmbedded } from "./embedded";
import type { Action } from "./keys";
import { makeLayout } from "./layout";
import { firstGeneration, messageOf, watch } from "./live";
import { Loading } from "./loading";
import { element } from "./panels/dom";
import type { Source, Trace } from "./protocol";
import { Outdated, RemoteSource } from "./remote";
import { StatusLine } from "./status_line";
import { Store } from "./store";
import { showTheme, toggleTheme, watchTheme } from "./theme";
import { Commands } from "./timeline/commands";
import { Timeline } from "./timeline/timeline";

declare global {
  interface Window {
    kymo: App; // for tests and the console
  }
}

async function open(loading: Loading): Promise<Source> {
  const data = embeddedData();
  if (data) return openEmbedded(data, (stage, done, all) => loading.update(stage, done, all));
  const source = new RemoteSource();
  await firstGeneration(source, (status, error) => {
    if (status) {
      loading.recover();
      loading.update(status.stage, status.done, status.all);
    } else {
      loading.fail(error);
    }
  });
  return source;
}

async function opened(loading: Loading): Promise<{ source: Source; trace: Trace }> {
  const source = await open(loading);
  return { source, trace: await source.trace() };
}

function changeTheme(app: Store): void {
  toggleTheme();
  app.emit("theme");
}

// Handles the keys that do not belong to the timeline.
function pageKeys(app: Store, help: HTMLDialogElement): (action: Action) => boolean {
  return (action) => {
    switch (action) {
      case "help":
        help.showModal();
        return true;
      case "theme":
        changeTheme(app);
        return true;
      case "page":
        app.set({ page: app.state.page === "timeline" ? "sql" : "timeline" });
        return true;
      case "search":
        document.querySelector<HTMLInputElement>("#search-input")?.focus();
        document.querySelector<HTMLInputElement>("#search-input")?.select();
        return true;
      default:
        return false;
    }
  };
}

async function start(root: HTMLElement): Promise<void> {
  showTheme();
  const loading = new Loading();
  root.append(loading.element);
  const { source, trace } = await opened(loading).catch((error: unknown) => {
    loading.fail(messageOf(error));
    throw error;
  });
  const live = element("div", { id: "live", class: "sr-only", "aria-live": "polite" });
  const app = new Store(source, trace, live);
  const status = new StatusLine();
  const timeline = new Timeline(app, (error) => error instanceof Outdated || status.setTrouble(messageOf(error)));
  const layout = makeLayout(app, timeline.element, () => changeTheme(app));
  status.setApp(app);
  root.replaceChildren(layout.header, layout.main, status.element, live, layout.help);
  new Commands(app, timeline, pageKeys(app, layout.help));
  watchTheme(() => app.emit("theme"));
  window.kymo = app;
  timeline.restore();
  if (!source.can.live) return;
  const renew = async (): Promise<void> => app.setTrace(await source.trace());
  await watch(source, () => app.trace.generation, renew, (text) => status.setTrouble(text));
}

void start(document.getElementById("app") as HTMLElement);
