// SPDX-License-Identifier: Apache-2.0
// A tree map on a canvas: each node a rectangle as large as what it holds, with those below it
// inside. Rectangles are laid out nearly square (Bruls, Huizing and van Wijk, "Squarified Treemaps",
// 2000); what would be too small to be seen is one grey rest.

import { Picture, type PictureOptions } from "./picture";

const HEAD_PX = 18, // of a node's own line above those inside
  EDGE_PX = 2,
  SIDE_LEAST = 3,
  HEAD_LEAST = 44; // lower or narrower rectangles have no line of their own

interface Box {
  node: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

interface Item {
  node: number; // -1: what the node itself holds
  value: number;
}

export class TreeMap extends Picture {
  private drawn: Box[] = [];

  constructor(options: PictureOptions) {
    super(options, "tree map", "map");
  }

  protected layOut(): void {}

  protected reveal(node: number): void {
    if (!this.drawn.some((one) => one.node === node)) this.options.onZoom(Math.max(this.data!.tree.parent[node], 0));
  }

  protected zoomTo(node: number): void {
    this.zoom = node;
    this.redraw();
  }

  protected at(x: number, y: number): number {
    for (let i = this.drawn.length - 1; i >= 0; i--) {
      const one = this.drawn[i];
      if (x >= one.x && x < one.x + one.width && y >= one.y && y < one.y + one.height) return one.node;
    }
    return -1;
  }

  protected paint(context: CanvasRenderingContext2D, width: number, height: number): void {
    this.drawn = [];
    const pending: Box[] = [{ node: this.zoom, x: 0, y: 0, width, height }];
    while (pending.length) {
      const outer = pending.pop()!,
        box = { ...outer, node: outer.node === this.zoom ? outer.node : this.endOfChain(outer.node) };
      this.drawn.push(box);
      this.box(context, box.node, box.x, box.y, box.width, box.height);
      if (box.width > 4 && box.height > 4) {
        context.strokeStyle = this.look.page;
        context.lineWidth = 1;
        context.strokeRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1);
      }
      const inner = this.inside(context, box, outer.node);
      if (inner) this.divide(context, box.node, inner, pending);
    }
    const cursor = this.hasCursor ? this.drawn.find((one) => one.node === this.cursor) : undefined;
    if (cursor) this.outline(context, cursor.x, cursor.y, cursor.width, cursor.height);
  }

  /** Of a node with one below it that holds all of it, and so on, the last: they are one box. */
  private endOfChain(node: number): number {
    const { value, first, order } = this.data!;
    while (first[node + 1] - first[node] === 1 && value[order[first[node]]] >= value[node]) node = order[first[node]];
    return node;
  }

  /** Writes a box' title, and says where those below it go; null: there are none, or no room. */
  private inside(context: CanvasRenderingContext2D, box: Box, outer: number): Box | null {
    const { first } = this.data!,
      isLeaf = first[box.node] === first[box.node + 1],
      hasHead = box.width >= HEAD_LEAST && box.height >= HEAD_LEAST;
    if (hasHead || (isLeaf && box.height >= HEAD_PX - 4))
      this.writeTitle(
        context,
        box.node,
        box.x,
        box.y + Math.min(HEAD_PX, box.height) / 2,
        box.width - EDGE_PX,
        outer === box.node ? "" : `${this.options.title(outer, 0)} › `,
      );
    const inner = {
      node: box.node,
      x: box.x + EDGE_PX,
      y: box.y + (hasHead ? HEAD_PX : EDGE_PX),
      width: box.width - 2 * EDGE_PX - 1,
      height: box.height - (hasHead ? HEAD_PX : EDGE_PX) - EDGE_PX - 1,
    };
    return isLeaf || inner.width < SIDE_LEAST || inner.height < SIDE_LEAST ? null : inner;
  }

  private itemsOf(node: number): Item[] {
    const { value, self, first, order } = this.data!,
      items: Item[] = [];
    let isPending = self[node] > 0;
    for (let i = first[node]; i < first[node + 1]; i++) {
      if (isPending && self[node] >= value[order[i]]) {
        items.push({ node: -1, value: self[node] });
        isPending = false;
      }
      items.push({ node: order[i], value: value[order[i]] });
    }
    if (isPending) items.push({ node: -1, value: self[node] });
    return items;
  }

  /** Rows of rectangles along the shorter side, each as long as their shapes get better by it. */
  private divide(context: CanvasRenderingContext2D, node: number, room: Box, pending: Box[]): void {
    const items = this.itemsOf(node);
    let left = items.reduce((sum, item) => sum + item.value, 0),
      { x, y, width, height } = room;
    for (let start = 0; start < items.length;) {
      const side = Math.min(width, height),
        scale = (width * height) / left;
      if (side < SIDE_LEAST || items[start].value * scale < SIDE_LEAST * SIDE_LEAST) {
        context.fillStyle = this.look.rest;
        context.fillRect(x, y, Math.max(width, 0), Math.max(height, 0));
        return;
      }
      const { end, sum } = TreeMap.row(items, start, side, scale),
        thickness = (sum * scale) / side,
        isUpright = width >= height;
      let at = isUpright ? y : x;
      for (; start < end; start++) {
        const length = (items[start].value * scale) / thickness;
        if (items[start].node >= 0)
          pending.push(
            isUpright
              ? { node: items[start].node, x, y: at, width: thickness, height: length }
              : { node: items[start].node, x: at, y, width: length, height: thickness },
          );
        at += length;
      }
      left -= sum;
      if (isUpright) [x, width] = [x + thickness, width - thickness];
      else [y, height] = [y + thickness, height - thickness];
    }
  }

  /** Which items from `start` on make the next row: as many as do not make its worst shape worse. */
  private static row(items: Item[], start: number, side: number, scale: number): { end: number; sum: number } {
    const worst = (sum: number, least: number) => {
      const square = (sum * scale) ** 2,
        ratio = side * side * scale;
      return Math.max((ratio * items[start].value) / square, square / (ratio * least));
    };
    let end = start + 1,
      sum = items[start].value;
    for (let shape = worst(sum, sum); end < items.length; end++) {
      const next = worst(sum + items[end].value, items[end].value);
      if (next > shape) break;
      shape = next;
      sum += items[end].value;
    }
    return { end, sum };
  }
}
