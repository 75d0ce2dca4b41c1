// SPDX-License-Identifier: Apache-2.0
// The lists of who allocated: threads, contexts (sets of the program's labels), processes of a run.

import { focused, type App } from "./app";
import { bar, numbersOf, sparkColumn, sureOf, withSure, type Listed } from "./columns";
import { h, type Child } from "./dom";
import { lineOf, sparkline } from "./spark";
import * as units from "./units";
import type { Facts, Thread } from "./data";
import type { View } from "./view";

// Of labels, as format.h has it: how many a process keeps, and what the value of all others is.
const LABELS_KEPT = "4,096",
  OTHER = "=(other)";

/** Threads, and one line for all that share an account. */
function linesOf({ threads, thread_accounts }: Facts): Thread[] {
  const together = (thread_accounts ?? []).map((one) => {
    const sharers = threads.filter(({ account }) => account === one.account),
      ends = sharers.map(({ end_ns }) => end_ns);
    return {
      ...sharers[0],
      tid: 0,
      name: one.name,
      end_ns: ends.includes(null) ? null : Math.max(...ends.map((end) => end ?? 0)),
      allocations: one.allocations,
      allocated_bytes: one.allocated_bytes,
      at_exit_bytes: one.at_exit_bytes,
      at_exit_estimate: one.at_exit_estimate,
    };
  });
  return [...threads.filter(({ account }) => account === undefined), ...together];
}

export function listThreads(app: App, view: View): Listed {
  const threads = view.profiles
    .map((i) => view.model.parts[i])
    .flatMap((part) => linesOf(part.profile.facts).map((thread) => ({ thread, part, facts: part.profile.facts })));
  const name = (row: number) => threads[row].thread.name || "[no name]";
  const number = numbersOf("130px");
  const only = (row: number) =>
    threads.length > 1 && app.set(focused(app.state, "thread", String(threads[row].thread.slot)));
  let most = 0;
  for (const { thread } of threads) most = Math.max(most, thread.allocated_bytes);
  const lasted = (row: number) =>
    (threads[row].thread.end_ns ?? threads[row].facts.process.duration_ns) - threads[row].thread.start_ns;
  // threads that had a slot of the recording one after the other are one line: their blocks cannot be distinguished
  const line = (row: number): Child => {
    const {
        part,
        facts,
        thread: { slot },
      } = threads[row],
      sharers = facts.threads.filter((other) => other.slot === slot).length;
    return h(
      "span",
      { title: sharers > 1 ? `of ${sharers} threads together, one after the other` : null },
      sparkline(
        part,
        part.history?.slots.map((held) => held[slot] ?? 0),
        96,
        22,
      ),
    );
  };
  return {
    columns: [
      {
        id: "name",
        label: "Thread",
        width: "minmax(180px, 1fr)",
        sort: name,
        cell: (row) => [
          h("span", { class: "mono strong" }, name(row)),
          " ",
          h("span", { class: "dim" }, `${threads[row].thread.tid || "threads"} · ${threads[row].facts.program}`),
        ],
      },
      ...(threads.some(({ part }) => part.history) ? [sparkColumn(line)] : []),
      {
        id: "allocated",
        label: "Allocated",
        isNumber: true,
        width: "140px",
        sort: (row) => threads[row].thread.allocated_bytes,
        cell: (row) => bar(units.size(threads[row].thread.allocated_bytes), threads[row].thread.allocated_bytes, most),
      },
      number("calls", "Calls", undefined, (row) => threads[row].thread.allocations, units.count),
      withSure(
        number("exit", "Left of it", undefined, (row) => threads[row].thread.at_exit_bytes ?? 0, units.size),
        (row) => threads[row].thread.at_exit_estimate,
      ),
      number("start", "Started at", undefined, (row) => threads[row].thread.start_ns, units.duration),
      number("lasted", "Ran for", undefined, (row) => Math.max(lasted(row), 0), units.duration),
    ],
    rows: threads.map((_, i) => i),
    key: (row) => `${threads[row].thread.tid} ${threads[row].thread.start_ns}`,
    search: (matches) => (row) => matches(name(row)),
    select: (row) =>
      h(
        "div",
        { class: "details" },
        h("h2", { class: "mono name" }, name(row)),
        h(
          "p",
          { class: "dim" },
          `${threads[row].thread.tid ? `thread ${threads[row].thread.tid}` : "threads"} of ${threads[row].facts.program}`,
        ),
        threads.length > 1
          ? h(
              "div",
              { class: "actions" },
              h("button", { type: "button", class: "quiet", onclick: () => only(row) }, "Only what it allocated"),
            )
          : null,
      ),
    open: only,
  };
}

/** The key by whose values contexts are listed; "": whole sets. */
export function labelKey(app: App): string {
  const { labelKeys } = app.model,
    { key } = app.state;
  return key === "*" ? "" : labelKeys.includes(key) ? key : (labelKeys[0] ?? "");
}

