// SPDX-License-Identifier: Apache-2.0
// What stacks are measured by: the columns of a page's profiles, with the words for them.

import type { NumberedParts } from "./numbering";

export interface Measure {
  id: string;
  label: string;
  help: string;
  isBytes: boolean;
  noun: [string, string]; // of the blocks or calls beside it
  values: Float64Array; // by stack
  counts: Float64Array; // blocks or calls, by stack
}

export const BLOCKS: [string, string] = ["block", "blocks"];

function makeKept(all: NumberedParts, blocks: Float64Array): Measure[] {
  const kept = { noun: BLOCKS, counts: blocks };
  return [
    {
      ...kept,
      id: "exit",
      label: "Kept",
      help: "bytes of the blocks",
      isBytes: true,
      values: all.joined("at_exit_bytes"),
    },
    { ...kept, id: "exit-blocks", label: "Blocks kept", help: "blocks", isBytes: false, values: blocks },
  ];
}

/** What was live at the snapshots that the page was asked for. */
function makeThen(all: NumberedParts): Measure[] {
  const help = all.parts.map((part) => part.profile.facts.at_text).join(" → "),
    counts = all.joined("at_blocks");
  return [
    { id: "at", label: "Live at snapshot", help, isBytes: true, noun: BLOCKS, values: all.joined("at"), counts },
    { id: "at-blocks", label: "Blocks at snapshot", help, isBytes: false, noun: BLOCKS, values: counts, counts },
  ];
}

export function makeMeasures(all: NumberedParts): Measure[] {
  const isOver = all.parts.every((part) => part.profile.facts.has_ended);
  const peak = all.joined("peak_bytes"),
    exit = all.joined("at_exit_bytes");
  // a stack that is one block because nobody counted them has no number beside its bytes
  const peakBlocks = all.hasBlocks ? all.joined("peak_blocks") : peak,
    exitBlocks = all.hasBlocks ? all.joined("at_exit_blocks") : exit;
  const calls = all.joined("allocations");
  const callNoun: [string, string] = ["call", "calls"];
  if (all.isOfOwners) return makeKept(all, exitBlocks);
  const end = isOver ? "At the end" : "Now";
  const list: Measure[] = [
    ...(all.hasSnapshotValues ? makeThen(all) : []),
    {
      id: "peak",
      label: "At the peak",
      help: "bytes that were live when the heap was largest",
      isBytes: true,
      noun: BLOCKS,
      values: peak,
      counts: peakBlocks,
    },
    {
      id: "exit",
      label: end,
      help: "bytes that were never freed",
      isBytes: true,
      noun: BLOCKS,
      values: exit,
      counts: exitBlocks,
    },
    {
      id: "allocated",
      label: "Allocated",
      help: "bytes asked for over all time",
      isBytes: true,
      noun: callNoun,
      values: all.joined("allocated_bytes"),
      counts: calls,
    },
    {
      id: "calls",
      label: "Calls",
      help: "number of allocations",
      isBytes: false,
      noun: callNoun,
      values: calls,
      counts: calls,
    },
    {
      id: "peak-blocks",
      label: "Blocks at the peak",
      help: "blocks that were live when the heap was largest",
      isBytes: false,
      noun: BLOCKS,
      values: peakBlocks,
      counts: peakBlocks,
    },
    {
      id: "exit-blocks",
      label: isOver ? "Blocks at the end" : "Blocks now",
      help: "blocks that were never freed",
      isBytes: false,
      noun: BLOCKS,
      values: exitBlocks,
      counts: exitBlocks,
    },
  ];
  const extra = (id: string, label: string, help: string, isBytes: boolean, values: Float64Array): void => {
    if (values.some((value) => value > 0))
      list.push({ id, label, help, isBytes, noun: callNoun, values, counts: isBytes ? calls : values });
  };
  extra(
    "temporary",
    "Temporary blocks",
    "blocks freed by their thread before it allocated again",
    false,
    all.joined("temporary"),
  );
  extra("slack", "Slack", "room of all blocks beyond what was asked for", true, all.joined("slack_bytes"));
  const unknown = [
    ...(all.hasCalls ? [] : ["allocated", "calls"]),
    ...(all.hasBlocks ? [] : ["peak-blocks", "exit-blocks"]),
  ];
  return list.filter((one) => !unknown.includes(one.id));
}
