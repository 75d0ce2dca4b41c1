// SPDX-License-Identifier: Apache-2.0
// A tree of weights as a picture on a canvas that is walked through by pointer and keys: what a flame
// graph and a tree map have in common.

import { announce, cssValue, fitCanvas, h } from "./dom";
import type { Weighted } from "./tree";

export const LETTER_PX = 7.25,
  PADDING = 4;

export interface PictureOptions {
  label: string; // for people who listen
  firstDepth?: number; // levels above it are not shown
  title(node: number, letters: number): string; // no longer than so many letters, if that can be
  describe(node: number): string; // in one sentence
  tooltip(node: number): Node;
  colour(node: number): string;
  onZoom(node: number): void;
  onSelect(node: number): void;
  onKey(key: string, node: number): boolean;
}

export interface Look {
  page: string;
  text: string;
  root: string;
  rest: string;
  found: string;
  onFound: string;
  mono: string;
  isDark: boolean;
}

function readLook(): Look {
  return {
    page: cssValue("--page"),
    text: cssValue("--text"),
    root: cssValue("--root"),
    rest: cssValue("--rest"),
    found: cssValue("--found"),
    onFound: cssValue("--on-found"),
    mono: cssValue("--mono"),
    isDark: document.documentElement.dataset.dark === "1",
  };
}

export abstract class Picture<Options extends PictureOptions = PictureOptions> {
  readonly element: HTMLDivElement;
  protected canvas: HTMLCanvasElement;
  protected data: Weighted | null = null;
  protected zoom = 0;
  protected cursor = -1;
  protected hovered = -1;
  protected marked: Uint8Array | null = null;
  protected look: Look = readLook(); // as of the last picture: asking the document for each frame is slow
  private tip: HTMLDivElement;
  private frame = 0;

