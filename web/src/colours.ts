// SPDX-License-Identifier: Apache-2.0
// Colours of frames and areas. The modules' palette is Paul Tol's "light" scheme, with two more, made
// to be distinguished without full colour vision and to be written on in black; growth goes from blue to orange.

import type { Model } from "./model";
import { baseName, duration } from "./units";

type Rgb = [number, number, number];

const PALETTE: Rgb[] = [
  [238, 136, 102],
  [119, 170, 221],
  [238, 221, 136],
  [68, 187, 153],
  [255, 170, 187],
  [153, 221, 255],
  [187, 204, 51],
  [170, 170, 0],
  [201, 160, 220],
  [196, 160, 130],
];
const OTHER: Rgb = [205, 205, 205];
const LESS: Rgb = [67, 133, 200],
  SAME_LIGHT: Rgb = [228, 228, 228],
  SAME_DARK: Rgb = [150, 150, 150],
  MORE: Rgb = [240, 130, 40];
const YOUNG: Rgb = [255, 245, 190],
  MIDDLE: Rgb = [130, 200, 175],
  OLD: Rgb = [100, 140, 215];
/** Of ages: doublings of a millisecond between two entries of the legend, and the most; what is older has the last colour. */
export interface Ages {
  step: number;
  most: number;
  unknown: string;
}
/** How old blocks became, and how old those are that live: up to some nine minutes, and some three days. */
export const AGES_FREED: Ages = { step: 4, most: 20, unknown: "not freed, or not known" },
  AGES_LIVE: Ages = { step: 4, most: 28, unknown: "not known" };
const DARK_FACTOR = 0.84;

export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function css([r, g, b]: Rgb): string {
  return `rgb(${Math.round(r)},${Math.round(g)},${Math.round(b)})`;
}

function mix(a: Rgb, b: Rgb, share: number): Rgb {
  return [a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share, a[2] + (b[2] - a[2]) * share];
}

function dimmed(colour: Rgb): Rgb {
  return isDark() ? mix([0, 0, 0], colour, DARK_FACTOR) : colour;
}

/** The n-th colour of a list of things. */
export function listed(n: number): string {
  return css(dimmed(PALETTE[n % PALETTE.length]));
}

/** -1: all of it gone, 0: the same, 1: all of it new; small changes are to be seen as well. */
export function growth(change: number): string {
  const share = Math.sign(change) * Math.sqrt(Math.min(1, Math.abs(change)));
  const same = isDark() ? SAME_DARK : SAME_LIGHT;
  return css(share < 0 ? mix(same, LESS, -share) : mix(same, MORE, share));
}

/** Of blocks of that age, as the power of two of milliseconds; darker with age, so that no hue need be told from another. */
function ofAge(power: number, { most }: Ages): Rgb {
  const share = Math.min(Math.max(power, 0) / most, 1);
  return share < 0.5 ? mix(YOUNG, MIDDLE, 2 * share) : mix(MIDDLE, OLD, 2 * share - 1);
}

/** -1: not known. */
export function age(power: number, ages: Ages): string {
  return css(dimmed(power < 0 ? OTHER : ofAge(power, ages)));
}

export function ageLegend(ages: Ages): { name: string; colour: string }[] {
  const legend = [];
  for (let power = 0; power <= ages.most; power += ages.step) {
    const text = duration(2 ** power * 1e6);
    legend.push({
      name: power ? (power === ages.most ? `${text} and more` : text) : `up to ${text}`,
      colour: age(power, ages),
    });
  }
  return [...legend, { name: ages.unknown, colour: age(-1, ages) }];
}

export interface Colours {
  readonly legend: { name: string; colour: string }[];
  of(fn: number): string;
}

/** The first of a list of functions (or of what owners' trees have for them: types) have a colour each. */
export class FunctionColours implements Colours {
  private colourOf = new Map<number, string>();
  readonly legend: { name: string; colour: string }[] = [];

  constructor(model: Model, order: number[]) {
    order.slice(0, PALETTE.length).forEach((fn, i) => {
      this.colourOf.set(fn, listed(i));
      this.legend.push({ name: model.fnName[fn], colour: listed(i) });
    });
    this.legend.push({ name: "others", colour: css(dimmed(OTHER)) });
  }

  of(fn: number): string {
    return this.colourOf.get(fn) ?? css(dimmed(OTHER));
  }
}

/** Of owners: the files that variables and calls are in, those first through which most is kept. */
export class KeeperColours implements Colours {
  private colourOf = new Map<string, string>();
  readonly legend: { name: string; colour: string }[] = [];

  constructor(
    private model: Model,
    sums: ArrayLike<number>,
  ) {
    const kept = new Map<string, number>();
    for (let fn = 0; fn < sums.length; fn++) {
      const module = model.keeperModule(fn);
      if (module !== null) kept.set(module, (kept.get(module) ?? 0) + sums[fn]);
    }
    [...kept]
      .filter(([, sum]) => sum > 0)
      .sort((a, b) => b[1] - a[1])
      .slice(0, PALETTE.length)
      .forEach(([module], i) => {
        this.colourOf.set(module, listed(i));
        this.legend.push({ name: module, colour: listed(i) });
      });
    this.legend.push({ name: "others", colour: css(dimmed(OTHER)) });
  }

  of(fn: number): string {
    return this.colourOf.get(this.model.keeperModule(fn) ?? "") ?? css(dimmed(OTHER));
  }
}

const STANDARD = -1;

/** The program's own modules get the first colours of the palette, then standard libraries, then the others in the order of what goes through them. */
export class ModuleColours implements Colours {
  private colourOf = new Map<number, Rgb>();
  private cache = new Map<number, string>();
  readonly legend: { name: string; colour: string }[] = [];

  constructor(
    private model: Model,
    order: number[],
  ) {
    const own = new Set<number>(),
      others = new Set<number>();
    let hasStandard = false;
    model.fnName.forEach((_, fn) => {
      if (model.isStandard(fn)) hasStandard = true;
      else (model.isOwn(fn) ? own : others).add(model.fnModule[fn]);
    });
    const first = order.filter((module) => own.has(module)).slice(0, PALETTE.length - 4),
      rest = order.filter((module) => others.has(module) && !own.has(module));
    [...first, ...(hasStandard ? [STANDARD] : []), ...rest].slice(0, PALETTE.length).forEach((module, i) => {
      this.colourOf.set(module, PALETTE[i]);
      const name = module === STANDARD ? "standard library" : baseName(model.modules.list[module]) || "[no module]";
      this.legend.push({ name: own.has(module) ? name + " (own code)" : name, colour: css(dimmed(PALETTE[i])) });
    });
  }

  of(fn: number): string {
    let colour = this.cache.get(fn);
    if (!colour) {
      const base = this.colourOf.get(this.model.isStandard(fn) ? STANDARD : this.model.fnModule[fn]) ?? OTHER;
      // neighbours of one module differ by a shade
      const shade = (Math.imul(fn + 1, 0x9e3779b1) >>> 28) / 15;
      colour = css(dimmed(mix(base, [255, 255, 255], 0.22 * shade)));
      this.cache.set(fn, colour);
    }
    return colour;
  }
}
