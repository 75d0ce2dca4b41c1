// SPDX-License-Identifier: Apache-2.0
// A flame graph on a canvas. Only what is wide enough to be seen is drawn: children come in order of
// size, so that the first too thin one ends a row's work, however many nodes there are.

import { announce, cssValue, fitCanvas, h } from "./dom";
import type { Weighted } from "./tree";

const ROW_LEAST = 20,
  ROW_MOST = 28,
  LETTER_PX = 7.25,
  PADDING = 4,
  THINNEST_PX = 0.6,
  ZOOM_MS = 170;

export interface FlameOptions {
  label: string; // for people who listen
  isUpward?: boolean; // the first row is at the bottom
  firstDepth?: number; // rows above it are not shown
  title(node: number, letters: number): string; // no longer than so many letters, if that can be
  describe(node: number): string; // in one sentence
  tooltip(node: number): Node;
  colour(node: number): string;
  onZoom(node: number): void;
  onSelect(node: number): void;
  onKey(key: string, node: number): boolean;
}

interface Look {
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

interface Drawn {
  node: number;
  x: number;
  width: number;
  row: number;
}

export class Flame {
  readonly element: HTMLDivElement;
  private canvas: HTMLCanvasElement;
  private sizer: HTMLDivElement;
  private tip: HTMLDivElement;
  private data: Weighted | null = null;
  private left = new Float64Array(1);
  private zoom = 0;
  private from = 0;
  private to = 1;
  private drawn: Drawn[] = [];
  private cursor = -1;
  private hovered = -1;
  private marked: Uint8Array | null = null;
  private look: Look = readLook(); // as of the last picture: asking the document for each frame is slow
  private offset = 0; // what is scrolled away at the top
  private height = 0; // of all rows
  private row = ROW_LEAST;
  private frame = 0;
  private animation = 0;

