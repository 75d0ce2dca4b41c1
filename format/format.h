// SPDX-License-Identifier: Apache-2.0
// The bytes of a recording, shared by the runtime (which writes them) and the tool (which reads
// them). docs/reference/format.md draws them and explains how a reader puts them together.
//
// A recording is one block of memory that outlives the process it describes: a memfd held by the
// tool, or a file. While the process runs it is sparse ("raw"): every section has its full
// capacity of address space and only its used part has pages. A file written at the end is
// "compact": the same header and the same sections, cut to their used bytes and moved together.
// One reader serves both, since it goes by the section table alone.
//
// Invariants: little-endian; every struct has the same layout on all 64-bit targets (checked
// below); a reader may see any field in mid-update and any length lie, so it checks everything.
// Fields marked (atomic) are written by several threads with relaxed atomic operations, all others
// have a single writer.
#ifndef CAIRN_FORMAT_H
#define CAIRN_FORMAT_H

#include <stdint.h>

#define CAIRN_MAGIC "cairn\r\n\x1a"  // 8 bytes, no terminator; \r\n\x1a shows text-mode damage
#define CAIRN_MAGIC_BYTES 8
#define CAIRN_VERSION 8u           // raw and compact; packed.h has the number of the packed form
#define CAIRN_HEADER_BYTES 16384u  // of the header; on larger pages sections begin on the next
#define CAIRN_SECTION_MAX 32u
#define CAIRN_WINDOW_COUNT 15u     // code windows; the 16th value of the nibble is the escape
#define CAIRN_WINDOW_BITS 28u      // a window covers 2^28 bytes of code, aligned to its size
#define CAIRN_CELL_BLOCK 16u       // cells are handed to threads in blocks of this many
#define CAIRN_CELL_NONE 0u         // no cell: an empty slot of the live map
#define CAIRN_CELL_OTHER 1u        // the cell for events whose stack could not be kept
#define CAIRN_PYTHON_OUTSIDE 2u    // has_python_frames: outside of the native frame that runs them
#define CAIRN_SLOT_SHARED 0xffffu  // owner of cells that no single thread writes
#define CAIRN_DEPTH_MAX 32767u     // frames of one stack; deeper ones end in CAIRN_CUT_DEPTH
#define CAIRN_CUT_AT_MOST 32765u   // of --max-depth: its mark and a region are among those frames

enum cairn_state {
    CAIRN_STATE_NEW = 0,      // made by the tool, no process has taken it yet
    CAIRN_STATE_RUNNING = 1,  // a process writes it
    CAIRN_STATE_ENDED = 2,    // the process ran its exit handlers
    CAIRN_STATE_DIED = 3,     // the tool saw the process end without them (signal, _exit, exec)
    CAIRN_STATE_STOPPED = 4,  // cairn disarmed itself for good; `stop_reason` says why
};

enum cairn_stop {
    CAIRN_STOP_NONE = 0,
    CAIRN_STOP_NO_MEMORY = 1,  // the recording could not be mapped or claimed
    CAIRN_STOP_EXEC = 2,       // the process replaced itself by another program
    CAIRN_STOP_LEFT = 3,       // the tool that had attached detached; the process went on
};

// What the process allocates with, as far as the next malloc after ours tells.
enum cairn_allocator {
    CAIRN_ALLOCATOR_UNKNOWN = 0,
    CAIRN_ALLOCATOR_GLIBC = 1,
    CAIRN_ALLOCATOR_OTHER = 2,  // `allocator_module` names it
};

enum cairn_section_kind {
    CAIRN_SECTION_NONE = 0,
    CAIRN_SECTION_MODULES = 1,        // struct cairn_module
    CAIRN_SECTION_STRINGS = 2,        // bytes; a string is an offset and ends in NUL
    CAIRN_SECTION_THREADS = 3,        // struct cairn_thread
    CAIRN_SECTION_OWNERS = 4,         // uint16_t: slot that owns cell block i
    CAIRN_SECTION_CELLS = 5,          // struct cairn_cell, index = cell id
    CAIRN_SECTION_CELLS_RARE = 6,     // struct cairn_cell_rare
    CAIRN_SECTION_RECORDS = 7,        // uint32_t words; see CAIRN_RECORD_*
    CAIRN_SECTION_POINTS = 8,         // struct cairn_point, CAIRN_POINT_LIMIT of them
    CAIRN_SECTION_SYMBOLS = 9,        // bytes: names, added by the tool (symbols.h)
    CAIRN_SECTION_SIZES = 11,         // struct cairn_sizes
    CAIRN_SECTION_REALLOCS = 12,      // struct cairn_reallocs
    CAIRN_SECTION_AGES = 13,          // struct cairn_ages
    CAIRN_SECTION_SNAPSHOTS = 14,     // struct cairn_snapshot, at most CAIRN_SNAPSHOT_LIMIT
    CAIRN_SECTION_VALUES = 15,        // struct cairn_value: what cells held at snapshots
    CAIRN_SECTION_CODES = 16,         // struct cairn_code with its texts, one behind the other
    CAIRN_SECTION_RESIDENT = 17,      // struct cairn_resident, CAIRN_RESIDENT_LIMIT of them
    CAIRN_SECTION_PICTURES = 18,      // struct cairn_picture, CAIRN_PICTURE_COUNT of them
    CAIRN_SECTION_SCOPES = 19,        // struct cairn_scope, index = scope id
    CAIRN_SECTION_GUARD = 20,         // struct cairn_guard, one (guard.h)
    CAIRN_SECTION_OVERRUNS = 21,      // struct cairn_overrun, at most CAIRN_OVERRUN_LIMIT
    CAIRN_SECTION_MAPPERS = 24,       // struct cairn_mapper (22, 23 and 25: sample.h)
    CAIRN_SECTION_ALIGNED = 26,       // struct cairn_aligned, at most CAIRN_ALIGNED_LIMIT
    CAIRN_SECTION_REACHABILITY = 27,  // struct cairn_reachability, one (reachability.h)
    CAIRN_SECTION_LOST = 28,          // struct cairn_lost
    CAIRN_SECTION_WASTE = 30,         // struct cairn_waste, one (waste.h; 29: events.h)
    CAIRN_SECTION_HEAP_STACKS = 31,   // struct cairn_heap_stack
    CAIRN_SECTION_HEAP_POINTS = 32,   // struct cairn_heap_points, at most CAIRN_HEAP_POINTS_LIMIT
};

