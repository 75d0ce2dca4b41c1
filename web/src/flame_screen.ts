// SPDX-License-Identifier: Apache-2.0
// The screen with the tree of stacks: as a flame graph, a tree map or a table that unfolds, of
// everything, from the program inwards or inverted; or as flame graphs of one function with its
// callers above and its callees below.

import { focused, matcher, type App, type Screen } from "./app";
import {
  age,
  ageLegend,
  AGES_FREED,
  AGES_LIVE,
  type Colours,
  FunctionColours,
  growth,
  KeeperColours,
  ModuleColours,
} from "./colours";
import { amount, functionDetails, functionOf, hint, largestOwn } from "./details";
import { fill, h } from "./dom";
import { Flame, type FlameOptions } from "./flame";
import { choice, option, toggle } from "./parts";
import type { PictureOptions } from "./picture";
import type { Weighted } from "./tree";
import { TreeMap } from "./treemap";
import { TreeTable } from "./tree_table";
import * as units from "./units";
import type { View } from "./view";

function childPath(data: Weighted, node: number): string {
  const path: number[] = [];
  for (let at = node; at > 0; at = data.tree.parent[at]) {
    const parent = data.tree.parent[at];
    path.push(data.order.subarray(data.first[parent], data.first[parent + 1]).indexOf(at));
  }
  return path.reverse().join(".");
}

function nodeAt(data: Weighted, path: string): number {
  let node = 0;
  for (const step of path ? path.split(".") : []) {
    const at = data.first[node] + Number(step);
    if (!(at < data.first[node + 1])) return node;
    node = data.order[at];
  }
  return node;
}

export class FlameScreen implements Screen {
  readonly element: HTMLElement;
  private bar = h("div", { class: "bar", role: "toolbar", "aria-label": "Flame graph" });
  private note = h("p", { class: "note", role: "status" });
  private legend = h("div", { class: "legend" });
  private side = h("aside", { class: "side", "aria-label": "Selection", tabindex: 0 });
  private pictures = h("div", { class: "pictures" });
  private main: Flame;
  private callers: Flame;
  private callees: Flame;
  private map: TreeMap;
  private table: TreeTable;
  private colours: Colours | null = null;
  private coloursOf: unknown = null;
  private colouredBy = "";
  private shown = "";

  constructor(private app: App) {
    const whole = () => this.view.flame();
    this.main = new Flame(this.optionsOf("Flame graph of the heap", whole));
    this.map = new TreeMap(this.optionsOf("Tree map of the heap", whole));
    this.table = new TreeTable({
      ...this.optionsOf("Tree of the heap", whole),
      name: (node) => this.nameOf(whole(), node),
      amounts: (node) => this.amountsOf(whole(), node),
    });
    this.callers = new Flame({
      ...this.optionsOf("Callers", () => this.view.sandwich(this.view.state.pivot).callers),
      isUpward: true,
      firstDepth: 2,
    });
    this.callees = new Flame({
      ...this.optionsOf("The function and what it calls", () => this.view.sandwich(this.view.state.pivot).callees),
      firstDepth: 1,
    });
    this.element = h(
      "section",
      { class: "screen flame-screen", "aria-label": "Flame graph" },
      this.bar,
      h(
        "div",
        { class: "split" },
        h("div", { class: "picture-side" }, this.note, this.pictures, this.legend),
        this.side,
      ),
      h(
        "p",
        { id: "flame-keys", class: "keys" },
        "Click zooms, double-click the background for all of it. Keys: arrows walk, Enter zooms, Esc zooms out, c callers and callees, f focus, h hide, i invert, / search, ? all keys.",
      ),
    );
  }

  private get view(): View {
    return this.app.view;
  }

  private optionsOf(label: string, data: () => Weighted): PictureOptions & FlameOptions {
    const name = (node: number) => this.nameOf(data(), node);
    return {
      label,
      title: (node, letters) => this.titleOf(data(), node, letters),
      describe: (node) => `${name(node)}, ${this.amountOf(data(), node)}`,
      tooltip: (node) => this.tooltip(data(), node),
      colour: (node) => this.colourOf(data(), node),
      onZoom: (node) => this.app.set({ zoom: childPath(data(), node) }),
      onSelect: (node) => this.select(data(), node),
      onKey: (key, node) => this.key(key, node > 0 ? this.app.model.fnName[data().tree.fn[node]] : ""),
    };
  }

  /** The functions down to the frame that is zoomed into. */
  zoomedNames(): string[] {
    const { zoom } = this.view.state;
    if (!zoom) return [];
    const { tree } = this.currentData;
    return tree.path(nodeAt(this.currentData, zoom)).map((fn) => this.app.model.fnName[fn] ?? "");
  }