  constructor(private options: FlameOptions) {
    this.canvas = h("canvas", {
      tabindex: 0,
      role: "application",
      "aria-roledescription": "flame graph",
      "aria-label": options.label,
      "aria-describedby": "flame-keys",
    });
    this.sizer = h("div", { class: "flame-sizer" });
    this.tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    this.element = h("div", { class: "flame" }, this.canvas, this.sizer, this.tip);
    this.element.addEventListener("scroll", () => this.redraw());
    this.canvas.addEventListener("mousemove", (event) => this.hover(event));
    this.canvas.addEventListener("mouseleave", () => this.unhover());
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("dblclick", (event) => this.doubleClick(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("focus", () => this.redraw());
    this.canvas.addEventListener("blur", () => this.redraw());
    new ResizeObserver(() => {
      if (options.isUpward) this.element.scrollTop = this.element.scrollHeight;
      this.redraw();
    }).observe(this.element);
  }

  private get firstDepth(): number {
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
    this.zoomTo(zoom, isSame);
  }

  /** Marks nodes that a search has found; null: there is no search. */
  mark(marked: Uint8Array | null): void {
    this.marked = marked;
    this.redraw();
  }

  private layOut(): void {
    const { tree, value, first, order } = this.data!;
    this.left = new Float64Array(tree.count);
    for (let node = 0; node < tree.count; node++) {
      let at = this.left[node];
      for (let i = first[node]; i < first[node + 1]; i++) {
        this.left[order[i]] = at;
        at += value[order[i]];
      }
    }
  }

  private zoomTo(node: number, isSmooth: boolean): void {
    const data = this.data!;
    if (node >= data.tree.count || !(data.value[node] > 0)) node = 0;
    this.zoom = node;
    const from = this.left[node],
      to = from + Math.max(data.value[node], 1e-9);
    cancelAnimationFrame(this.animation);
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!isSmooth || isStill || (from === this.from && to === this.to)) {
      this.from = from;
      this.to = to;
      this.resize();
      return;
    }
    const start = performance.now(),
      oldFrom = this.from,
      oldTo = this.to;
    const step = (now: number) => {
      const share = Math.min(1, (now - start) / ZOOM_MS),
        ease = 1 - (1 - share) ** 3;
      this.from = oldFrom + (from - oldFrom) * ease;
      this.to = oldTo + (to - oldTo) * ease;
      this.draw();
      if (share < 1) this.animation = requestAnimationFrame(step);
      else this.resize();
    };
    this.animation = requestAnimationFrame(step);
  }

  /** Rows below the zoomed node, as far as they can be seen. */
  private resize(): void {
    const rows = this.data!.maxDepth - this.firstDepth + 1;
    this.row = Math.max(ROW_LEAST, Math.min(ROW_MOST, Math.floor((innerHeight * 0.6) / Math.max(rows, 1))));
    const height = Math.max(rows * this.row, 0);
    this.height = height;
    this.sizer.style.height = height + "px";
    this.element.style.flex = `0 1 ${Math.max(height, this.row) + 2}px`;
    if (this.options.isUpward) this.element.scrollTop = this.element.scrollHeight;
    this.redraw();
  }

  redraw(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  private yOf(row: number, height: number): number {
    if (!this.options.isUpward) return row * this.row - this.offset;
    const whole = Math.max(this.height, height);
    return whole - (row + 1) * this.row - this.offset;
  }

  private draw(): void {
    const width = this.element.clientWidth,
      height = this.element.clientHeight;
    if (!this.data || !width || !height) return;
    const context = fitCanvas(this.canvas, width, height);
    this.look = readLook();
    this.offset = this.element.scrollTop;
    context.fillStyle = this.look.page;
    context.fillRect(0, 0, width, height);
    context.font = `12px ${this.look.mono}`;
    context.textBaseline = "middle";
    this.drawn = [];
    const { tree } = this.data,
      scale = width / (this.to - this.from);
    for (let node = tree.parent[this.zoom]; node >= 0; node = tree.parent[node])
      this.drawNode(context, node, 0, width, height, true);
    this.drawBelow(context, scale, width, height);
    if (this.cursor >= 0 && document.activeElement === this.canvas) this.drawCursor(context, height);
  }

  private drawBelow(context: CanvasRenderingContext2D, scale: number, width: number, height: number): void {
    const { tree, value, first, order } = this.data!;
    const pending = [this.zoom];
    while (pending.length) {
      const node = pending.pop()!;
      const x = Math.max((this.left[node] - this.from) * scale, 0);
      const right = Math.min((this.left[node] + value[node] - this.from) * scale, width);
      const y = this.yOf(tree.depth[node] - this.firstDepth, height);
      if (y > -this.row && y < height) this.drawNode(context, node, x, right - x, height, false);
      const isPast = this.options.isUpward ? y < 0 : y > height;
      if (isPast) continue;
      for (let i = first[node]; i < first[node + 1]; i++) {
        const child = order[i],
          start = (this.left[child] - this.from) * scale;
        const end = start + value[child] * scale;
        if (end < 0 || start > width) continue;
        if (end - start < THINNEST_PX) {
          this.drawRest(context, node, start, scale, height);
          break;
        }
        pending.push(child);
      }
    }
  }

  /** What is too thin to be drawn alone. */
  private drawRest(context: CanvasRenderingContext2D, node: number, x: number, scale: number, height: number): void {
    const { tree, value, first, order } = this.data!;
    const last = order[first[node + 1] - 1];
    const end = (this.left[last] + value[last] - this.from) * scale;
    const y = this.yOf(tree.depth[node] + 1 - this.firstDepth, height);
    if (end - x < THINNEST_PX || y < -this.row || y > height) return;
    context.fillStyle = this.look.rest;
    context.fillRect(x, y, Math.max(end - x - 0.5, 0.5), this.row - 1);
  }

  private drawNode(
    context: CanvasRenderingContext2D,
    node: number,
    x: number,
    width: number,
    height: number,
    isContext: boolean,
  ): void {
    const row = this.data!.tree.depth[node] - this.firstDepth;
    const y = this.yOf(row, height);
    if (row < 0) return;
    this.drawn.push({ node, x, width, row });
    const isDim = isContext || (this.marked !== null && !this.marked[node]);
    const isMarked = this.marked !== null && this.marked[node] && !isContext;
    context.fillStyle = isMarked ? this.look.found : node ? this.options.colour(node) : this.look.root;
    context.globalAlpha = isDim ? (isContext ? 0.55 : 0.35) : 1;
    context.fillRect(x, y, Math.max(width - 1, 0.5), this.row - 1);
    context.globalAlpha = 1;
    if (node === this.hovered) {
      context.strokeStyle = this.look.text;
      context.lineWidth = 1.5;
      context.strokeRect(x + 0.75, y + 0.75, Math.max(width - 2.5, 0.5), this.row - 2.5);
    }
    const letters = Math.floor((width - 2 * PADDING) / LETTER_PX);
    if (letters < 3) return;
    const isOnPage = node === 0 || (isDim && this.look.isDark);
    context.fillStyle = isMarked ? this.look.onFound : isOnPage ? this.look.text : "#111";
    const title = this.options.title(node, letters);
    context.fillText(
      title.length <= letters ? title : title.slice(0, letters - 1) + "…",
      x + PADDING,
      y + this.row / 2,
    );
  }

  private drawCursor(context: CanvasRenderingContext2D, height: number): void {
    const at = this.drawn.find((one) => one.node === this.cursor);
    if (!at) return;
    context.strokeStyle = cssValue("--accent");
    context.lineWidth = 3;
    context.strokeRect(at.x + 1.5, this.yOf(at.row, height) + 1.5, Math.max(at.width - 4, 1), this.row - 4);
  }

  /** Node under the pointer, or -1. */
  private at(event: MouseEvent): number {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left,
      y = event.clientY - box.top;
    const height = this.element.clientHeight;
    for (const one of this.drawn) {
      const top = this.yOf(one.row, height);
      if (y >= top && y < top + this.row && x >= one.x && x < one.x + Math.max(one.width, 1)) return one.node;
    }
    return -1;
  }

  private hover(event: MouseEvent): void {
    const node = this.at(event);
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
    const node = this.at(event);
    if (node < 0) return;
    this.select(node);
    if (node !== this.zoom) this.options.onZoom(node);
  }

  private doubleClick(event: MouseEvent): void {
    if (this.at(event) < 0) this.options.onZoom(0);
  }

  private select(node: number): void {
    this.cursor = node;
    announce(this.options.describe(node));
    this.options.onSelect(node);
    this.reveal(node);
    this.redraw();
  }

  private reveal(node: number): void {
    this.offset = this.element.scrollTop;
    const height = this.element.clientHeight,
      y = this.yOf(this.data!.tree.depth[node] - this.firstDepth, height);
    if (y < 0) this.element.scrollTop += y - this.row;
    else if (y + this.row > height) this.element.scrollTop += y + 2 * this.row - height;
  }

  private sibling(node: number, step: number): number {
    const { tree, first, order } = this.data!,
      parent = tree.parent[node];
    if (parent < 0) return -1;
    const at = order.subarray(first[parent], first[parent + 1]).indexOf(node);
    const next = first[parent] + at + step;
    return next >= first[parent] && next < first[parent + 1] ? order[next] : -1;
  }

  private neighbour(key: string, node: number): number {
    const { tree, first, order } = this.data!;
    const child = first[node] < first[node + 1] ? order[first[node]] : -1;
    const parent = tree.depth[node] > this.firstDepth ? tree.parent[node] : -1;
    const isUp = this.options.isUpward === true;
    if (key === "ArrowDown") return isUp ? parent : child;
    if (key === "ArrowUp") return isUp ? child : parent;
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