// Reasons why an event is missing or poorer; indexes of cairn_header.lost (atomic counters).
enum cairn_loss {
    CAIRN_LOST_NESTED = 0,        // a signal handler allocated while cairn was at work
    CAIRN_LOST_NO_THREAD = 1,     // no room for another thread's state
    CAIRN_LOST_NO_MEMORY = 2,     // a chunk could not be claimed: event kept without its stack
    CAIRN_LOST_NO_LIVE_MAP = 3,   // no room in the live map: the block's free will be unknown
    CAIRN_LOST_IMPLIED_FREE = 4,  // a block's free was never seen; its address came back
    CAIRN_LOST_UNKNOWN_FREE = 5,  // a free of a block whose allocation was not seen
    CAIRN_LOST_MODULES = 6,       // module table full: code without a name
    CAIRN_LOST_BUDGET = 7,        // --max-overhead reached: event kept without its stack
    CAIRN_LOST_DEEPBIND = 8,      // library opened so that its calls bypass us
    CAIRN_LOST_EVENTS = 9,        // not in the event log, though counted (events.h)
    CAIRN_LOST_PROCESSES = 10,    // a process that this one made, for a limit or a seccomp filter
    CAIRN_LOST_REST = 11,  // everything from some time on: memory was limited, no room for a thread
    CAIRN_LOST_KINDS = 12,
};
#define CAIRN_LOSS_MAX 16u

// Where a stack was cut: pseudo program counters, below any code, at a stack's outermost place.
enum cairn_cut {
    CAIRN_CUT_NO_CFI = 1,       // code without unwind information and without frame pointers
    CAIRN_CUT_BAD_STACK = 2,    // the next frame was not on readable, ascending stack memory
    CAIRN_CUT_DEPTH = 3,        // more than CAIRN_DEPTH_MAX frames
    CAIRN_CUT_UNSUPPORTED = 4,  // unwind information of a form that cairn does not read
    CAIRN_CUT_GUESSED = 5,      // complete, but at least one frame was found by its frame pointer
    CAIRN_CUT_NO_STACKS = 6,  // call stacks were not wanted (--no-stacks): one pseudo frame is all
    CAIRN_CUT_MAX_DEPTH = 7,  // more than cairn_header.max_depth frames: no more were wanted
    CAIRN_CUT_LIMIT = 16,     // first value that is not a cut
};

struct cairn_section {
    uint32_t kind;            // enum cairn_section_kind
    uint32_t entry_bytes;     // size of one entry as the writer knew it
    uint64_t offset;          // from the start of the recording
    uint64_t capacity_bytes;  // raw: reserved; compact: equal to used_bytes
    uint64_t used_bytes;      // (atomic) handed out so far; may exceed capacity when full
};

// A library or executable that code ran in; never removed, so that unloaded code stays named.
// Return addresses that records hold as plain addresses belong to the FIRST module of the table
// that covers them; code of a later module at the same place is recorded with its module's number.
#define CAIRN_MODULE_SEGMENTS 4u
#define CAIRN_BUILD_ID_MAX 32u
struct cairn_module {
    uint64_t start, end;   // address range of the whole mapping
    uint64_t bias;         // address = bias + virtual address in the ELF file
    uint64_t loaded_ns;    // since the process' start; when first seen
    uint64_t unloaded_ns;  // 0 while loaded
    uint32_t path;         // offset in STRINGS
    uint32_t build_id_bytes;
    uint8_t build_id[CAIRN_BUILD_ID_MAX];
    uint32_t segment_count;  // executable segments
    uint32_t is_ready;       // set last: the entry is complete
    struct {
        uint64_t address;  // virtual address in the ELF file
        uint64_t size;
        uint64_t file_offset;
    } segments[CAIRN_MODULE_SEGMENTS];
    // Of a module without a build-id: its file as it was when the code was first seen; 0: unknown.
    uint64_t file_bytes, file_modified_ns, file_inode;
    uint64_t code_hash;  // by the tool, of the executable segments in the file; or CAIRN_CODE_*
    uint64_t reserved[5];
};
#define CAIRN_CODE_UNKNOWN 0u
#define CAIRN_CODE_OTHER 1u  // another file had the path by then

// One thread, or several of the same slot folded together once the table is full.
struct cairn_thread {
    uint32_t tid;
    uint32_t slot;          // owner number in OWNERS
    uint32_t folded_count;  // further threads counted into this entry
    uint32_t is_ended;
    uint64_t start_ns;         // since the process' start
    uint64_t end_ns;           // 0 while it runs or when its end was not seen
    char name[16];             // ends in NUL
    uint64_t allocations;      // calls that returned a block
    uint64_t allocated_bytes;  // requested
    uint64_t frees;            // blocks this thread freed, of any thread
    int64_t net_bytes;         // allocated_bytes - bytes this thread freed
    uint64_t failed;           // calls that returned no block
    uint64_t own_ns;           // time spent in cairn, estimated from every 1024th event
    uint64_t reserved[2];
    int64_t estimated_blocks;  // if is_sampled: allocations - frees, in units of 2^-16 (sample.h)
    uint64_t is_sampled;       // net_bytes is an estimate, frees is not counted
};

// The timeline: point i describes the i-th interval of totals.point_ns nanoseconds since the start.
// When the last point is reached neighbours are merged and the interval doubles. A point that
// nobody touched (is_used 0) means that nothing changed: the values of the one before it go on.
#define CAIRN_POINT_LIMIT 4096u
struct cairn_point {
    int64_t min_bytes, max_bytes;  // (atomic) lowest and highest live total noted in the interval
    int64_t last_bytes, last_blocks;  // live at its last note
    uint64_t allocated_bytes;         // since the start, at its last note
    uint64_t allocations;
    uint32_t is_used;  // (atomic)
    uint32_t reserved[3];
};

