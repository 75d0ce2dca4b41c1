// SPDX-License-Identifier: Apache-2.0
// A page that `cairn serve` sent follows its process: figures come as events once a second, all data when
// the server can make them and this page has taken the last ones. There is one state of the process here,
// and another one while they are compared: nothing grows.

import { readPage, type Page, type Profile } from "./data";
import { fill, h } from "./dom";
import { toggle } from "./parts";
import * as units from "./units";

/** What an event says (tool/serve/streams.c). */
interface Tick {
  live: number;
  blocks: number;
  allocated: number;
  calls: number;
  rss: number;
  peak: number;
  running: boolean;
}

const LEAST_WAIT_MS = 1000,
  COST_TIMES = 20; // a page that takes long to take data stands still meanwhile: that is a twentieth of its time

export class Live {
  readonly element = h("div", { class: "following", role: "group", "aria-label": "Live" });
  private now = h("span", { class: "live-now", role: "status" });
  private buttons = h("span", {});
  private tick: Tick | null = null;
  private source: EventSource | null = null;
  private timer = 0;
  private isPaused = false;
  private isOver = false;
  private isAway = false;
  private marked: Profile | null = null;
  private markedAt = 0;

  /** `show` takes a new state of the process; `isChanged`: what is compared is another thing than before. */
  constructor(
    private last: Page,
    private show: (page: Page, isChanged: boolean) => void,
  ) {
    fill(this.element, this.now, this.buttons);
    document.addEventListener("visibilitychange", () => (document.hidden ? this.sleep() : this.wake()));
    this.makeButtons();
    this.say();
    this.wake();
  }

  /** Nobody looks: nothing is asked for. */
  private sleep(): void {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  private wake(): void {
    this.sleep();
    if (this.isOver || this.isPaused) return;
    this.source = new EventSource("live");
    this.source.onmessage = (event) => this.take(JSON.parse(event.data) as Tick);
    this.source.onerror = () => this.lose();
    this.source.addEventListener("gone", (event) => this.leave((event as MessageEvent).data));
    this.fetchLater(0);
  }

  private take(tick: Tick): void {
    this.isAway = false;
    this.tick = tick;
    if (!tick.running) this.end();
    this.say();
  }

  private lose(): void {
    this.isAway = true;
    this.say();
  }

  /** Another process is served here now, or none. */
  private leave(why: string): void {
    if (why === "another") location.reload();
    else this.end();
  }

  private end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.sleep();
    this.fetchLater(0);
    this.makeButtons();
    this.say();
  }

  private fetchLater(ms: number): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.fetch(), ms);
  }

  private async fetch(): Promise<void> {
    let wait = LEAST_WAIT_MS;
    try {
      const answer = await fetch("live.data");
      if (!answer.ok) throw new Error(String(answer.status));
      const text = await answer.text(),
        began = performance.now(),
        page = await readPage(text);
      if (this.isPaused || (document.hidden && !this.isOver)) return;
      this.last = page;
      this.show(this.page(), false);
      const cost = performance.now() - began;
      wait = Math.max(wait, COST_TIMES * cost, Number(answer.headers.get("X-Next-Milliseconds")) || 0);
    } catch {
      if (this.isOver) return;
      wait = 2 * LEAST_WAIT_MS;
    }
    if (!this.isOver && !this.isPaused && !document.hidden) this.fetchLater(wait);
  }

  /** The process as it is, or beside what it was. */
  private page(): Page {
    const { marked, last } = this;
    if (!marked) return last;
    const side = (profile: Profile, role: "before" | "after"): Profile => ({
      ...profile,
      facts: { ...profile.facts, role },
    });
    return { run: null, profiles: [side(marked, "before"), side(last.profiles[0], "after")] };
  }

  private pause(): void {
    this.isPaused = !this.isPaused;
    this.makeButtons();
    this.say();
    if (this.isPaused) this.sleep();
    else this.wake();
  }

  private compare(): void {
    this.marked = this.marked ? null : this.last.profiles[0];
    this.markedAt = Date.now();
    this.makeButtons();
    this.say();
    this.show(this.page(), true);
  }

  private makeButtons(): void {
    const focused = this.buttons.contains(document.activeElement) ? document.activeElement!.id : "";
    fill(
      this.buttons,
      this.isOver
        ? null
        : toggle("pause", this.isPaused ? "Resume" : "Pause", "Keep the page as it is", this.isPaused, () =>
            this.pause(),
          ),
      toggle(
        "compare",
        this.marked ? "Stop comparing" : "Compare from now",
        "What changes from now on, as a comparison",
        Boolean(this.marked),
        () => this.compare(),
      ),
    );
    if (focused) document.getElementById(focused)?.focus();
  }

  private get word(): string {
    if (this.isOver) return "ended";
    if (this.isPaused) return "paused";
    return this.isAway ? "server is away" : "live";
  }

  private say(): void {
    const { tick } = this,
      since = this.marked ? ` · since ${new Date(this.markedAt).toLocaleTimeString()}` : "";
    this.element.dataset.state = this.word.split(" ")[0];
    this.now.textContent =
      this.word +
      (tick ? ` · ${units.size(tick.live)}${tick.rss ? ` of ${units.size(tick.rss)} RSS` : ""}` : "") +
      since;
  }
}
