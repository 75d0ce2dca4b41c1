// SPDX-License-Identifier: Apache-2.0
// Starts the page: reads the data, keeps state and address together, and shows one screen at a time.

import type { App, Screen } from "./app";
import { isDark } from "./colours";
import { readPage, type Page } from "./data";
import { announce, fill, h, svg } from "./dom";
import { FlameScreen } from "./flame_screen";
import { dataOfHost, findEditor } from "./host";
import { keysDialog } from "./keys";
import { Live } from "./live";
import { snapshotName, nearest } from "./history";
import { heapNames, pageOfHeap } from "./heaps";
import { Model } from "./model";
import { Overview } from "./overview";
import { choice, option } from "./parts";
import { initial, readState, writeState, type State } from "./state";
import { TableScreen } from "./table_screen";
import * as units from "./units";
import { View } from "./view";

const SEARCH_DELAY_MS = 160;

type Screens = Record<State["view"], Screen>;

const NO_STACK = "stack:-1";

class Main implements App {
  state: State;
  view: View;
  private header = h("header", {});
  private chips = h("div", { class: "chips", role: "group", "aria-label": "Filters" });
  private controls = h("div", { class: "controls" });
  private search: HTMLInputElement;
  private stage = h("main", { id: "stage", tabindex: -1 });
  private screens: Screens;
  private flame: FlameScreen;
  private following: Live | null = null;
  private overview: Overview;
  private timer = 0;
  private ofHeap: { name: string; model: Model } | null = null;
  model: Model; // of the heap that is looked at

  /** `isLive`: the page was served, and there is more to come. */
  constructor(
    private whole: Model,
    isLive: boolean,
  ) {
    const model = (this.model = whole);
    initial.measure = isLive ? "exit" : model.measures[0].id;
    if (model.isOfOwners) Object.assign(initial, { view: "flame", shape: "map", colour: "function" });
    this.state = readState(location.hash);
    this.model = this.modelOf(this.state.heap);
    this.view = new View(this.model, this.state, null);
    this.overview = new Overview(this);
    this.flame = new FlameScreen(this);
    this.screens = { overview: this.overview, flame: this.flame, table: new TableScreen(this) };
    if (isLive) this.following = new Live(model.page, (page, isChanged) => this.replace(page, isChanged));
    this.search = h("input", {
      type: "search",
      id: "search",
      placeholder: "Search functions ( / )",
      "aria-label": "Search functions, a regular expression",
      spellcheck: "false",
      autocomplete: "off",
      oninput: () => this.searchSoon(),
      onkeydown: (event: KeyboardEvent) => this.searchKey(event),
    });
    this.makeHeader();
    const live = h("div", { id: "live", class: "unseen", "aria-live": "polite" });
    document.body.append(
      h(
        "a",
        {
          class: "skip",
          href: "#stage",
          onclick: (event: Event) => {
            event.preventDefault();
            this.stage.focus();
          },
        },
        "To the content",
      ),
      this.header,
      ...(this.following ? [this.following.element] : []),
      this.chips,
      this.stage,
      live,
    );
    addEventListener("popstate", () => this.restore());
    addEventListener("hashchange", () => this.restore());
    addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
    addEventListener("beforeprint", () => this.overview.redraw());
    this.recolour();
  }

  private restore(): void {
    const state = readState(location.hash);
    if (writeState(state) === writeState(this.state)) return;
    this.state = state;
    this.model = this.modelOf(state.heap);
    this.update();
    this.makeControls(); // what was chosen there last is not what is shown now
  }

  /** Of a heap that is not there: malloc's. */
  private modelOf(heap: string): Model {
    if (!heapNames(this.whole.page).includes(heap)) return this.whole;
    if (this.ofHeap?.name !== heap) this.ofHeap = { name: heap, model: new Model(pageOfHeap(this.whole.page, heap)) };
    return this.ofHeap.model;
  }

  /** The stacks that were selected are the same ones, where the other heap has them. */
  private chooseHeap(heap: string): void {
    const model = this.modelOf(heap),
      focus = this.state.focus.map((one) => translated(one, this.model, model)).filter((one) => one !== NO_STACK),
      measure = model.measures.some((one) => one.id === this.state.measure) ? this.state.measure : initial.measure;
    this.model = model;
    this.set({ heap, focus, measure, zoom: "", from: 0, to: 0 });
  }