// Resident memory beside the timeline, written by the tool while the process runs: in the order of
// time, at any distance. When the last entry is reached every second one goes, of two neighbours
// the lower.
#define CAIRN_RESIDENT_LIMIT 4096u
struct cairn_resident {
    uint64_t at_ns;  // since the process' start
    uint64_t rss_bytes;
    uint64_t pss_bytes;  // shared pages by the number of their users; 0: not looked at
    uint64_t swap_bytes;
};

// What the resident memory consists of, as the tool saw it in the process' mappings at one
// snapshot. rss_bytes is the sum of the six parts that follow it.
#define CAIRN_PICTURE_AT_PEAK 0u  // where resident memory was highest, as far as was looked
#define CAIRN_PICTURE_LAST 1u
#define CAIRN_PICTURE_COUNT 2u
struct cairn_picture {
    uint64_t at_ns;  // since the process' start; 0: the entry is not in use
    uint64_t rss_bytes;
    uint64_t heap_bytes;    // anonymous memory: the allocator's, and what the program maps itself
    uint64_t stacks_bytes;  // of all threads
    uint64_t files_bytes;   // code, data and files
    uint64_t shared_bytes;  // shared memory that is no file
    uint64_t own_bytes;     // cairn's: this recording, tables, library
    uint64_t other_bytes;   // mappings of the kernel and of devices
    uint64_t pss_bytes, swap_bytes;
    int64_t live_bytes, live_blocks;  // of the heap at that time, as requested
    uint64_t free_chunk_bytes;        // glibc: chunks in the bins of its arenas
    uint64_t free_top_bytes;          // glibc: ends of its arenas that were never handed out
    uint64_t arena_bytes;             // glibc: what its arenas took from the system
    uint32_t arena_count;             // 0: they could not be read
    uint32_t is_cut;  // there was no time to look at each free chunk: there are more bytes of them
    uint32_t stack_count;
    uint32_t knows;                // CAIRN_PICTURE_KNOWS_…
    uint64_t free_resident_bytes;  // of the chunks and ends: on pages that are resident
    uint64_t mapped_bytes;         // of heap_bytes: what the program mapped itself
    uint64_t slack_bytes;          // glibc: rounding and headers of live blocks, an estimate
    uint64_t untouched_bytes;      // glibc: of large live blocks, on pages that are not resident
    uint64_t huge_bytes;           // of heap_bytes: on transparent huge pages
};
#define CAIRN_PICTURE_LEAST_BYTES 168u  // without huge_bytes, as cairn 0.2.0 wrote it
#define CAIRN_PICTURE_KNOWS_MAPPED 1u
#define CAIRN_PICTURE_KNOWS_SLACK 2u
#define CAIRN_PICTURE_KNOWS_HUGE 4u

// A name that the program gave: a region of its code (format of records below), all pools of one
// name, or a label of a context, "key=value". A region of the same name inside another one is
// another scope. A context is a chain of labels; the one nearest to a stack's scope goes before
// others of its key further out. Regions and labels may be within one another.
enum cairn_scope_kind {
    CAIRN_SCOPE_REGION = 1,
    CAIRN_SCOPE_POOL = 2,
    CAIRN_SCOPE_LABEL = 3,
    CAIRN_SCOPE_WRAPPED = 4
};
#define CAIRN_SCOPE_LIMIT 16384u
#define CAIRN_LABEL_LIMIT                                                                          \
    4096u  // labels within others; what is beyond has the value CAIRN_LABEL_OTHER
#define CAIRN_LABEL_OTHER "(other)"
#define CAIRN_LABEL_TEXT 256u     // bytes of "key=value" and a NUL
#define CAIRN_CONTEXT_LABELS 16u  // most labels of one context
struct cairn_scope {
    uint32_t kind;       // enum cairn_scope_kind; 0: not in use
    uint32_t name;       // offset in STRINGS
    uint32_t parent;     // scope id of the region around it, 0: none
    uint32_t is_ready;   // (atomic) set last: the above is complete
    uint64_t entries;    // (atomic) times the region was begun; pools made
    int64_t rise_bytes;  // (atomic) region: most that one thread's heap rose in it, from begin on
    // (atomic) Of pools only; what regions allocated follows from the stacks.
    uint64_t allocations, frees;
    uint64_t allocated_bytes, freed_bytes;
    int64_t peak_bytes;  // most that all pools of the name held together
    uint64_t ended;      // pools destroyed
    // Of an allocator by name (--wrap), over all names of its arenas, for its HEAP_STACKS.
    uint64_t heap_peak_bytes;  // highest total that was left
    uint64_t heap_peak_ns;     // when
    uint32_t heap_epoch;       // moved by every new peak
    uint32_t unused;
    uint64_t reserved[3];
};

// What an allocator by name holds by the stack that asked for it, and by the name of its arena: the
// stack is that of a cell, which counts blocks of malloc and has none of these. Entry 0 is none.
#define CAIRN_HEAP_STACK_LIMIT 262144u
struct cairn_heap_stack {
    uint32_t cell;          // CAIRN_CELL_OTHER: not known
    uint32_t scope;         // of kind CAIRN_SCOPE_POOL: the heap, or a name within it
    uint32_t epoch;         // of the heap's scope, at the last change
    uint32_t is_ready;      // (atomic) set last: the above is complete
    uint64_t calls, frees;  // blocks; of a child without those that were gone at the fork
    uint64_t allocated_bytes, freed_bytes;
    int64_t peak_bytes;   // held at the heap's peak, valid if epoch == heap_epoch of its
    int64_t peak_blocks;  // heap's scope; else it has not changed since and holds the same
    // Of earlier recordings entries end here.
    uint64_t size;            // of its first block: the usual size, as of cells
    uint32_t sizes, ages;     // index + 1 in SIZES and AGES; 0: none; or CAIRN_HEAP_NO_SIZES
    uint32_t snapshot_epoch;  // no lower than that of the last snapshot before the last change
    uint32_t unused;
    uint64_t reserved;
};
#define CAIRN_HEAP_STACK_LEAST_BYTES 64u
#define CAIRN_HEAP_NO_SIZES UINT32_MAX  // in `sizes`: different sizes that had no room