  /** The way to the frame that functions lead to, as far as there are such frames. */
  pathOf(names: string[]): string {
    if (!names.length) return "";
    const { tree, first, order } = this.currentData,
      path: number[] = [];
    let node = 0;
    for (const name of names) {
      const at = order
        .subarray(first[node], first[node + 1])
        .findIndex((child) => this.app.model.fnName[tree.fn[child]] === name);
      if (at < 0) break;
      path.push(at);
      node = order[first[node] + at];
    }
    return path.join(".");
  }

  /** What shows the whole. */
  private get whole(): Flame | TreeMap | TreeTable {
    const { shape } = this.view.state;
    return shape === "map" ? this.map : shape === "tree" ? this.table : this.main;
  }

  private get currentData(): Weighted {
    const { state } = this.view;
    return state.pivot ? this.view.sandwich(state.pivot).callees : this.view.flame();
  }

  private nameOf(data: Weighted, node: number): string {
    if (node > 0) return this.app.model.fnName[data.tree.fn[node]];
    const facts = this.view.profiles.map((i) => this.app.model.parts[i].profile.facts);
    const programs = [...new Set(facts.map((one) => one.program))].join(", ");
    return `${programs}: ${this.view.isDiff ? this.amountOf(data, 0) : amount(this.view, data.value[0])}, ${this.view.measure.label.toLowerCase()}`;
  }

  /** Where there is no room for an address with its library, the colour has to say which. */
  private titleOf(data: Weighted, node: number, letters: number): string {
    const name = this.nameOf(data, node),
      fn = data.tree.fn[node];
    if (node <= 0) return name;
    const shown = name.length > letters ? this.app.model.shortName(fn, fn) : name;
    const change = this.view.isDiff ? this.netOf(data, node) : 0,
      text = this.view.isDiff ? units.signed(amount(this.view, change), change) : amount(this.view, data.value[node]),
      more = `${shown}  ${text}`;
    return (change || !this.view.isDiff) && more.length <= letters ? more : shown;
  }

  /** A node before and after; of what grew or shrank, only of that; null: changes have no sides. */
  private pairOf(data: Weighted, node: number): [number, number] | null {
    const value = data.value[node],
      other = data.other ? data.other[node] : 0;
    switch (this.view.state.side) {
      case "before":
        return [value, other];
      case "after":
        return [other, value];
      case "grown":
        return [other, other + value];
      case "shrunk":
        return [other + value, other];
      default:
        return null;
    }
  }

  private netOf(data: Weighted, node: number): number {
    const pair = this.pairOf(data, node);
    return pair ? pair[1] - pair[0] : data.other![node];
  }

  private changeOf(data: Weighted, node: number): number {
    const value = data.value[node];
    if (!this.view.isDiff) return value ? (2 * data.other![node]) / value - 1 : 0;
    const most = Math.max(...(this.pairOf(data, node) ?? [value]));
    return most ? this.netOf(data, node) / most : 0;
  }

  private colourOf(data: Weighted, node: number): string {
    if ((this.view.isDiff || this.view.state.colour === "growth") && data.other)
      return growth(this.changeOf(data, node));
    if (this.view.state.colour === "age") return age(this.view.ageOf(data, node), this.ages);
    return this.colours!.of(data.tree.fn[this.keeperOf(data, node)]);
  }

  /** Of owners by module: what has a type alone goes with the variable or call that keeps it. */
  private keeperOf(data: Weighted, node: number): number {
    const { model } = this.app,
      { tree } = data;
    if (!model.isOfOwners || this.view.state.colour !== "module") return node;
    let at = node;
    while (at > 0 && model.keeperModule(tree.fn[at]) === null) at = tree.parent[at];
    return at > 0 ? at : node;
  }

  private amountOf(data: Weighted, node: number): string {
    const { view } = this,
      value = data.value[node],
      other = data.other ? data.other[node] : 0;
    if (view.isDiff) {
      const pair = this.pairOf(data, node),
        change = this.netOf(data, node),
        signed = units.signed(amount(view, change), change);
      return pair
        ? `${amount(view, pair[0])} → ${amount(view, pair[1])} (${signed}${view.nodeSure(data, node, pair)})`
        : `changes of ${amount(view, value)}, together ${signed}`;
    }
    const share = units.percent(value, data.value[0]);
    const became = this.view.state.colour === "age" ? this.ageText(data, node) : null,
      kept = data.other && value ? `, ${units.percent(other, value)} of it stays to the end` : "";
    return `${amount(view, value)}${view.nodeSure(data, node, null)}, ${share}${became ?? kept}`;
  }

  private get ages() {
    return this.app.model.isOfOwners ? AGES_LIVE : AGES_FREED;
  }

