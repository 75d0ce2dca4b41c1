// SPDX-License-Identifier: Apache-2.0
// What is shown, kept in the page's address: a view can be shared, and back and forward work.

export interface State {
  view: "overview" | "flame" | "table";
  measure: string;
  process: string; // number of the profile; "all": added up
  heap: string; // an allocator by name; "": malloc's heap
  search: string;
  focus: string[]; // "function:NAME", "module:PATH", "line:FILE:N", "stack:N", "thread:N", "context:KEY=VALUE"
  hide: string[]; // functions left out of the stacks
  internal: boolean; // also show what runs between the program and its allocations
  inverted: boolean;
  pivot: string; // function whose callers and callees are shown
  zoom: string; // path of child numbers in the flame graph, "0.2.1"
  shape: "flame" | "map" | "tree"; // how the tree is shown
  colour: "module" | "function" | "growth" | "age";
  side: "after" | "before" | "change" | "grown" | "shrunk"; // whose widths a comparison shows
  table: string;
  key: string; // of labels, by whose values contexts are listed; "": the first one, "*": whole sets
  sort: string; // column, with "-" in front: the smallest first
  from: number; // times of the timeline in ns: what is compared, 0: nothing,
  to: number; // with what
}

export const initial: State = {
  view: "overview",
  measure: "peak",
  process: "",
  heap: "",
  search: "",
  focus: [],
  hide: [],
  internal: false,
  inverted: false,
  pivot: "",
  zoom: "",
  shape: "flame",
  colour: "module",
  side: "change",
  table: "stacks",
  key: "",
  sort: "",
  from: 0,
  to: 0,
};

const names: Record<keyof State, string> = {
  view: "view",
  measure: "by",
  process: "process",
  heap: "heap",
  search: "search",
  focus: "focus",
  hide: "hide",
  internal: "internal",
  inverted: "inverted",
  pivot: "function",
  zoom: "zoom",
  shape: "shape",
  colour: "colour",
  side: "side",
  table: "table",
  key: "key",
  sort: "sort",
  from: "from",
  to: "to",
};

const choices: Partial<Record<keyof State, string[]>> = {
  view: ["overview", "flame", "table"],
  shape: ["flame", "map", "tree"],
  colour: ["module", "function", "growth", "age"],
  side: ["after", "before", "change", "grown", "shrunk"],
};

export function readState(hash: string): State {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  const state: Record<string, unknown> = { ...initial, focus: [], hide: [] };
  for (const key of Object.keys(names) as (keyof State)[]) {
    const given = parameters.getAll(names[key]);
    if (!given.length) continue;
    const usual = initial[key],
      known = choices[key];
    if (Array.isArray(usual)) state[key] = given;
    else if (typeof usual === "boolean") state[key] = given[0] === "1";
    else if (typeof usual === "number") state[key] = Number.isFinite(+given[0]) ? +given[0] : 0;
    else if (!known || known.includes(given[0])) state[key] = given[0];
  }
  return state as unknown as State;
}

export function writeState(state: State): string {
  const parameters = new URLSearchParams();
  for (const key of Object.keys(names) as (keyof State)[]) {
    const value = state[key];
    if (Array.isArray(value)) for (const one of value) parameters.append(names[key], one);
    else if (value !== initial[key]) parameters.set(names[key], value === true ? "1" : String(value));
  }
  return "#" + parameters.toString();
}