  private makeHeader(): void {
    const logo = svg(
      "svg",
      { viewBox: "0 0 32 32", width: 26, height: 26, "aria-hidden": "true", class: "logo" },
      svg("ellipse", { cx: 16, cy: 26, rx: 13, ry: 4.5 }),
      svg("ellipse", { cx: 16.5, cy: 18, rx: 9.5, ry: 4 }),
      svg("ellipse", { cx: 15.5, cy: 11, rx: 6.5, ry: 3.2 }),
      svg("ellipse", { cx: 16.5, cy: 5.5, rx: 3.6, ry: 2.4 }),
    );
    const facts = this.model.parts.map((part) => part.profile.facts),
      first = facts[0];
    const title =
      this.model.isDiff || this.model.page.run
        ? document.title.replace(/ – cairn$/, "")
        : (first?.program ?? "nothing");
    const tabs: [State["view"], string][] = this.model.isOfOwners
      ? [
          ["flame", "Owners"],
          ["table", "Table"],
        ]
      : [
          ["overview", "Overview"],
          ["flame", "Flame graph"],
          ["table", "Table"],
        ];
    const nav = h(
      "nav",
      { "aria-label": "Screens" },
      tabs.map(([id, label], i) =>
        h(
          "button",
          {
            type: "button",
            id: `tab-${id}`,
            title: `${label} (${i + 1})`,
            onclick: () => this.set({ view: id }),
          },
          label,
        ),
      ),
    );
    const keys = h(
      "button",
      { type: "button", class: "icon", title: "Keys (?)", "aria-label": "Keys", onclick: () => this.showKeys() },
      "?",
    );
    const theme = h(
      "button",
      {
        type: "button",
        id: "theme",
        class: "icon",
        title: "Dark or light",
        "aria-label": "Dark or light",
        onclick: () => this.switchTheme(),
      },
      "◐",
    );
    fill(
      this.header,
      h("div", { class: "brand" }, logo, h("h1", { title: first?.process.command ?? "" }, title)),
      nav,
      this.controls,
      this.search,
      theme,
      keys,
    );
  }

  private showKeys(): void {
    const dialog = keysDialog([...this.header.querySelectorAll("nav button")].map((tab) => tab.textContent ?? ""));
    document.body.append(dialog);
    dialog.showModal();
  }

  private makeControls(): void {
    const { state, model } = this;
    const measures = this.view.measures
      .filter((one) => !model.isOneRecording || one.id.startsWith("at"))
      .map((one) => option(one.id, one.label));
    const parts = model.parts.map((part, i) =>
      option(String(i), `${part.profile.facts.program} ${part.profile.facts.process.pid}`),
    );
    const focused = this.controls.contains(document.activeElement) ? document.activeElement!.id : "",
      heaps = heapNames(this.whole.page);
    fill(
      this.controls,
      heaps.length
        ? choice(
            "heap",
            "Heap",
            model === this.whole ? "" : state.heap,
            [option("", "malloc"), ...heaps.map((name) => option(name, name))],
            (heap) => this.chooseHeap(heap),
          )
        : null,
      model.page.run && parts.length > 1
        ? choice("process", "Process", state.process || "0", [...parts, option("all", "all added up")], (process) =>
            this.set({ process, zoom: "" }),
          )
        : null,
      choice(
        "measure",
        "Show",
        this.view.measure.id,
        model.hasHistory && !model.isOneRecording ? [...measures, option("snapshot", "At a moment")] : measures,
        (measure) => this.chooseMeasure(measure),
      ),
    );
    if (focused) document.getElementById(focused)?.focus();
  }

  private chooseMeasure(measure: string): void {
    const history = this.model.parts[this.view.profiles[0]]?.history;
    const last = history ? history.snapshots[history.snapshots.length - 1].at_ns : 0;
    this.set({ measure, zoom: "", ...(measure === "snapshot" && !this.state.to ? { to: last } : {}) });
  }