  constructor(
    protected options: Options,
    kind: string,
    cssClass: string,
  ) {
    this.canvas = h("canvas", {
      tabindex: 0,
      role: "application",
      "aria-roledescription": kind,
      "aria-label": options.label,
      "aria-describedby": "flame-keys",
    });
    this.tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    this.element = h("div", { class: cssClass }, this.canvas, this.tip);
    this.canvas.addEventListener("mousemove", (event) => this.hover(event));
    this.canvas.addEventListener("mouseleave", () => this.unhover());
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("dblclick", (event) => this.doubleClick(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("focus", () => this.redraw());
    this.canvas.addEventListener("blur", () => this.redraw());
    new ResizeObserver(() => this.resized()).observe(this.element);
  }

  /** New data came. */
  protected abstract layOut(): void;
  protected abstract zoomTo(node: number, isSmooth: boolean): void;
  protected abstract paint(context: CanvasRenderingContext2D, width: number, height: number): void;
  /** The node at a place of the canvas, or -1. */
  protected abstract at(x: number, y: number): number;
  /** Makes a selected node visible. */
  protected abstract reveal(node: number): void;
  protected resized(): void {
    this.redraw();
  }

  protected get firstDepth(): number {
    return this.options.firstDepth ?? 0;
  }

  show(data: Weighted, zoom: number, selected: number): void {
    const isSame = this.data === data;
    if (!isSame) {
      this.data = data;
      this.layOut();
      this.marked = null;
      this.hovered = -1;
    }
    this.cursor = selected;
    this.zoomTo(zoom < data.tree.count && data.value[zoom] > 0 ? zoom : 0, isSame);
  }

  /** Marks nodes that a search has found; null: there is no search. */
  mark(marked: Uint8Array | null): void {
    this.marked = marked;
    this.redraw();
  }

  redraw(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  protected draw(): void {
    const width = this.element.clientWidth,
      height = this.element.clientHeight;
    if (!this.data || !width || !height) return;
    const context = fitCanvas(this.canvas, width, height);
    this.look = readLook();
    context.fillStyle = this.look.page;
    context.fillRect(0, 0, width, height);
    context.font = `12px ${this.look.mono}`;
    context.textBaseline = "middle";
    this.paint(context, width, height);
  }

  protected get hasCursor(): boolean {
    return this.cursor >= 0 && document.activeElement === this.canvas;
  }

  /** The rectangle of a node in its colour, with a frame if the pointer is on it. */
  protected box(
    context: CanvasRenderingContext2D,
    node: number,
    x: number,
    y: number,
    width: number,
    height: number,
    isContext = false,
  ): void {
    const isMarked = this.isMarked(node, isContext);
    context.fillStyle = isMarked ? this.look.found : node ? this.options.colour(node) : this.look.root;
    context.globalAlpha = isContext ? 0.55 : this.isDim(node) ? 0.35 : 1;
    context.fillRect(x, y, Math.max(width - 1, 0.5), Math.max(height - 1, 0.5));
    context.globalAlpha = 1;
    if (node !== this.hovered) return;
    context.strokeStyle = this.look.text;
    context.lineWidth = 1.5;
    context.strokeRect(x + 0.75, y + 0.75, Math.max(width - 2.5, 0.5), Math.max(height - 2.5, 0.5));
  }

  /** The title of a node in a line that begins there, if there is room for one. */
  protected writeTitle(
    context: CanvasRenderingContext2D,
    node: number,
    x: number,
    middle: number,
    width: number,
    prefix = "",
    isContext = false,
  ): void {
    const letters = Math.floor((width - 2 * PADDING) / LETTER_PX);
    if (letters < 3) return;
    const isOnPage = node === 0 || ((isContext || this.isDim(node)) && this.look.isDark);
    context.fillStyle = this.isMarked(node, isContext) ? this.look.onFound : isOnPage ? this.look.text : "#111";
    const before = prefix.length < letters / 2 ? prefix : "",
      title = before + this.options.title(node, letters - before.length);
    context.fillText(title.length <= letters ? title : title.slice(0, letters - 1) + "…", x + PADDING, middle);
  }

  protected outline(context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number): void {
    context.strokeStyle = cssValue("--accent");
    context.lineWidth = 3;
    context.strokeRect(x + 1.5, y + 1.5, Math.max(width - 4, 1), height - 4);
  }

  private isMarked(node: number, isContext: boolean): boolean {
    return this.marked !== null && Boolean(this.marked[node]) && !isContext;
  }

  private isDim(node: number): boolean {
    return this.marked !== null && !this.marked[node];
  }

  private under(event: MouseEvent): number {
    const box = this.canvas.getBoundingClientRect();
    return this.at(event.clientX - box.left, event.clientY - box.top);
  }

  private hover(event: MouseEvent): void {
    const node = this.under(event);
    if (node !== this.hovered) {
      this.hovered = node;
      this.redraw();
      if (node >= 0) this.tip.replaceChildren(this.options.tooltip(node));
    }
    this.canvas.style.cursor = node >= 0 ? "pointer" : "default";
    this.tip.hidden = node < 0;
    if (node < 0) return;
    const { innerWidth, innerHeight } = window,
      { offsetWidth, offsetHeight } = this.tip;
    const x = Math.min(event.clientX + 14, innerWidth - offsetWidth - 8);
    const isLow = event.clientY + 20 + offsetHeight > innerHeight;
    this.tip.style.left = Math.max(x, 4) + "px";
    this.tip.style.top = (isLow ? event.clientY - offsetHeight - 12 : event.clientY + 18) + "px";
  }

  private unhover(): void {
    this.hovered = -1;
    this.tip.hidden = true;
    this.redraw();
  }

  private click(event: MouseEvent): void {
    const node = this.under(event);
    if (node < 0) return;
    this.select(node);
    if (node !== this.zoom) this.options.onZoom(node);
  }

  private doubleClick(event: MouseEvent): void {
    if (this.under(event) < 0) this.options.onZoom(0);
  }

  private select(node: number): void {
    this.cursor = node;
    announce(this.options.describe(node));
    this.options.onSelect(node);
    this.reveal(node);
    this.redraw();
  }

  protected sibling(node: number, step: number): number {
    const { tree, first, order } = this.data!,
      parent = tree.parent[node];
    if (parent < 0) return -1;
    const at = order.subarray(first[parent], first[parent + 1]).indexOf(node);
    const next = first[parent] + at + step;
    return next >= first[parent] && next < first[parent + 1] ? order[next] : -1;
  }

  /** Where a key leads from a node; -1: nowhere. */
  protected neighbour(key: string, node: number): number {
    const { tree, first, order } = this.data!;
    const child = first[node] < first[node + 1] ? order[first[node]] : -1;
    if (key === "ArrowDown") return child;
    if (key === "ArrowUp") return tree.depth[node] > this.firstDepth ? tree.parent[node] : -1;
    if (key === "Home") return this.zoom;
    return this.sibling(node, key === "ArrowRight" ? 1 : -1);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.data) return;
    const node = this.cursor >= 0 && this.cursor < this.data.tree.count ? this.cursor : this.zoom;
    if (["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Home"].includes(event.key)) {
      const next = this.cursor < 0 ? this.zoom : this.neighbour(event.key, node);
      if (next >= 0) this.select(next);
    } else if (event.key === "Enter" || event.key === " ") {
      this.options.onZoom(node);
    } else if (event.key === "Escape" || event.key === "Backspace") {
      this.options.onZoom(event.key === "Escape" ? 0 : Math.max(this.data.tree.parent[this.zoom], 0));
    } else if (!this.options.onKey(event.key, node)) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