// An allocator by name over time, or what is of one name in it, as POINTS has malloc's heap: point
// i describes the i-th interval of point_ns nanoseconds since the start, exactly.
#define CAIRN_HEAP_POINTS_LIMIT 512u
#define CAIRN_HEAP_POINT_COUNT 126u
struct cairn_heap_points {
    uint32_t scope;     // of kind CAIRN_SCOPE_POOL: the heap, or a name within it
    uint32_t is_ready;  // (atomic) set last: the above is complete
    uint64_t point_ns;
    uint64_t reserved[14];
    struct cairn_point points[CAIRN_HEAP_POINT_COUNT];
};

// Mappings that the program made itself (--mmap), by kind and by the stack that made them: that of
// a cell, which counts blocks of the heap and has none of these. Entry i < CAIRN_MAPPING_KINDS is
// of kind i and of mappings without a known stack.
enum cairn_mapping_kind {
    CAIRN_MAPPING_ANONYMOUS = 0,  // private memory
    CAIRN_MAPPING_FILE = 1,       // files, devices
    CAIRN_MAPPING_SHARED = 2,     // shared memory without a file
    CAIRN_MAPPING_RESERVED = 3,   // without any access: address space, so far
    CAIRN_MAPPING_ALLOCATOR = 4,  // by the allocator that is not glibc's, for blocks of the heap
};
#define CAIRN_MAPPING_KINDS 5u
#define CAIRN_MAPPER_LIMIT 16384u
struct cairn_mapper {
    uint32_t cell;              // its stack; CAIRN_CELL_OTHER: not known
    uint32_t kind;              // enum cairn_mapping_kind
    uint32_t epoch;             // of header.mappings_epoch, at the last change
    uint32_t is_ready;          // (atomic) set last: the above is complete
    uint64_t calls;             // that made a mapping
    uint64_t mapped_bytes;      // by all calls, in whole pages
    uint64_t unmapped_bytes;    // given back, or replaced by another mapping
    uint64_t live_ranges;       // mappings there are, pieces of one counted apart
    int64_t peak_bytes;         // held at the peak of all, valid if epoch == header.mappings_epoch;
    int64_t peak_ranges;        // else it has not changed since and holds the same
    int64_t highest_bytes;      // the most that it held at any time
    uint64_t inherited_ranges;  // of a fork: there from the start, no calls of its own
    uint64_t reserved[4];
};

// In the memory of the process, for the tool beside it: which ranges there are, the highest first.
struct cairn_mapping_range {
    uint64_t start, end;
    uint32_t mapper;  // index in MAPPERS
    uint32_t stamp;   // number of the change that made it
};
struct cairn_mapping_table {
    uint64_t list;  // address of the ranges
    uint32_t count;
    uint32_t change;  // (atomic) odd: they are being changed
};

// Counters of one (thread, stack), a line of the cache. Numbers of 32 bits that count continue in
// cairn_cell_rare.
struct cairn_cell {
    uint64_t allocated_bytes;  // requested
    uint64_t freed_bytes;      // of blocks of this stack, freed by this thread
    uint32_t calls;
    uint32_t frees;
    uint32_t epoch;        // cairn_totals.epoch at the last change
    uint32_t check;        // second part of the stack's hash; 0 in the packed form
    uint32_t size;         // of its first block, low 32 bits: the usual size; or CAIRN_SIZE_VARIES
    uint32_t slack_bytes;  // room of all its blocks beyond what was asked for (glibc only)
    uint32_t temporary;    // blocks freed by the thread that allocated them before its next
                           // allocation
    uint32_t rare;         // index + 1 in CELLS_RARE; 0: none
    int64_t peak_bytes;    // live at the last peak, valid if epoch >= totals.peak_epoch;
                           // else the cell has not changed since and its live value is it
    int32_t peak_blocks;
    uint32_t record;  // word index in RECORDS
};

// What few cells have. A cell gets an entry with the first of these that is not 0.
struct cairn_cell_rare {
    uint16_t calls_high;  // bits 32..47 of the cell's numbers
    uint16_t frees_high;
    uint16_t slack_high;  // times CAIRN_SLACK_UNIT, to be added
    uint16_t temporary_high;
    uint32_t generation;  // marks that had passed when the cell began: its blocks are younger
    uint32_t sizes;       // index + 1 in SIZES, REALLOCS, AGES and ALIGNED; 0: none
    uint32_t reallocs;    //
    uint32_t ages;        //
    uint32_t aligned;     //
    // A sample of its blocks, one in some CAIRN_WATCHED_EVERY allocations of the thread: how many
    // were watched, and how many of these the thread freed before CAIRN_SHORT_CALLS further
    // allocations of its own.
    uint32_t watched, short_lived;
    uint32_t reserved;
};
#define CAIRN_SLACK_UNIT (1u << 31)
#define CAIRN_WATCHED_EVERY 512u
#define CAIRN_SHORT_CALLS 256u

// Sizes of a cell's blocks that are not its usual one. A cell without an entry, with at least one
// call: all blocks have the usual size.
#define CAIRN_SIZE_VARIES UINT32_MAX  // cairn_cell.size: different sizes that were not counted
#define CAIRN_SIZES_EXACT 8u
#define CAIRN_SIZES_BUCKETS 36u
struct cairn_sizes {
    uint32_t cell;                      // 0: of a heap by name
    uint32_t heap_stack;                // then its index in HEAP_STACKS
    uint64_t unknown_calls;             // before the entry began
    uint32_t sizes[CAIRN_SIZES_EXACT];  // valid where counts[i] is not 0
    uint64_t counts[CAIRN_SIZES_EXACT];
    // sizes[i] took its place from a size that had come so often at most, as this one may have
    // before: these are in the buckets. 0: all are counted.
    uint64_t errors[CAIRN_SIZES_EXACT];
    uint64_t buckets[CAIRN_SIZES_BUCKETS];  // other sizes, by the number of their bits: bucket b
                                            // has 2^(b-1) .. 2^b - 1, the last all that are larger
};