  private snapshotControls(): HTMLElement[] {
    const { state } = this,
      history = this.model.parts[this.view.profiles[0]]?.history;
    if (!history) return [];
    const options = history.snapshots.map((snapshot) => option(String(snapshot.at_ns), snapshotName(snapshot)));
    const near = (at: number) => String(history.snapshots[nearest(history, at)].at_ns);
    const to = choice("to", "at", near(state.to), options, (to) => this.set({ to: Number(to), zoom: "" }));
    return this.model.isDiff
      ? [to]
      : [
          to,
          choice("from", "compared with", state.from ? near(state.from) : "0", [option("0", "–"), ...options], (from) =>
            this.set({ from: Number(from), zoom: "" }),
          ),
        ];
  }

  private makeChips(): void {
    const { state } = this;
    const chip = (text: string, label: string, remove: () => void) =>
      h(
        "span",
        { class: "chip" },
        h("span", { class: "mono" }, text),
        h("button", { type: "button", "aria-label": `Remove: ${label}`, onclick: remove }, "×"),
      );
    const focus = state.focus.map((one) => {
      const kind = one.slice(0, one.indexOf(":")),
        key = one.slice(one.indexOf(":") + 1);
      const text =
        kind === "stack"
          ? `only stack ${key}`
          : kind === "thread"
            ? `only of thread ${this.threadName(key)}`
            : kind === "context"
              ? `only of ${key}`
              : `focus: ${kind === "function" ? key : units.baseName(key)}`;
      return chip(text, text, () => this.set({ focus: state.focus.filter((other) => other !== one), zoom: "" }));
    });
    const hide = state.hide.map((one) =>
      chip(`without ${one}`, `without ${one}`, () =>
        this.set({ hide: state.hide.filter((other) => other !== one), zoom: "" }),
      ),
    );
    const snapshots = this.view.measure.id === "snapshot" ? this.snapshotControls() : [],
      focused = this.chips.contains(document.activeElement) ? document.activeElement!.id : "";
    const sum = this.view.sums().reduce((all, one) => all + one, 0);
    fill(
      this.chips,
      snapshots,
      focus,
      hide,
      focus.length
        ? h(
            "span",
            { class: "dim" },
            `${this.view.measure.isBytes ? units.size(sum) : units.count(sum)}, ${units.percent(sum, this.view.everything)} of all`,
          )
        : null,
      focus.length + hide.length
        ? h(
            "button",
            { type: "button", class: "quiet", onclick: () => this.set({ focus: [], hide: [], zoom: "" }) },
            "Show everything",
          )
        : null,
    );
    this.chips.hidden = !snapshots.length && !focus.length && !hide.length;
    if (focused) document.getElementById(focused)?.focus();
  }

  private threadName(slot: string): string {
    const names = this.view.profiles
      .flatMap((i) => this.model.parts[i].profile.facts.threads)
      .filter((one) => String(one.slot) === slot)
      .map((one) => one.name || String(one.tid));
    return [...new Set(names)].join(", ");
  }

