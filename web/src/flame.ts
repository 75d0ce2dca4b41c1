// SPDX-License-Identifier: Apache-2.0
// A flame graph on a canvas. Only what is wide enough to be seen is drawn: children come in order of
// size, so that the first too thin one ends a row's work, however many nodes there are.

import { h } from "./dom";
import { Picture, type PictureOptions } from "./picture";

const ROW_LEAST = 20,
  ROW_MOST = 28,
  THINNEST_PX = 0.6,
  ZOOM_MS = 170;

export interface FlameOptions extends PictureOptions {
  isUpward?: boolean; // the first row is at the bottom
}

interface Drawn {
  node: number;
  x: number;
  width: number;
  row: number;
}

export class Flame extends Picture<FlameOptions> {
  private sizer: HTMLDivElement;
  private left = new Float64Array(1);
  private from = 0;
  private to = 1;
  private drawn: Drawn[] = [];
  private offset = 0; // what is scrolled away at the top
  private height = 0; // of all rows
  private row = ROW_LEAST;
  private animation = 0;

  constructor(options: FlameOptions) {
    super(options, "flame graph", "flame");
    this.sizer = h("div", { class: "flame-sizer" });
    this.element.insertBefore(this.sizer, this.canvas.nextSibling);
    this.element.addEventListener("scroll", () => this.redraw());
  }

  protected override resized(): void {
    if (this.options.isUpward) this.element.scrollTop = this.element.scrollHeight;
    this.redraw();
  }

  protected layOut(): void {
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

  protected zoomTo(node: number, isSmooth: boolean): void {
    const data = this.data!;
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

  private yOf(row: number, height: number): number {
    if (!this.options.isUpward) return row * this.row - this.offset;
    const whole = Math.max(this.height, height);
    return whole - (row + 1) * this.row - this.offset;
  }

  protected paint(context: CanvasRenderingContext2D, width: number, height: number): void {
    this.offset = this.element.scrollTop;
    this.drawn = [];
    const { tree } = this.data!,
      scale = width / (this.to - this.from);
    for (let node = tree.parent[this.zoom]; node >= 0; node = tree.parent[node])
      this.drawNode(context, node, 0, width, height, true);
    this.drawBelow(context, scale, width, height);
    const at = this.hasCursor ? this.drawn.find((one) => one.node === this.cursor) : undefined;
    if (at) this.outline(context, at.x, this.yOf(at.row, height), at.width, this.row);
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
    this.box(context, node, x, y, width, this.row, isContext);
    this.writeTitle(context, node, x, y + this.row / 2, width, "", isContext);
  }

  protected at(x: number, y: number): number {
    const height = this.element.clientHeight;
    for (const one of this.drawn) {
      const top = this.yOf(one.row, height);
      if (y >= top && y < top + this.row && x >= one.x && x < one.x + Math.max(one.width, 1)) return one.node;
    }
    return -1;
  }

  protected reveal(node: number): void {
    this.offset = this.element.scrollTop;
    const height = this.element.clientHeight,
      y = this.yOf(this.data!.tree.depth[node] - this.firstDepth, height);
    if (y < 0) this.element.scrollTop += y - this.row;
    else if (y + this.row > height) this.element.scrollTop += y + 2 * this.row - height;
  }

  protected override neighbour(key: string, node: number): number {
    const turned: Record<string, string> = { ArrowDown: "ArrowUp", ArrowUp: "ArrowDown" };
    return super.neighbour((this.options.isUpward && turned[key]) || key, node);
  }
}