// What realloc did to blocks that existed, by the cell of the new block.
struct cairn_reallocs {
    uint32_t cell;
    uint32_t reserved_cell;
    uint64_t calls;         // that returned a block; those that began with NULL are none of them
    uint64_t in_place;      // the address stayed
    uint64_t grown;         // asked for more than before
    uint64_t copied_bytes;  // the smaller of both sizes, where it was copied, not remapped
    uint64_t reserved[3];
};

// Blocks of a cell that were asked for with an alignment beyond what malloc gives anyway. The bytes
// are known of glibc's only; docs/reference/metrics.md says how it comes to them.
#define CAIRN_ALIGNED_LIMIT 65535u
#define CAIRN_ALIGN_PLAIN 16u  // malloc's own
#define CAIRN_ALIGN_BUCKETS 28u
struct cairn_aligned {
    uint32_t cell;
    uint32_t reserved;
    uint64_t slack_bytes;                 // room of these blocks beyond what was asked for
    uint64_t waste_bytes;                 // what they took beyond plain blocks of the same sizes
    uint64_t calls[CAIRN_ALIGN_BUCKETS];  // by alignment: bucket b has 2^(b+5), or as a power of
                                          // two rounded up; the last all that are larger
};

// How old blocks were when they were freed (--ages), by the cell that booked the free.
#define CAIRN_AGE_BUCKETS 32u
struct cairn_ages {
    uint32_t cell;                      // 0: of a heap by name
    uint32_t heap_stack;                // then its index in HEAP_STACKS
    uint32_t calls[CAIRN_AGE_BUCKETS];  // by bits of the number of allocations that the thread made
                                        // in between; only where the same thread freed. Of a heap
                                        // by name those of the heap, by any thread. Stays full.
    uint32_t ms[CAIRN_AGE_BUCKETS];     // by bits of the milliseconds in between. Stays full.
};

// A snapshot that the values of all cells are known for. A cell's value at a moment: that of the
// entry in VALUES with its number and from_epoch < snapshot.epoch <= to_epoch; without one its live
// value if cell.epoch < snapshot.epoch, else 0 (it is younger). snapshots.h takes snapshots.
#define CAIRN_SNAPSHOT_LIMIT 256u
#define CAIRN_LABEL_BYTES 40u
enum cairn_snapshot_reason {
    CAIRN_SNAPSHOT_NONE = 0,
    CAIRN_SNAPSHOT_CHURN =
        1,  // so much was allocated and freed since the last one (--snapshot-every)
    CAIRN_SNAPSHOT_HIGH = 2,   // the heap was larger than at any moment before, by a step
    CAIRN_SNAPSHOT_ASKED = 3,  // the user, a rule of the tool, or the program asked for it
    CAIRN_SNAPSHOT_MARK = 4,   // the same, and a new generation began
    CAIRN_SNAPSHOT_EXIT = 5,   // the exit handlers ran
    CAIRN_SNAPSHOT_LOW = 6,    // the heap had fallen by a quarter
    CAIRN_SNAPSHOT_REASONS = 7,
};
struct cairn_snapshot {
    uint32_t epoch;           // that it began
    uint32_t reason;          // enum cairn_snapshot_reason
    uint32_t generation;      // present one; of a MARK: the one that it began
    uint32_t missing_values;  // (atomic) values that found no room: of these cells nothing is known
    uint64_t time_ns;
    int64_t live_bytes, live_blocks;  // as published by the threads
    uint64_t allocated_bytes, allocations;
    uint32_t is_inherited;  // a fork's mark from before it was one: values are not known
    uint32_t heap;          // it was taken for this heap by name (scope id); 0: for malloc's
    char label[CAIRN_LABEL_BYTES];  // ends in NUL
    uint64_t reserved[3];
};

// Of a heap by name: what an entry of HEAP_STACKS held, with snapshot_epoch in the place of epoch.
#define CAIRN_VALUE_OF_HEAP 0x80000000u
struct cairn_value {
    uint32_t cell;  // set last; 0: the entry is free; or CAIRN_VALUE_OF_HEAP | index in HEAP_STACKS
    uint32_t from_epoch, to_epoch;
    int32_t blocks;
    int64_t bytes;
};