export function listContexts(app: App, view: View): Listed {
  const key = labelKey(app),
    rows = view.contexts(key),
    isOther = rows.map(({ labels }) => labels.some((label) => label.endsWith(OTHER)));
  const most = rows.reduce((most, row) => Math.max(most, row.peak), 0);
  const number = numbersOf("130px");
  const end = view.model.parts.every((part) => part.profile.facts.has_ended) ? "At the end" : "Now";
  const only = (row: number) => {
    const focus = rows[row].labels.map((label) => `context:${label}`);
    if (focus.length) app.set({ focus: [...new Set([...view.state.focus, ...focus])], zoom: "" });
  };
  const name = (row: number) => rows[row].name || "(none)";
  return {
    columns: [
      {
        id: "name",
        label: key || "Context",
        width: "minmax(200px, 1fr)",
        sort: name,
        cell: (row) => [
          h("span", { class: rows[row].labels.length ? "mono strong" : "dim" }, name(row)),
          isOther[row] ? h("span", { class: "dim" }, ` labels after the first ${LABELS_KEPT} of a process`) : null,
        ],
      },
      {
        ...number(
          "peak",
          "At the peak",
          "bytes that were live when the heap was largest",
          (row) => rows[row].peak,
          units.size,
        ),
        width: "140px",
        cell: (row) => bar(units.size(rows[row].peak), rows[row].peak, most),
      },
      number("exit", end, "bytes that were not freed", (row) => rows[row].exit, units.size),
      number("allocated", "Allocated", "bytes asked for over all time", (row) => rows[row].allocated, units.size),
      number("calls", "Calls", "number of allocations", (row) => rows[row].calls, units.count),
      number(
        "entered",
        "Entered",
        "times that a thread came in",
        (row) => rows[row].entered,
        (value) => (value ? units.count(value) : "–"),
      ),
    ],
    rows: [...rows.keys()].filter((row) => rows[row].calls || rows[row].entered),
    key: (row) => rows[row].labels.join("\0"),
    search: (matches) => (row) => matches(name(row)),
    select: (row) =>
      h(
        "div",
        { class: "details" },
        h("h2", { class: "mono name" }, rows[row].labels.join(" ") || "(none)"),
        rows[row].labels.length
          ? h(
              "div",
              { class: "actions" },
              h("button", { type: "button", class: "quiet", onclick: () => only(row) }, "Only what it allocated"),
            )
          : h("p", { class: "dim" }, key ? `what has no label ${key}` : "what was allocated outside of all contexts"),
        view.model.spread("peak")
          ? h("p", { class: "dim" }, "Estimates from samples: cairn report --json has their intervals.")
          : null,
      ),
    open: only,
  };
}

export function listProcesses(app: App): Listed {
  const { run } = app.model.page,
    rows = run!.rows,
    { parts } = app.model;
  const profileOf = (row: number) =>
    parts.findIndex((part) => rows[row].file && part.profile.facts.path.endsWith("/" + rows[row].file));
  let most = 0;
  for (const row of rows) most = Math.max(most, row.peak);
  const number = numbersOf("115px");
  const ending = (row: number) =>
    rows[row].signal
      ? `signal ${rows[row].signal}`
      : rows[row].status === undefined
        ? ""
        : `status ${rows[row].status}`;
  const show = (row: number) =>
    profileOf(row) >= 0 &&
    app.set({ process: String(profileOf(row)), view: "overview", zoom: "", focus: [], pivot: "" });
  const line = (live: number[] = []) =>
    live.length ? lineOf([...live.keys(), live.length], [...live, live[live.length - 1]], 96, 22) : null;
  return {
    columns: [
      {
        id: "name",
        label: "Process",
        width: "minmax(200px, 1fr)",
        sort: (row) => rows[row].name,
        cell: (row) => [
          h("span", { class: "mono strong" }, rows[row].name),
          " ",
          h("span", { class: "dim" }, rows[row].pid),
        ],
      },
      ...(rows.some((row) => row.live) ? [sparkColumn((row) => line(rows[row].live))] : []),
      {
        id: "peak",
        label: "Peak heap",
        isNumber: true,
        width: rows.some((row) => row.peak_estimate) ? "250px" : "140px",
        sort: (row) => rows[row].peak,
        cell: (row) => bar(units.size(rows[row].peak) + sureOf(rows[row].peak_estimate), rows[row].peak, most),
      },
      number(
        "rss",
        "RSS peak",
        undefined,
        (row) => rows[row].rss_peak,
        (value) => (value ? units.size(value) : "–"),
      ),
      number("allocated", "Allocated", undefined, (row) => rows[row].allocated, units.size),
      number("calls", "Calls", undefined, (row) => rows[row].calls, units.count),
      withSure(
        number("exit", "At the end", undefined, (row) => rows[row].exit, units.size),
        (row) => rows[row].exit_estimate,
      ),
      number("duration", "Ran for", undefined, (row) => rows[row].duration_ns, units.duration),
      { id: "ending", label: "Ended", width: "90px", sort: ending, cell: ending },
    ],
    rows: rows.map((_, i) => i),
    key: (row) => row,
    search: (matches) => (row) => matches(rows[row].name) || matches(String(rows[row].pid)),
    select: (row) =>
      h(
        "div",
        { class: "details" },
        h("h2", { class: "mono name" }, rows[row].name),
        h("p", { class: "dim" }, `process ${rows[row].pid}, child of ${rows[row].ppid}`),
        profileOf(row) >= 0
          ? h(
              "div",
              { class: "actions" },
              h("button", { type: "button", class: "quiet", onclick: () => show(row) }, "Show this process"),
            )
          : h(
              "p",
              { class: "dim" },
              rows[row].file
                ? "Small: its stacks are not in this page (cairn open on its file shows them)."
                : "It left no recording: it made few allocations.",
            ),
      ),
    open: show,
  };
}
