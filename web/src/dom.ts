// SPDX-License-Identifier: Apache-2.0
// Elements are made here and nowhere else. Text becomes text nodes, never markup: whatever a
// recording says is shown as it is.

type Value = string | number | boolean | null | undefined | ((event: never) => void);
export type Child = Node | string | number | null | undefined | false | Child[];

function append(parent: Element, child: Child): void {
  if (child === null || child === undefined || child === false) return;
  if (Array.isArray(child)) for (const one of child) append(parent, one);
  else parent.append(child instanceof Node ? child : String(child));
}

function setOne(element: Element, name: string, value: Value): void {
  if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
  else if (value === true) element.setAttribute(name, "");
  else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
}

/** h("button", {class: "chip", onclick: ...}, "text", child, ...) */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, Value> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const name in attributes) setOne(element, name, attributes[name]);
  append(element, children);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";
export function svg(tag: string, attributes: Record<string, Value> = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const name in attributes) setOne(element, name, attributes[name]);
  append(element, children);
  return element;
}

export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

/** Colours and lengths of the style sheet, where a canvas needs them. */
export function cssValue(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Says something to people who listen to the page. */
export function announce(text: string): void {
  const region = document.getElementById("live");
  if (region) region.textContent = text;
}

/** A pixel-exact canvas: sized in CSS pixels, drawn in the device's. */
export function fitCanvas(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = window.devicePixelRatio || 1;
  const w = Math.round(width * ratio),
    hgt = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== hgt) {
    canvas.width = w;
    canvas.height = hgt;
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
  }
  const context = canvas.getContext("2d", { alpha: false })!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