// A record says which frames a cell's stack has, as a change of an older cell's stack:
//   word 0    the older cell (0: none)
//   word 1    FOREIGN flag, keep (15 bits) = frames taken from it counted from the outermost,
//             n (16 bits) = frames that follow
//   then n frame codes, outermost first. A code is window << 28 | low 28 bits of the return
//   address, or one of four escapes:
//     0xF0000000 | cut           a pseudo frame, enum cairn_cut
//     0xF1000000 | module        next word: offset of the return address from module.start
//     0xF2000000                 next two words: low, high half of the return address
//     0xF3000000                 a frame of Python, Java, JavaScript, PHP or Ruby; next two words:
//                                offset of the code in CODES by CAIRN_CODE_ALIGN, line (0: unknown)
// A return address is the address after the call; where a signal interrupted the frame it is the
// interrupted address plus one, so that "return address - 1" always lies inside the instruction.
// One more escape, only as the last code of a record, says in which region the stack was seen:
//     0xF4000000 | scope         it counts in n, but is no frame that other records keep
// And one that stands for no code: blocks that were there before an attach have no stack, but
// belong together, and to a kind by what they begin with.
//     0xF5000000                 a name; next word: its offset in STRINGS
// FOREIGN: the cell has the older cell's whole stack (keep is 0); it books frees, by this cell's
// thread, of blocks that the older cell counts. With n = 1 (--free-stacks) word 2 is the cell whose
// stack freed them.
// A change of few frames has one word in the place of the two, which begins with the SHORT flag:
//             tail (2 bits), n (4 bits), drop (4 bits), back (21 bits, not 0)
// The older cell is the one with a number smaller by `back`. Of its stack the innermost `drop`
// frames go; then the n frames, then the innermost `tail` <= drop that went. Neither has a region.
#define CAIRN_RECORD_FOREIGN 0x80000000u
#define CAIRN_RECORD_KEEP(word) (((word) >> 16) & 0x7fffu)
#define CAIRN_RECORD_NEW(word) ((word)&0xffffu)
#define CAIRN_RECORD_SHORT 0x80000000u
#define CAIRN_SHORT_TAIL_MOST 3u
#define CAIRN_SHORT_NEW_MOST 15u
#define CAIRN_SHORT_DROP_MOST 15u
#define CAIRN_SHORT_BACK_MOST 0x1fffffu
#define CAIRN_SHORT_TAIL_SHIFT 29
#define CAIRN_SHORT_NEW_SHIFT 25
#define CAIRN_SHORT_DROP_SHIFT 21
#define CAIRN_SHORT_TAIL(word) (((word) >> CAIRN_SHORT_TAIL_SHIFT) & CAIRN_SHORT_TAIL_MOST)
#define CAIRN_SHORT_NEW(word) (((word) >> CAIRN_SHORT_NEW_SHIFT) & CAIRN_SHORT_NEW_MOST)
#define CAIRN_SHORT_DROP(word) (((word) >> CAIRN_SHORT_DROP_SHIFT) & CAIRN_SHORT_DROP_MOST)
#define CAIRN_SHORT_BACK(word) ((word)&CAIRN_SHORT_BACK_MOST)
#define CAIRN_CODE_ESCAPE 0xF0000000u
#define CAIRN_CODE_CUT 0xF0000000u
#define CAIRN_CODE_MODULE 0xF1000000u
#define CAIRN_CODE_FULL 0xF2000000u
#define CAIRN_CODE_PYTHON 0xF3000000u
#define CAIRN_CODE_REGION 0xF4000000u
#define CAIRN_CODE_NAME 0xF5000000u
#define CAIRN_CODE_KIND(code) ((code)&0xff000000u)
#define CAIRN_CODE_VALUE(code) ((code)&0x00ffffffu)

// A function or other piece of Python code, a method of Java or Ruby, a function of JavaScript or
// PHP. Behind it lie its name as the language has it ("Class.method") and its file, both UTF-8 and
// ending in NUL. The first one, which has no texts, stands for code that could not be read or kept.
#define CAIRN_CODE_ALIGN 8u
struct cairn_code {
    uint32_t bytes;  // of all of it, a multiple of CAIRN_CODE_ALIGN: the next one follows
    uint32_t first_line;
    uint32_t function_bytes;  // with its NUL
    uint32_t file_bytes;      // with its NUL
};

// Written by the tool, read by the target: on a cache line of its own.
struct cairn_control {
    uint32_t is_off;        // (atomic) CAIRN_CONTROL_…; 0: nothing unusual
    uint32_t is_tool_gone;  // the tool left before the process: it writes its file itself
    uint32_t tool_pid;
    uint32_t
        clock_ms;      // (atomic) milliseconds since start_clock_ns, as old as the tool's last look
    uint32_t was_off;  // is_off was set at some time
    uint32_t is_leave_wanted;  // attached: the tool is asked to detach
    uint32_t end_wait_ms;      // the tool copies the memory at the end: it may take so long
    // The event log. Numbers of logs: odd while one is written, even between two; 0: none so far.
    uint32_t events_wanted;    // (atomic) the tool wants this one; CAIRN_CONTROL_LOOK goes with it
    uint32_t events_state;     // (atomic) the process writes it
    uint32_t events_taken;     // (atomic) the tool takes it; 1 more once its file is complete
    uint32_t events_refused;   // (atomic) the process has no room for this one
    uint32_t has_event_taker;  // there is a tool that takes chunks
    uint32_t events_for_ms;    // the log that is wanted ends after so long; 0: when it is said
    uint32_t events_for_high;  // above it
    uint32_t clock_error_ms;   // by so much clock_ms was late at most; 0: it was never moved
    uint32_t reserved;
};

// Bits of cairn_control.is_off.
#define CAIRN_CONTROL_OFF 1u   // allocations are not recorded, frees of known blocks are
#define CAIRN_CONTROL_LOOK 2u  // the process is to look at the words of the event log

static inline int cairn_is_off(const struct cairn_control *control) {
    return (__atomic_load_n(&control->is_off, __ATOMIC_RELAXED) & CAIRN_CONTROL_OFF) != 0;
}

static inline uint64_t cairn_events_for_ms(const struct cairn_control *control) {
    uint64_t high = __atomic_load_n(&control->events_for_high, __ATOMIC_RELAXED);
    return high << 32 | __atomic_load_n(&control->events_for_ms, __ATOMIC_RELAXED);
}
static inline void cairn_set_events_for_ms(struct cairn_control *control, uint64_t ms) {
    __atomic_store_n(&control->events_for_high, (uint32_t)(ms >> 32), __ATOMIC_RELAXED);
    __atomic_store_n(&control->events_for_ms, (uint32_t)ms, __ATOMIC_RELAXED);
}

// Written by the target. Per-stack values at the peak are those of the moment at which
// `peak_epoch` was set.
struct cairn_totals {
    uint32_t epoch;       // (atomic) moved by peaks, snapshots, cairn_switch, cairn_ask_to_look
    uint32_t peak_epoch;  // (atomic) the epoch that the last peak began
    uint64_t peak_bytes;  // (atomic) highest total seen; the present total may be higher still
    uint64_t peak_blocks;
    uint64_t peak_ns;         // since the process' start
    uint64_t batch_bytes;     // largest amount a thread may hold back from `live`; 0: exact
    uint32_t generation;      // (atomic) marks so far
    uint32_t snapshot_epoch;  // (atomic) no lower than the epoch that the last snapshot began
    uint64_t
        peak_after_ns;  // when the highest total before this one was left: it was reached later
    uint64_t reserved_peak;
    int64_t live_bytes;        // (atomic) what threads have published; their own nets add to it
    int64_t live_blocks;       // (atomic)
    uint64_t allocated_bytes;  // (atomic) published, like live_bytes
    uint64_t allocations;      // (atomic)
    uint64_t point_ns;         // length of a point's interval
    uint32_t point_lock;       // (atomic) a thread is merging points
    uint32_t is_threaded;      // (atomic) a second thread exists: totals are published in batches
    uint64_t reserved_live[2];
};

