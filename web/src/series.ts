// SPDX-License-Identifier: Apache-2.0
// The lines of the timeline: what was live, resident and allocated a second, at common times.

import type { Profile } from "./data";

export interface Series {
  seconds: number[];
  live: number[];
  before: number[] | null;
  rate: number[];
  calls: number[];
  rss: (number | null)[] | null;
}

/** Values at times in seconds, in ascending order. */
export interface Line {
  seconds: number[];
  values: number[];
}

const POINTS_MAX = 1500,
  RATE_BUCKETS = 120;

/** The heap as steps: a point of the recording that nobody touched goes on with the value before it. */
export function readLive(profile: Profile): Line {
  const column = (name: string) => profile.numbers.get("point." + name) ?? new Float64Array();
  const index = column("index"),
    high = column("high"),
    last = column("last"),
    { point_ns: step, peak } = profile.facts;
  const seconds: number[] = [],
    values: number[] = [];
  const push = (at: number, value: number) => {
    seconds.push((at * step) / 1e9);
    values.push(Math.max(value, 0));
  };
  let at = -1,
    held = 0;
  for (let i = 0; i < index.length; i++) {
    const next = Math.max(at, 0) + index[i];
    if (next > at + 1) {
      // silence in between, or in front
      push(at + 1, held);
      if (next > at + 2) push(next - 0.001, held);
    }
    push(next + 0.5, Math.min(high[i], peak.bytes));
    held = last[i];
    at = next;
  }
  const end = profile.facts.process.duration_ns / step;
  if (index.length && end > at + 1) {
    push(at + 1, held);
    push(end, held);
  }
  return thinned({ seconds, values });
}

/** The highest of each stretch, so that a long recording is no more points than a screen has. */
function thinned({ seconds, values }: Line): Line {
  const stretch = Math.max(Math.ceil(seconds.length / POINTS_MAX), 1),
    out: Line = { seconds: [], values: [] };
  for (let from = 0; from < seconds.length; from += stretch) {
    let most = from;
    for (let i = from; i < Math.min(from + stretch, seconds.length); i++) if (values[i] > values[most]) most = i;
    out.seconds.push(seconds[most]);
    out.values.push(values[most]);
  }
  return out;
}

/** How much came in each of some equal stretches of time, a second: what came between two notes is spread over the time between them. */
export function readRate({ numbers, facts: { point_ns: step, process } }: Profile, name: string): Line {
  const none = new Float64Array(),
    index = numbers.get("point.index") ?? none,
    sums = numbers.get("point." + name) ?? none;
  const end = Math.max(process.duration_ns, index.reduce((sum, one) => sum + one, 1) * step),
    width = end / RATE_BUCKETS;
  const values = new Array<number>(RATE_BUCKETS).fill(0);
  let from = 0,
    at = 0;
  index.forEach((steps, i) => {
    at += steps;
    const to = (at + 1) * step,
      density = (sums[i] - (i ? sums[i - 1] : 0)) / Math.max(to - from, 1);
    for (let bucket = Math.floor(from / width); bucket < RATE_BUCKETS && bucket * width < to; bucket++)
      values[bucket] += (density * (Math.min(to, (bucket + 1) * width) - Math.max(from, bucket * width)) * 1e9) / width;
    from = to;
  });
  return { seconds: values.map((_, i) => (i * width) / 1e9), values };
}

/** A line read at other times; between its points it rises evenly, or goes on with the last one. */
function readAt(line: Line, times: number[], isStepped: boolean): (number | null)[] {
  let i = -1;
  return times.map((time) => {
    while (i + 1 < line.seconds.length && line.seconds[i + 1] <= time) i++;
    if (i < 0) return null;
    const from = line.seconds[i],
      to = line.seconds[i + 1];
    return (
      line.values[i] +
      (isStepped || to === undefined ? 0 : ((time - from) / (to - from)) * (line.values[i + 1] - line.values[i]))
    );
  });
}

const GROWN = 1.05; // a reading holds until the heap has grown by so much beyond it

/** Resident memory between two readings is that of the first; not known where the live heap outgrew it since. */
function withoutGuesses(seconds: number[], line: Line, resident: number[], live: number[]): (number | null)[] {
  const readings = new Set(line.seconds);
  let liveThen = 0;
  return seconds.map((time, i) => {
    if (readings.has(time)) liveThen = live[i];
    const isKnown = readings.has(time) || live[i] <= Math.max(resident[i], liveThen * GROWN);
    return isKnown ? resident[i] : null;
  });
}

export function readSeries(profile: Profile, earlier: Profile | null): Series {
  const live = readLive(profile),
    before = earlier && readLive(earlier),
    rate = readRate(profile, "allocated"),
    calls = readRate(profile, "calls");
  const points = profile.facts.rss.points ?? [],
    rss = { seconds: points.map((one) => one.at_ns / 1e9), values: points.map((one) => one.rss_bytes) };
  if (live.seconds.length < 2) return { seconds: [], live: [], before: null, rate: [], calls: [], rss: null };
  const seconds = [...new Set([live, rate, rss, ...(before ? [before] : [])].flatMap((one) => one.seconds))].sort(
    (a, b) => a - b,
  );
  const read = (line: Line, isStepped = false) => readAt(line, seconds, isStepped) as number[];
  return {
    seconds,
    live: read(live),
    before: before && read(before),
    rate: read(rate, true),
    calls: read(calls, true),
    rss: points.length ? withoutGuesses(seconds, rss, read(rss, true), read(live)) : null,
  };
}
