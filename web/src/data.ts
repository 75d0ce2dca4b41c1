// SPDX-License-Identifier: Apache-2.0
// Reads the data that the tool put into the page (tool/web/sink.h draws the bytes): base64 of a
// compressed stream of chunks, grouped into profiles. Nothing is computed here.

export interface Point {
  index: Float64Array;
  low: Float64Array;
  high: Float64Array;
  last: Float64Array;
  allocated: Float64Array;
  calls: Float64Array;
}

export interface Thread {
  name: string;
  tid: number;
  slot: number;
  start_ns: number;
  end_ns: number | null;
  allocations: number;
  allocated_bytes: number;
  at_exit_bytes: number | null; // null: threads share it
  at_exit_estimate?: Estimate | null; // the same
  account?: number; // that it shares
}

/** Threads that ran one after the other, of which only what they hold together is known. */
export interface ThreadAccount {
  account: number;
  name: string;
  threads: number;
  allocations: number;
  allocated_bytes: number;
  at_exit_bytes: number | null;
  at_exit_estimate?: Estimate | null;
}

/** What resident memory consisted of at a moment; its parts add up to `rss_bytes`. */
export interface Picture {
  at_ns: number;
  rss_bytes: number;
  live_bytes: number | null; // not known: it is in rest_bytes, with what is free
  slack_bytes: number | null;
  free_bytes: number | null;
  mapped_bytes: number | null;
  rest_bytes: number;
  stacks_bytes: number;
  files_bytes: number;
  shared_bytes: number;
  own_bytes: number;
  other_bytes: number;
  heap_live_bytes: number;
  heap_live_blocks: number;
}

export interface Estimate {
  interval_bytes: number;
  interval_blocks?: number;
  /** More than that was never allocated. */
  most_bytes?: number;
  most_blocks?: number;
  samples: number;
}

export interface Resident {
  at_ns: number;
  rss_bytes: number;
}

export interface Facts {
  tool: string;
  role: "one" | "process" | "before" | "after";
  program: string;
  path: string;
  ending: string;
  empty: string | null;
  at_text: string | null; // of the snapshot that was asked for
  at_bytes: number;
  trust_line: string;
  first: string[]; // the sentences why it is so big
  executable: string;
  point_ns: number;
  has_ended: boolean;
  heap?: string; // an allocator by name in the place of malloc's heap (heaps.ts)
  of_owners: boolean; // its stacks are who keeps blocks, from a root inwards (cairn core save)
  process: { pid: number; ppid: number; command: string; start_unix_ns: number; duration_ns: number };
  /** False: an import that says only what was live. */
  has_calls: boolean;
  /** False: in how many blocks is not known; a stack counts as one. */
  has_blocks: boolean;
  totals: { allocations: number; frees: number; allocated_bytes: number; freed_bytes: number; failed: number };
  /** `from_ns`: it may have been as high from then on. */
  peak: { bytes: number; blocks: number; at_ns: number; from_ns?: number | null; error_bytes: number };
  at_exit: { bytes: number; blocks: number };
  rss: { peak_bytes: number; at_peak?: Picture | null; last?: Picture | null; points?: Resident[] };
  sampling?: { rate_most_bytes: number; peak_estimate: Estimate; at_exit_estimate: Estimate };
  trust: { exact: boolean; lost: Record<string, number>; own_bytes: number };
  threads: Thread[];
  thread_accounts?: ThreadAccount[];
}

export interface RunRow {
  file: string;
  parent: string | null;
  name: string;
  pid: number;
  ppid: number;
  start_ns: number;
  duration_ns: number;
  status?: number;
  signal?: number;
  peak: number;
  allocated: number;
  calls: number;
  exit: number;
  rss_peak: number;
  peak_estimate?: Estimate;
  exit_estimate?: Estimate;
  live?: number[]; // the highest of each of equal stretches of its time
}

export interface Run {
  facts: string;
  combined_low: number;
  combined_high: number;
  rows: RunRow[];
}

export type SourcePiece = [number, ...string[]];

/** What the blocks of a stack were like. */
export interface Shape {
  stack: number;
  sizes: [number, number][];
  reallocs?: [number, number, number];
  ages_ms?: number[];
}

/** The same of a row of the columns "heap.…". */
export interface HeapShape extends Omit<Shape, "stack" | "reallocs"> {
  row: number;
}

/** As the tool has it (tool/render/findings.h). */
export interface ToldFinding {
  kind: string;
  text: string;
  saves: string;
  sure?: string; // how that is known
  page: string;
  gain: number;
  stack?: number;
  is_estimate: boolean;
}