// When snapshots are taken by themselves, and who is taking one (snapshots.h).
struct cairn_pace {
    uint32_t lock;         // (atomic) who takes a snapshot: a tid, or CAIRN_PACE_TOOL
    uint32_t thin_count;   // (atomic) odd: snapshots are being left out, SNAPSHOTS is not in order
    uint64_t every_bytes;  // allocated + freed between two; doubles when snapshots are left out
    uint64_t next_churn_bytes;  // the next one when so much was allocated and freed
    uint64_t next_high_bytes;   // the next one when the heap is so large
    uint32_t step_permille;     // a new high is so much above the last
    uint32_t refused;           // (atomic) snapshots that found no room
    uint64_t missing_values;    // (atomic) values that found no room, all snapshots together
    uint64_t reserved[2];
};
#define CAIRN_PACE_TOOL 0x80000000u

#define CAIRN_TEXT_COMMAND 4096u
#define CAIRN_TEXT_PATH 1024u
// Programs that the process started, or a fork of it that has no recording of its own, and that
// were not recorded. Written by the tool.
#define CAIRN_LEFT_OUT_PROGRAMS 8u
#define CAIRN_LEFT_OUT_NAME 56u
struct cairn_left_out_program {
    uint32_t reason;  // enum cairn_unrecorded
    uint32_t count;   // how often one of that name was started; 0: the entry is not in use
    char name[CAIRN_LEFT_OUT_NAME];  // ends in NUL; cut
};
struct cairn_left_out {
    uint64_t count;  // of all, those without an entry too
    uint64_t reserved;
    struct cairn_left_out_program programs[CAIRN_LEFT_OUT_PROGRAMS];
};

// Processes of few calls of which no recording is kept. Written by the tool.
struct cairn_unkept {
    uint64_t processes, allocations, allocated_bytes;
};

struct cairn_header {
    char magic[CAIRN_MAGIC_BYTES];
    uint32_t version;
    uint32_t header_bytes;  // CAIRN_HEADER_BYTES
    uint64_t self_address;  // of this header in the process, for readers of core dumps
    uint64_t mapped_bytes;  // raw: size of the mapping; compact: size of the file
    uint32_t state;         // (atomic) enum cairn_state
    uint32_t stop_reason;   // enum cairn_stop
    uint32_t machine;       // ELF e_machine
    uint32_t is_compact;
    uint32_t section_count;
    uint32_t allocator;         // enum cairn_allocator
    uint32_t allocator_module;  // offset in STRINGS of its path
    uint32_t slot_bytes;        // live map: bytes of a slot, and of heap a slot stands for
    uint32_t slot_granule;
    uint32_t pid, ppid, uid;
    uint32_t forked_from;  // pid of the recorded process this one is a fork of, or 0
    uint32_t has_exit;     // exit_status and exit_signal are known
    int32_t exit_status;
    int32_t exit_signal;
    uint64_t start_unix_ns;   // wall clock at the recording's start
    uint64_t start_clock_ns;  // CLOCK_MONOTONIC then; all other times count from here
    uint64_t end_ns;          // 0 while it runs
    uint64_t rss_peak_bytes;  // 0 if unknown
    uint64_t own_bytes;  // memory that cairn took in the process: private, this recording, and its
                         // library; of a fork without what it shares with its parent
    uint64_t cpu_ns;     // processor time of the process, 0 if unknown
    uint64_t live_map;   // address of the live map's table in the process (core readers)
    uint64_t
        windows[CAIRN_WINDOW_COUNT];  // (atomic) start of each; window 0 is at 0, others 0: unused
    uint32_t is_rss_sampled;  // rss_peak_bytes was seen by looking now and then: at least that
    uint32_t imported;    // offset in STRINGS: whose file this was made of, and what that did not
                          // say; 0: recorded by cairn
    uint32_t is_partial;  // imported: the numbers are not those of every event
    uint32_t has_free_stacks;    // frees are booked by the stacks that free (--free-stacks)
    uint32_t python_version;     // as Py_Version: 0x030b02f0 is 3.11.2; 0: no Python, or not asked
    uint32_t has_python_frames;  // stacks hold frames of Python code (CAIRN_CODE_PYTHON)
    uint32_t has_mappings;       // the program's own mappings were recorded (MAPPERS)
    uint32_t mappings_epoch;     // moved by every new peak of them
    uint64_t mappings_peak_bytes;  // highest total that was left; the present one may be higher.
                                   // RESERVED is not in it
    uint64_t mappings_peak_ns;
    uint64_t mappings_lost;    // (atomic) changes that could not be noted
    uint64_t mappings_ranges;  // address of struct cairn_mapping_table in the process
    uint32_t is_attached;      // recorded from some time of its life on
    uint32_t has_census;    // older blocks were counted then: those of the thread "(before attach)"
    uint64_t live_samples;  // address of struct cairn_live_samples (sample.h) in the process
    char comm[16];  // name of the main thread, from the kernel (proc_pid_comm(5)); "": not known
    uint32_t page_bytes;    // of the kernel's pages there; 0, in older recordings: CAIRN_PAGE_LEAST
    uint16_t java_version;  // JDK's, as 17; CAIRN_JAVA_UNKNOWN; 0: no JVM, or not asked
    uint16_t has_java_frames;  // stacks hold frames of Java code (CAIRN_CODE_PYTHON)
    uint16_t go_version;       // 19 of Go 1.19; CAIRN_GO_UNKNOWN; 0: no Go, or not asked
    uint16_t has_go_frames;    // stacks hold frames of goroutines, as native ones
    uint16_t js_version;       // of V8, major << 8 | minor; 0: no V8, or not asked
    uint16_t has_js_frames;    // stacks hold frames of JavaScript (CAIRN_CODE_PYTHON)
    uint16_t has_no_frees;  // imported: nothing says what was freed, so neither what was live nor
                            // the peak is known; their counters mean nothing
    uint16_t has_births;    // beside the live map lie the times of its blocks' births (--ages)
    uint16_t has_no_temporary;  // imported: nothing says which blocks were temporary
    uint16_t own_shared_kib;    // of own_bytes: of the library's file, which all processes share
    struct cairn_section sections[CAIRN_SECTION_MAX];
    uint64_t checkpoint_ns;  // a file that the tool wrote while the process went on: when; else 0
    uint64_t checkpoint_pause_ns;  // after which it would have written the next one; 0: never
    uint32_t max_depth;    // most machine frames of a stack, the innermost (--max-depth); 0: all
    uint32_t bypassing;    // (atomic) offset in STRINGS: the first that CAIRN_LOST_DEEPBIND counts
    uint16_t php_version;  // major << 8 | minor; CAIRN_PHP_UNKNOWN; 0: no PHP, or not asked
    uint16_t has_php_frames;   // stacks hold frames of PHP code (CAIRN_CODE_PYTHON)
    uint16_t ruby_version;     // major << 8 | minor; CAIRN_RUBY_UNKNOWN; 0: no Ruby, or not asked
    uint16_t has_ruby_frames;  // stacks hold frames of Ruby code (CAIRN_CODE_PYTHON)
    uint16_t has_no_calls;     // imported: only what was live at some time is known; counters of
                               // allocations and of allocated bytes mean nothing
    uint16_t has_no_blocks;    // imported: numbers of blocks mean nothing, a stack counts as one
    _Alignas(4096) struct cairn_control control;
    _Alignas(128) struct cairn_totals totals;
    _Alignas(128) uint64_t lost[CAIRN_LOSS_MAX];  // (atomic) by enum cairn_loss
    _Alignas(128) struct cairn_pace pace;
    _Alignas(128) struct cairn_left_out left_out;
    struct cairn_unkept unkept;

