// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them, in the same form as in the tool's reports (tool/base/units.c).

const SIZE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** As printf rounds: what lies in the middle goes to the even digit, where toFixed goes up. */
function fixed(value: number, decimals: number): string {
  const step = 10 ** -decimals,
    isTie = Math.abs(value) % [2, 1, 0.5][decimals] === [0.5, 0.25, 0.125][decimals];
  return (isTie ? value - (Math.sign(value) * step) / 2 : value).toFixed(decimals);
}

export function size(bytes: number): string {
  let value = bytes,
    unit = 0;
  for (; Math.abs(value) >= 1023.5 && unit + 1 < SIZE_UNITS.length; unit++) value /= 1024;
  const decimals = unit > 0 && Math.abs(value) < 99.95 ? 1 : 0;
  return `${fixed(value, decimals)} ${SIZE_UNITS[unit]}`;
}

export function count(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ",");
}

export function short(value: number): string {
  const prefixes = ["", "k", "M", "G"];
  let unit = 0;
  for (; Math.abs(value) >= 999.5 && unit + 1 < prefixes.length; unit++) value /= 1000;
  return `${fixed(value, unit > 0 && Math.abs(value) < 99.95 ? 1 : 0)}${unit ? " " + prefixes[unit] : ""}`;
}

export function percent(part: number, whole: number): string {
  if (!whole) return "";
  const share = (100 * part) / whole;
  return `${fixed(share, Math.abs(share) < 9.95 ? 1 : 0)} %`;
}

export function duration(ns: number): string {
  const s = ns / 1e9;
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  if (ns < 1e6) return `${fixed(ns / 1e3, ns < 1e5 ? 1 : 0)} µs`;
  if (ns < 1e9 / 10) return `${fixed(ns / 1e6, ns < 1e7 ? 1 : 0)} ms`;
  if (s < 60) return `${fixed(s, s < 10 ? 2 : 1)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(Math.floor(s % 60)).padStart(2, "0")} s`;
  return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} min`;
}

export function signed(text: string, value: number): string {
  return value > 0 ? "+" + text : text;
}

export function plural(value: number, one: string, many = one + "s"): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** " ± 1.2 KiB (62 samples)", or nothing for what is exact. Certain samples are not among them. */
export function sure(half: number, samples: number, isBytes = true): string {
  return half
    ? ` ± ${(isBytes ? size : count)(half)}${samples ? ` (${plural(samples, "sample")}${samples < 5 ? ", unreliable" : ""})` : ""}`
    : "";
}

/** What screens show of an estimate: no more than was ever allocated. */
export function shown(value: number, most?: number): number {
  return most ? Math.min(value, most) : value;
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1) || path;
}