/** A heap by address; a cell is the percentage of its resident pages that is live, -1: none is resident. */
export interface Heap {
  is_core: boolean;
  resident: number;
  live: number;
  owners: [number, number, number][]; // stack, bytes kept resident, bytes live
  map: {
    cell_bytes: number;
    strips: { kind: string; bytes: number; resident_bytes: number; live_bytes: number; cells: number[] }[];
  };
}

export interface Snapshot {
  at_ns: number;
  reason: string;
  label: string;
}

/** A set of the program's own labels, and what was allocated in it. */
export interface ContextSet {
  labels: string[]; // "key=value", one of each key; none: outside of all
  entered: number;
  peak: number;
  exit: number;
  allocated: number;
  calls: number;
}

/** An allocator by name, or what arenas of one name in it hold. */
export interface NamedHeap {
  name: string;
  heap: number; // of the whole heap: its own number
  peak_ns: number;
  point_ns: number; // 0: it is not known over time
}

export interface Profile {
  facts: Facts;
  shapes: Shape[];
  findings: ToldFinding[];
  heap?: Heap;
  heaps: NamedHeap[];
  contexts: ContextSet[]; // none: the program entered none
  snapshots: Snapshot[];
  held: Float64Array[]; // by snapshot: bytes by stack, as a change of the snapshot before
  heldBySlot: Float64Array[]; // the same by slot of the thread that allocated
  heapShapes: HeapShape[] | null; // of allocators by name; null: the recording does not have them
  heldByHeaps: Float64Array[]; // by snapshot: bytes by row of "heap.…", as a change of the snapshot before
  texts: string[];
  numbers: Map<string, Float64Array>;
  sources: Record<string, SourcePiece[]>;
}

export interface Page {
  run: Run | null;
  profiles: Profile[];
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflate(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function readNumbers(bytes: Uint8Array): Float64Array {
  let count = 0;
  for (let i = 0; i < bytes.length; i++) if (bytes[i] < 0x80) count++;
  const out = new Float64Array(count);
  for (let at = 0, i = 0; i < count; i++) {
    let value = 0,
      scale = 1,
      byte;
    do {
      byte = bytes[at++];
      value += (byte & 0x7f) * scale;
      scale *= 128;
    } while (byte >= 0x80);
    out[i] = value % 2 ? -(value + 1) / 2 : value / 2;
  }
  return out;
}

function readTexts(bytes: Uint8Array): string[] {
  const texts = new TextDecoder().decode(bytes).split("\0");
  texts.pop();
  return texts;
}

function addChunk(page: Page, name: string, kind: string, bytes: Uint8Array): void {
  const profile = page.profiles[page.profiles.length - 1];
  const json = () => JSON.parse(new TextDecoder().decode(bytes));
  if (name === "run") page.run = json();
  else if (name === "profile")
    page.profiles.push({
      facts: json(),
      texts: [],
      numbers: new Map(),
      sources: {},
      shapes: [],
      findings: [],
      heaps: [],
      contexts: [],
      snapshots: [],
      held: [],
      heldBySlot: [],
      heapShapes: null,
      heldByHeaps: [],
    });
  else if (["snapshots", "shapes", "findings", "heap", "heaps", "heapShapes", "contexts"].includes(name))
    Object.assign(profile, { [name]: json() });
  else if (name === "snapshot.bytes") profile.held.push(readNumbers(bytes));
  else if (name === "heap_snapshot.bytes") profile.heldByHeaps.push(readNumbers(bytes));
  else if (name === "snapshot.slots") profile.heldBySlot.push(readNumbers(bytes));
  else if (name === "sources") profile.sources = json();
  else if (kind === "t") profile.texts = readTexts(bytes);
  else if (kind === "n") profile.numbers.set(name, readNumbers(bytes));
}

function readChunks(bytes: Uint8Array): Page {
  const page: Page = { run: null, profiles: [] };
  const view = new DataView(bytes.buffer);
  const decoder = new TextDecoder();
  for (let at = 0; bytes[at];) {
    const name = decoder.decode(bytes.subarray(at + 1, at + 1 + bytes[at]));
    at += 1 + bytes[at];
    const kind = String.fromCharCode(bytes[at]);
    const size = view.getUint32(at + 1, true);
    at += 5;
    addChunk(page, name, kind, bytes.subarray(at, at + size));
    at += size;
  }
  return page;
}

export async function readPage(text: string): Promise<Page> {
  return readChunks(await inflate(fromBase64(text.trim())));
}