    _Alignas(4096) char command[CAIRN_TEXT_COMMAND];  // argv, each ends in NUL; cut if longer
    char executable[CAIRN_TEXT_PATH];
    char directory[CAIRN_TEXT_PATH];    // working directory at the start
    char destination[CAIRN_TEXT_PATH];  // absolute path of the recording's file
};

// Switches recording of allocations off or on, from inside or outside of the process; whether it
// was off. A thread asks only where a cell is of an older epoch than the present one, so that is
// moved.
static inline int cairn_switch(struct cairn_header *header, uint32_t is_off) {
    struct cairn_control *control = &header->control;
    if (!is_off)
        return (__atomic_fetch_and(&control->is_off, ~CAIRN_CONTROL_OFF, __ATOMIC_RELEASE) &
                CAIRN_CONTROL_OFF) != 0;
    __atomic_store_n(&control->was_off, 1, __ATOMIC_RELAXED);
    uint32_t was = __atomic_fetch_or(&control->is_off, CAIRN_CONTROL_OFF, __ATOMIC_RELEASE);
    __atomic_add_fetch(&header->totals.epoch, 1, __ATOMIC_RELEASE);
    return (was & CAIRN_CONTROL_OFF) != 0;
}

// Asks the process to look at the words of the event log; in the same way.
static inline void cairn_ask_to_look(struct cairn_header *header) {
    __atomic_fetch_or(&header->control.is_off, CAIRN_CONTROL_LOOK, __ATOMIC_RELEASE);
    __atomic_add_fetch(&header->totals.epoch, 1, __ATOMIC_RELEASE);
}

#define CAIRN_PAGE_LEAST 4096u
#define CAIRN_PAGE_MOST 65536u

// The size of a process' pages by what is said of it, in a header or elsewhere: 0, or what is none,
// counts as the least.
static inline uint32_t cairn_page_bytes(uint64_t said) {
    int is_one = said >= CAIRN_PAGE_LEAST && said <= CAIRN_PAGE_MOST && !(said & (said - 1));
    return is_one ? (uint32_t)said : CAIRN_PAGE_LEAST;
}

_Static_assert(sizeof(struct cairn_section) == 32, "layout");
_Static_assert(sizeof(struct cairn_module) == 256, "layout");
_Static_assert(sizeof(struct cairn_thread) == 128, "layout");
_Static_assert(sizeof(struct cairn_point) == 64, "layout");
_Static_assert(sizeof(struct cairn_heap_points) == 8192, "layout");
_Static_assert(sizeof(struct cairn_resident) == 32, "layout");
_Static_assert(sizeof(struct cairn_picture) == 176, "layout");
_Static_assert(sizeof(struct cairn_scope) == 128, "layout");
_Static_assert(sizeof(struct cairn_mapper) == 112, "layout");
_Static_assert(sizeof(struct cairn_mapping_range) == 24, "layout");
_Static_assert(sizeof(struct cairn_mapping_table) == 16, "layout");
_Static_assert(sizeof(struct cairn_cell) == 64, "layout");
_Static_assert(sizeof(struct cairn_cell_rare) == 40, "layout");
_Static_assert(sizeof(struct cairn_sizes) == 464, "layout");
_Static_assert(sizeof(struct cairn_reallocs) == 64, "layout");
_Static_assert(sizeof(struct cairn_aligned) == 248, "layout");
_Static_assert(sizeof(struct cairn_ages) == 264, "layout");
_Static_assert(sizeof(struct cairn_snapshot) == 128, "layout");
_Static_assert(sizeof(struct cairn_value) == 24, "layout");
_Static_assert(sizeof(struct cairn_pace) == 64, "layout");
_Static_assert(sizeof(struct cairn_code) == 16, "layout");
_Static_assert(sizeof(struct cairn_control) == 64, "layout");
_Static_assert(sizeof(struct cairn_totals) == 128, "layout");
_Static_assert(sizeof(struct cairn_left_out) == 528, "layout");
_Static_assert(sizeof(struct cairn_unkept) == 24, "layout");
_Static_assert(sizeof(struct cairn_header) == CAIRN_HEADER_BYTES, "layout");

#endif