  private searchSoon(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      this.set({ search: this.search.value }, false);
    }, SEARCH_DELAY_MS);
  }

  private searchKey(event: KeyboardEvent): void {
    if (event.key === "Escape") {
      this.search.value = "";
      this.set({ search: "" }, false);
      this.stage.focus();
    } else if (event.key === "Enter") {
      clearTimeout(this.timer);
      this.timer = 0;
      this.set({ search: this.search.value, view: this.state.view === "overview" ? "flame" : this.state.view });
      this.stage.focus();
    }
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, select, textarea, dialog")) return;
    const views: Record<string, State["view"]> = this.model.isOfOwners
      ? { 1: "flame", 2: "table" }
      : { 1: "overview", 2: "flame", 3: "table" };
    if (event.key === "/") this.search.focus();
    else if (event.key === "?") this.showKeys();
    else if (views[event.key]) this.set({ view: views[event.key] });
    else if (event.key === "i" && this.state.view === "flame") this.set({ inverted: !this.state.inverted, zoom: "" });
    else if (!this.passToPicture(event)) return;
    event.preventDefault();
  }

  /** Keys that nothing on the page has are the picture's, as the line below it says; from then on it has them. */
  private passToPicture({ key, target }: KeyboardEvent): boolean {
    const picture = this.stage.querySelector<HTMLElement>(".pictures canvas, .pictures [role=treegrid]"),
      isFree = target === document.body || target === this.stage;
    if (this.state.view !== "flame" || !isFree || !picture || key === " ") return false;
    if (picture.dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true }))) return false;
    if (picture.isConnected) picture.focus({ preventScroll: true });
    return true;
  }

  private switchTheme(): void {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    this.recolour();
  }

  private recolour(): void {
    document.documentElement.dataset.dark = isDark() ? "1" : "0";
    const old = this.view;
    this.screens.flame = this.flame = new FlameScreen(this);
    this.view = new View(this.model, this.state, old);
    this.overview.redraw();
    this.update();
  }

  set(patch: Partial<State>, isStep = true): void {
    const next = { ...this.state, ...patch };
    if (this.model.isDiff) next.process = initial.process;
    const address = writeState(next);
    if (address === writeState(this.state)) return;
    this.state = next;
    remember(address, isStep);
    this.update();
  }

  /** Another state of the process: what was selected and zoomed into stays so. */
  private replace(page: Page, isChanged: boolean): void {
    const old = this.model,
      zoomed = this.flame.zoomedNames();
    this.whole = new Model(page);
    this.ofHeap = null;
    this.model = this.modelOf(this.state.heap);
    const state = { ...this.state, focus: this.state.focus.map((one) => translated(one, old, this.model)) };
    this.view = new View(this.model, { ...state, zoom: "" }, null);
    if (isChanged && this.model.isDiff) Object.assign(state, { measure: "exit", side: "after", process: "" });
    if (isChanged) this.view = new View(this.model, { ...state, zoom: "" }, null);
    state.zoom = this.flame.pathOf(zoomed);
    this.state = state;
    remember(writeState(state), false);
    this.update();
  }

  update(): void {
    this.view = new View(this.model, this.state, this.view);
    const screen = this.screens[this.state.view];
    if (this.stage.firstElementChild !== screen.element) {
      this.stage.replaceChildren(screen.element);
      announce(screen.element.getAttribute("aria-label") ?? "");
    }
    document.body.dataset.view = this.state.view;
    for (const id of Object.keys(this.screens)) {
      const tab = document.getElementById(`tab-${id}`);
      if (id === this.state.view) tab?.setAttribute("aria-current", "page");
      else tab?.removeAttribute("aria-current");
    }
    if (document.activeElement !== this.search && !this.timer) this.search.value = this.state.search;
    if (!isChoosing(this.controls)) this.makeControls();
    if (!isChoosing(this.chips)) this.makeChips();
    screen.update(this.view);
  }
}

/** Within another application a page may have no address of its own. */
function remember(address: string, isStep: boolean): void {
  try {
    history[isStep ? "pushState" : "replaceState"](null, "", address);
  } catch {
    // then there is no way back by keys
  }
}

/** "stack:12" of one state of a process in another one. */
function translated(focus: string, from: Model, to: Model): string {
  if (!focus.startsWith("stack:")) return focus;
  const key = from.stackKey(Number(focus.slice("stack:".length)));
  return `stack:${to.stackWithKey(key)}`;
}

/** A list of choices may be unfolded there: making it anew would fold it. */
function isChoosing(parent: HTMLElement): boolean {
  return document.activeElement?.tagName === "SELECT" && parent.contains(document.activeElement);
}

async function start(): Promise<void> {
  const data = document.getElementById("data")!,
    isLive = Boolean(data.dataset.live);
  try {
    const tellReady = findEditor(),
      text = data.textContent?.trim(),
      page = await readPage(text || (await dataOfHost()));
    data.remove();
    document.getElementById("loading")?.remove();
    new Main(new Model(page), isLive);
    document.body.dataset.ready = "1";
    tellReady();
  } catch (error) {
    const text =
      typeof DecompressionStream === "undefined"
        ? "This browser is too old for the page: it needs Firefox 113, Chromium 80 or Safari 16.4."
        : `The data in this page cannot be read: ${error instanceof Error ? error.message : error}. Was the file cut off?`;
    document.getElementById("loading")!.textContent = text;
    if (typeof DecompressionStream !== "undefined") throw error;
  }
}

void start();