  private ageText(data: Weighted, node: number): string {
    const power = this.view.ageOf(data, node),
      age = units.duration(2 ** power * 1e6);
    if (power < 0) return "";
    return this.app.model.isOfOwners ? `, about ${age} old` : `, freed after about ${age}`;
  }

  private amountsOf(data: Weighted, node: number): string[] {
    const { view } = this,
      own = data.self[node];
    return [
      view.isDiff ? this.amountOf(data, node) : amount(view, data.value[node]),
      units.percent(data.value[node], data.value[0]),
      own > 0 ? amount(view, own) : "",
    ];
  }

  private tooltip(data: Weighted, node: number): Node {
    const { model } = this.app,
      fn = data.tree.fn[node];
    return h(
      "div",
      {},
      h("strong", { class: "mono" }, this.nameOf(data, node)),
      h("div", {}, this.amountOf(data, node)),
      node > 0 && data.self[node] > 0 && data.self[node] < data.value[node]
        ? h("div", { class: "dim" }, `self ${amount(this.view, data.self[node])}`)
        : null,
      node > 0 ? h("div", { class: "dim mono" }, model.moduleName(fn)) : null,
    );
  }

  private select(data: Weighted, node: number): void {
    if (node <= 0) {
      const own = largestOwn(this.app);
      fill(
        this.side,
        own < 0
          ? hint("Select a frame to see its lines, its source and what can be done with it.")
          : [
              h(
                "p",
                { class: "dim small" },
                this.app.model.isOfOwners
                  ? "What keeps most; select another."
                  : "The program’s own function that holds most; select a frame for another.",
              ),
              functionOf(this.app, own),
            ],
      );
      return;
    }
    const pair = this.view.isDiff ? this.pairOf(data, node) : null;
    fill(
      this.side,
      functionDetails(this.app, data.tree.fn[node], {
        value: data.value[node],
        self: data.self[node],
        whole: data.value[0],
        pair,
        net: this.view.isDiff && !pair ? this.netOf(data, node) : undefined,
        sure: this.view.nodeSure(data, node, pair),
      }),
    );
  }

  private key(key: string, name: string): boolean {
    const { state } = this.app;
    if (key === "i") this.app.set({ inverted: !state.inverted, zoom: "" });
    else if (key === "c" && name) this.app.set({ pivot: name, zoom: "" });
    else if (key === "f" && name) this.app.set(focused(state, "function", name));
    else if (key === "h" && name) this.app.set({ hide: [...state.hide, name], zoom: "", pivot: "" });
    else return false;
    return true;
  }

  private makeBar(): void {
    const { state } = this.view,
      { app } = this;
    fill(
      this.bar,
      state.pivot
        ? h("button", { type: "button", id: "whole", onclick: () => app.set({ pivot: "", zoom: "" }) }, "← Whole tree")
        : toggle("inverted", "Inverted", "From the allocating functions to their callers", state.inverted, () =>
            app.set({ inverted: !state.inverted, zoom: "" }),
          ),
      state.pivot
        ? null
        : choice(
            "shape",
            "As",
            state.shape,
            [option("map", "tree map"), option("flame", "flame graph"), option("tree", "tree table")],
            (shape) => app.set({ shape: shape as typeof state.shape }),
          ),
      state.zoom
        ? h("button", { type: "button", id: "unzoom", onclick: () => app.set({ zoom: "" }) }, "Zoom out")
        : null,
      this.view.isDiff
        ? choice(
            "side",
            "Width",
            state.side,
            [
              option("after", "after"),
              option("before", "before"),
              option("change", "all changes"),
              option("grown", "what grew"),
              option("shrunk", "what shrank"),
            ],
            (side) => app.set({ side: side as typeof state.side, zoom: "" }),
          )
        : null,
      this.view.isDiff
        ? null
        : choice(
            "colour",
            "Colour",
            state.colour,
            [
              option("module", app.model.isOfOwners ? "program, libraries" : "own code, libraries"),
              option("function", "what holds it"),
              ...(app.model.isOfOwners ? [] : [option("growth", "kept or freed")]),
              ...(this.view.ages
                ? [option("age", app.model.isOfOwners ? "how old blocks are" : "how old blocks became")]
                : []),
            ],
            (colour) => app.set({ colour: colour as typeof state.colour }),
          ),
      toggle(
        "internal",
        app.model.isOfOwners ? "Show types of libraries" : "Show internal frames",
        app.model.isOfOwners
          ? "Also nodes and buffers of the languages’ containers"
          : "Also those of allocators, of standard libraries behind their public functions, of interpreters, and of how a program starts",
        state.internal,
        () => app.set({ internal: !state.internal, zoom: "" }),
      ),
    );
  }

  private makeLegend(): void {
    const isGrowth = this.view.isDiff || this.view.state.colour === "growth";
    const words = this.view.isDiff
      ? ["less", "the same", "more"]
      : ["freed before the end", "half and half", "stays to the end"];
    if (isGrowth) {
      fill(
        this.legend,
        [-1, 0, 1].map((change, i) => this.key1(growth(change), words[i])),
      );
      return;
    }
    const legend = this.view.state.colour === "age" ? ageLegend(this.ages) : this.colours!.legend;
    fill(
      this.legend,
      legend.map(({ name, colour }) => this.key1(colour, name)),
    );
  }

  private key1(colour: string, text: string): HTMLElement {
    const swatch = h("span", { class: "swatch" });
    swatch.style.background = colour;
    return h("span", { class: "key" }, swatch, text);
  }

  private search(): void {
    const { view } = this,
      { state } = view,
      matches = matcher(state.search);
    const data = this.currentData,
      { model } = this.app;
    if (!matches) {
      for (const one of [this.whole, ...(state.pivot ? [this.callers, this.callees] : [])]) one.mark(null);
      this.note.textContent = state.pivot ? this.pivotNote() : data.value[0] > 0 ? "" : this.emptyNote();
      return;
    }
    const isFound = Uint8Array.from(model.fnName, (name) => (matches(name) ? 1 : 0));
    const markOf = (one: Weighted) =>
      Uint8Array.from(one.tree.fn.subarray(0, one.tree.count), (fn) => (fn >= 0 ? isFound[fn] : 0));
    const marked = markOf(data),
      { tree, value } = data;
    const isInside = new Uint8Array(tree.count);
    let sum = 0,
      frames = 0;
    for (let node = 1; node < tree.count; node++) {
      if (!(value[node] > 0)) continue;
      frames += marked[node];
      isInside[node] = isInside[tree.parent[node]];
      if (isInside[node] || !marked[node]) continue;
      isInside[node] = 1;
      sum += value[node];
    }
    (state.pivot ? this.callees : this.whole).mark(marked);
    if (state.pivot) this.callers.mark(markOf(view.sandwich(state.pivot).callers));
    this.note.textContent = frames
      ? `“${state.search}” is on stacks of ${amount(view, sum)}, ${units.percent(sum, value[0])}, in ${units.plural(frames, "frame")}`
      : `“${state.search}” is nowhere in it`;
  }

  private emptyNote(): string {
    const { profiles, measure, isDiff } = this.view,
      { parts } = this.app.model;
    return (
      profiles.map((i) => parts[i].profile.facts.empty).find(Boolean) ??
      (isDiff ? "There is no such change." : `No stack has anything here: ${measure.label.toLowerCase()}.`)
    );
  }

  private pivotNote(): string {
    const { callees } = this.view.sandwich(this.view.state.pivot);
    const whole = this.view.flame().value[0],
      value = callees.value[0];
    return `${this.view.state.pivot}: ${amount(this.view, value)}, ${units.percent(value, whole)} of all. Callers above, callees below.`;
  }

  update(view: View): void {
    const { state, model } = view;
    if (!view.isDiff && (this.coloursOf !== view.mask || this.colouredBy !== state.colour)) {
      const isOwn = state.colour === "function",
        sums = isOwn ? view.groups("functions").self[0] : view.groups("modules").total[0];
      const order = [...sums.keys()].filter((i) => sums[i] > 0).sort((a, b) => sums[b] - sums[a]);
      this.colours = isOwn
        ? new FunctionColours(model, order)
        : model.isOfOwners
          ? new KeeperColours(model, view.groups("functions").total[0])
          : new ModuleColours(model, order);
      this.coloursOf = view.mask;
      this.colouredBy = state.colour;
    }
    this.makeBar();
    this.makeLegend();
    const layout = state.pivot ? "sandwich" : state.shape;
    if (this.shown !== layout) {
      fill(
        this.pictures,
        state.pivot
          ? [this.callers.element, h("div", { class: "divider" }, "↑ callers · callees ↓"), this.callees.element]
          : this.whole.element,
      );
      this.pictures.classList.toggle("filled", !state.pivot && state.shape !== "flame");
      this.pictures.classList.toggle("sandwich", Boolean(state.pivot));
      this.shown = layout;
    }
    const data = this.currentData,
      zoom = nodeAt(data, state.zoom);
    if (state.pivot) this.callers.show(view.sandwich(state.pivot).callers, 0, -1);
    (state.pivot ? this.callees : this.whole).show(data, zoom, zoom);
    this.search();
    if (state.pivot && data.tree.count > 1) this.select(data, data.order[data.first[0]]);
    else this.select(data, zoom);
  }
}
