// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_overview.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/json.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/core_overview_parts.h"
#include "tool/cmds/core_owner_rows.h"
#include "tool/cmds/core_remedies.h"
#include "tool/cmds/core_sets.h"
#include "tool/cmds/core_types.h"
#include "tool/cmds/core_waste_rows.h"
#include "tool/heap/other_heaps.h"
#include "tool/proc/examine.h"
#include "tool/proc/process.h"
#include "tool/query/live.h"
#include "tool/render/claims_summary.h"
#include "tool/watch/program.h"
#include "tool/watch/rss_parts.h"

enum { TOP = 3, NAME_BYTES = 256 };

// Share of resident memory, in percent, from which on blocks in use are told by type, waste and
// owner.
enum { SHOWN_SHARE = 5 };

// Parts of the answer beside its sentence, in this order.
enum section_id { SECTION_PARTS, SECTION_TYPES, SECTION_WASTE, SECTION_OWNERS, SECTION_REMEDIES };
enum { SECTIONS = SECTION_REMEDIES + 1 };

struct section {
    bool is_there;       // it was looked for
    uint64_t all_bytes;  // that its rows are shares of
    size_t count;
    struct section_row {
        uint64_t bytes;
        const char *class;  // of remedies
        char label[KIN_LABEL_BYTES];
    } rows[RESIDENT_PARTS_MAX];
    char why[2 * sizeof((struct error *)0)->text];  // it is not known; "": it is
};

struct overview {
    struct core_subject subject;
    bool is_open;  // the subject
    pid_t pid;
    char name[NAME_BYTES];
    struct rss_parts resident;
    bool has_resident;
    struct heap_state heap;
    bool has_heap;   // of glibc's malloc
    bool has_other;  // of another allocator, whose blocks are read
    char why_no_heap[sizeof((struct error *)0)->text];
    struct resident_parts parts;
    struct waste_sums waste;
    bool has_waste;
    struct remedy_facts facts;
    struct section sections[SECTIONS];
};

bool core_overview_is_possible(const char *word) {
    struct live_process process;
    struct process_stat stat;
    struct error error;
    pid_t pid;
    if (!word || !running_may_be(word) || live_choose(word, &process, &error)) return false;
    if (running_find(word, &pid, &error)) return process_stat(pid, &stat);
    return access(word, F_OK) && running_count(word, &pid) > 1;  // which are they?
}

// --- what is looked at

static void find_name(struct overview *overview, const char *word) {
    char name[NAME_BYTES] = "";
    process_read(overview->pid, "comm", name, sizeof name);
    name[strcspn(name, "\n")] = 0;
    text_escape(overview->name, sizeof overview->name, *name ? name : word);
}

// Looks at the heap of what is open; keeps the reason if there is none.
static void look_at_heap(struct overview *overview) {
    struct error error = {""};
    struct core_subject *subject = &overview->subject;
    bool is_ok = core_need_heap(subject, &error);
    overview->has_other = is_ok && core_heap_of(subject)->other.name;
    if (overview->has_other) return;
    is_ok = is_ok && heap_look_survey(&subject->look, NULL, &overview->heap, &error);
    overview->has_heap = is_ok;
    if (!is_ok) text_escape(overview->why_no_heap, sizeof overview->why_no_heap, error.text);
}

// Finds what would make it smaller: of the copy, or else of the process while it goes on.
static void find_remedies(struct overview *overview) {
    struct remedy_facts *facts = &overview->facts;
    core_remedies_facts(overview->pid, &overview->resident, facts);
    bool is_read =
        overview->has_heap &&
        core_remedies_read_heap(&overview->subject.look, core_heap_of(&overview->subject), facts);
    if (is_read) return;
    giveback_free(&facts->giveback);
    core_remedies_read_running(overview->pid, &overview->resident, facts);
}

// Says why there is nothing to look at.
static bool tell_absence(const struct overview *overview, struct error *error) {
    struct process_stat stat;
    int pid = (int)overview->pid;
    char pages[NAME_BYTES];
    if (!process_stat(overview->pid, &stat) || stat.state == 'Z')
        return error_set(error, "process %d: it has ended: nothing of its memory is left", pid);
    if (process_read(overview->pid, "statm", pages, sizeof pages) && !strncmp(pages, "0 ", 2))
        return error_set(error, "process %d: it has no memory of its own: it is the kernel's", pid);
    struct error why;
    if (examine_to_read(overview->pid, &why)) error_set(&why, "its size is not known");
    return error_set(error, "process %d: its memory may not be read: %s%s", pid, why.text,
                     geteuid() ? "; ask as root (sudo)" : "");
}

static void find_parts(struct overview *overview) {
    if (overview->has_other) {
        const struct glibc_heap *heap = core_heap_of(&overview->subject);
        struct other_resident other = {.name = heap->other.name};
        other.bytes = other_heap_resident(heap, &overview->subject.look.live, &other.used_bytes);
        resident_parts_find_other(&overview->resident, &other, &overview->parts);
    } else {
        struct python_pools python = {0};
        if (overview->is_open) python_pools_find(&overview->subject.look.live, &python);
        resident_parts_find(&overview->resident, overview->has_heap ? &overview->heap : NULL,
                            &overview->facts.giveback, &python, &overview->parts);
    }
}

static bool open_overview(struct overview *overview, const char *word,
                          const struct overview_wish *wish, struct error *error) {
    const struct heap_wish look = {.depth = HEAP_REFERENCES,
                                   .bytes_max =
                                       wish->has_limit ? CORE_COPIED_BYTES_MAX : UINT64_MAX,
                                   .way_around = "--no-copy-limit"};
    memset(overview, 0, sizeof *overview);
    if (!running_find(word, &overview->pid, error)) return false;
    find_name(overview, word);
    overview->has_resident = rss_parts_of_process(overview->pid, &overview->resident);
    if (!overview->has_resident || !overview->resident.picture.rss_bytes)
        return tell_absence(overview, error);
    if (wish->may_stop) {
        overview->is_open = core_subject_open(word, &look, NULL, &overview->subject, error);
        if (overview->is_open) look_at_heap(overview);
        if (!overview->is_open)
            text_escape(overview->why_no_heap, sizeof overview->why_no_heap, error->text);
    } else {
        snprintf(overview->why_no_heap, sizeof overview->why_no_heap,
                 "it was not stopped (--no-stop)");
    }
    find_remedies(overview);
    find_parts(overview);
    return true;
}

static void close_overview(struct overview *overview) {
    giveback_free(&overview->facts.giveback);
    if (overview->has_waste) waste_sums_free(&overview->waste);
    if (overview->has_heap) heap_state_free(&overview->heap);
    if (overview->is_open) core_subject_close(&overview->subject);
    if (overview->has_resident) rss_parts_free(&overview->resident);
}

// Returns the bytes of no use that are resident: of what was never touched nothing is.
static uint64_t wasted_bytes(const struct overview *overview) {
    const struct waste_row *all = &overview->waste.all;
    if (!overview->has_waste) return 0;
    return (uint64_t)(waste_value(all, FIGURE_WASTED) - waste_value(all, WASTE_UNTOUCHED));
}

static bool is_share(uint64_t bytes, uint64_t all, unsigned percent) {
    return all && bytes >= all / 100 * percent;
}

// --- the sentence

static const struct resident_part *largest_part(const struct overview *overview) {
    const struct resident_part *largest = overview->parts.items;
    for (size_t i = 1; i < overview->parts.count; i++)
        if (overview->parts.items[i].bytes > largest->bytes) largest = &overview->parts.items[i];
    return largest;
}

static const char *allocator_of(const struct overview *overview) {
    return overview->has_other ? core_heap_of(&overview->subject)->other.name : "glibc's malloc";
}

static void make_claim(const struct overview *overview, struct claim *claim) {
    const struct resident_part *largest = largest_part(overview);
    const struct claim_now now = {.all_bytes = overview->parts.all_bytes,
                                  .used_bytes = resident_parts_bytes(&overview->parts, PART_USED),
                                  .free_bytes = resident_parts_bytes(&overview->parts, PART_FREE),
                                  .wasted_bytes = wasted_bytes(overview),
                                  .knows_waste = overview->has_waste,
                                  .largest_bytes = largest->bytes,
                                  .largest = largest->text,
                                  .allocator = allocator_of(overview),
                                  .is_largest_used = largest->kind == PART_USED};
    claim_of_now(claim, &now);
}

static void write_sentence(const struct overview *overview, char text[CLAIM_SENTENCE_BYTES]) {
    struct claim claim;
    make_claim(overview, &claim);
    if (overview->parts.count)
        claim_sentence(&claim, false, text);
    else
        snprintf(text, CLAIM_SENTENCE_BYTES, "it has no resident memory");
}

// --- sections

static void add_row(struct section *section, uint64_t bytes, const char *label) {
    struct section_row *row = &section->rows[section->count++];
    row->bytes = bytes;
    snprintf(row->label, sizeof row->label, "%s", label);
}

static uint64_t used_blocks(const struct overview *overview) {
    const struct heap_state *state = &overview->heap;
    uint64_t count = 0;
    if (!overview->has_other)
        return state->kinds[HEAP_USED].count + state->kinds[HEAP_MAPPED].count;
    const struct glibc_heap *heap = core_heap_of(&overview->subject);
    for (size_t i = 0; i < heap->chunks.count; i++) count += !chunk_is_free(&heap->chunks.items[i]);
    return count;
}

static void fill_parts(struct overview *overview, struct section *section) {
    uint64_t blocks = used_blocks(overview);
    char label[NAME_BYTES];
    section->all_bytes = overview->parts.all_bytes;
    for (size_t i = 0; i < overview->parts.count; i++) {
        const struct resident_part *part = &overview->parts.items[i];
        snprintf(label, sizeof label, "%s%s%s", part->text, part->kind == PART_USED ? ", " : "",
                 part->kind == PART_USED ? units_counted((int64_t)blocks, "block", "blocks").text
                                         : "");
        add_row(section, part->bytes, label);
    }
}

static bool fill_types(struct overview *overview, struct section *section, struct error *error) {
    struct core_type_sum rows[TOP], all;
    size_t count = TOP;
    if (!core_types_largest(&overview->subject, rows, &count, &all, error)) return false;
    section->all_bytes = all.bytes;
    for (size_t i = 0; i < count; i++)
        add_row(section, rows[i].bytes, rows[i].name ? rows[i].name : "not known");
    return true;
}

static bool fill_waste(struct overview *overview, struct section *section, struct error *error) {
    char label[KIN_LABEL_BYTES];
    const struct waste_sums *sums = &overview->waste;
    section->all_bytes = (uint64_t)waste_value(&sums->all, FIGURE_HELD);
    for (size_t i = 0; i < sums->rows.count && i < TOP; i++) {
        uint64_t bytes = (uint64_t)waste_value(&sums->rows.items[i], FIGURE_WASTED);
        if (!bytes) break;
        if (!core_kin_label(sums->subject, &sums->rows.items[i].kin, label))
            return error_set(error, "out of memory");
        add_row(section, bytes, label);
    }
    return true;
}

static bool fill_owners(struct overview *overview, struct section *section, struct error *error) {
    const struct view_options options = {.by = MEASURE_EXIT, .top = TOP, .depth = 1};
    struct owner_listing listing;
    char label[KIN_LABEL_BYTES];
    bool is_ok = true;
    if (!owner_listing_make(&overview->subject, &options, OWNER_ROWS, &listing, error))
        return false;
    section->all_bytes = listing.owners.retained[0];
    for (size_t i = 0; i < listing.rows.count && section->count < RESIDENT_PARTS_MAX && is_ok;
         i++) {
        const struct owner_row *row = &listing.rows.items[i];
        if (row->left_out || row->depth) continue;
        is_ok = owner_listing_label(&listing, &row->kin, label);
        if (is_ok) add_row(section, row->retained, label);
    }
    owner_listing_free(&listing);
    return is_ok || error_set(error, "out of memory");
}

static void fill_remedies(struct overview *overview, struct section *section) {
    struct remedy remedies[REMEDIES];
    char title[REMEDY_TITLE_BYTES];
    size_t count = remedies_find(&overview->facts, false, remedies);
    section->all_bytes = overview->parts.all_bytes;
    for (size_t i = 0; i < count && i < TOP && remedies[i].class != REMEDY_NEEDS_LOG; i++) {
        core_remedy_title(&remedies[i], &overview->facts, title);
        add_row(section, remedies[i].bytes, title);
        section->rows[section->count - 1].class = core_remedy_class(&remedies[i]);
    }
}

// Returns true if blocks in use are enough of the process to be told by type, waste and owner.
static bool is_heap_shown(const struct overview *overview) {
    return (overview->has_heap || overview->has_other) &&
           is_share(resident_parts_bytes(&overview->parts, PART_USED), overview->parts.all_bytes,
                    SHOWN_SHARE);
}

typedef bool section_fill(struct overview *overview, struct section *section, struct error *error);

// Fills a section in, or keeps why it is missing.
static void fill_section(struct overview *overview, enum section_id id, section_fill *fill) {
    struct section *section = &overview->sections[id];
    struct error reason = {""};
    section->is_there = true;
    if (!fill(overview, section, &reason))
        text_escape(section->why, sizeof section->why, reason.text);
}

static void fill_sections(struct overview *overview) {
    struct section *sections = overview->sections;
    struct error unused;
    if (overview->has_heap) {
        overview->has_waste = waste_sums_make(&overview->subject, &overview->waste, &unused);
        if (!overview->has_waste) waste_sums_free(&overview->waste);
    }
    sections[SECTION_PARTS].is_there = sections[SECTION_REMEDIES].is_there = true;
    fill_parts(overview, &sections[SECTION_PARTS]);
    fill_remedies(overview, &sections[SECTION_REMEDIES]);
    if (!is_heap_shown(overview)) return;
    fill_section(overview, SECTION_TYPES, fill_types);
    if (overview->has_waste) fill_section(overview, SECTION_WASTE, fill_waste);
    fill_section(overview, SECTION_OWNERS, fill_owners);
}

static const char *next_view(const struct overview *overview) {
    uint64_t all = overview->parts.all_bytes;
    bool is_free = is_share(resident_parts_bytes(&overview->parts, PART_FREE), all, NOW_FREE_SHARE);
    if (is_free && !overview->has_other) return "remedies";
    if (!overview->is_open) return NULL;
    if (!is_heap_shown(overview)) return NULL;
    return is_share(wasted_bytes(overview), all, NOW_WASTE_SHARE) ? "waste" : "owners";
}

static void write_next(const struct overview *overview, char text[NAME_BYTES]) {
    const char *view = next_view(overview);
    struct program program;
    struct error unused;
    char file[NAME_BYTES];
    int pid = (int)overview->pid, status;
    snprintf(file, sizeof file, "/proc/%d/exe", pid);
    if (view)
        snprintf(text, NAME_BYTES, "cairn report --view %s %d", view, pid);
    else if (strstr(overview->why_no_heap, "--no-copy-limit"))
        snprintf(text, NAME_BYTES, "cairn report --no-copy-limit %d", pid);
    else if (program_find(file, &program, &status, &unused) && program.obstacle)
        *text = 0;  // attach would refuse it
    else
        snprintf(text, NAME_BYTES, "cairn attach %d", pid);
}

// --- forms

static const struct {
    const char *key, *title;
} section_words[SECTIONS] = {
    [SECTION_PARTS] = {"resident", "resident memory"},
    [SECTION_TYPES] = {"types", "types of blocks in use"},
    [SECTION_WASTE] = {"waste", "of no use: never touched, zero, equal or unused"},
    [SECTION_OWNERS] = {"owners", "who keeps them"},
    [SECTION_REMEDIES] = {"remedies", "would give back"},
};

static void print_label(const struct terminal *terminal, const char *label) {
    enum { FIGURES_COLUMNS = 21 };
    char text[KIN_LABEL_BYTES];
    snprintf(text, sizeof text, "%s", label);
    text_cut(text, terminal->columns > 2 * FIGURES_COLUMNS ? terminal->columns - FIGURES_COLUMNS
                                                           : FIGURES_COLUMNS);
    terminal_print(terminal, STYLE_NAME, "%s", text);
    putchar('\n');
}

static void print_row(const struct terminal *terminal, enum section_id id, uint64_t all,
                      const struct section_row *row) {
    printf("  %6s %10s  ", units_percent((int64_t)row->bytes, (int64_t)all).text,
           units_size((int64_t)row->bytes).text);
    if (row->class) printf("%s: ", row->class);
    if (id == SECTION_PARTS)
        puts(row->label);
    else
        print_label(terminal, row->label);
}

// Prints what there is beside the parts of resident memory.
static void print_beside(const struct overview *overview, const struct terminal *terminal) {
    uint64_t swapped = overview->resident.picture.swap_bytes;
    if (swapped) printf("  %17s  swapped out beside it\n", units_size((int64_t)swapped).text);
    if (!overview->has_heap && !overview->has_other)
        terminal_print(terminal, STYLE_DIM, "what is %s in it is not known: %s\n",
                       overview->facts.has_giveback ? "in use" : "free", overview->why_no_heap);
}

static void print_section(const struct overview *overview, const struct terminal *terminal,
                          enum section_id id) {
    const struct section *section = &overview->sections[id];
    if (!section->is_there || !(section->count || id != SECTION_REMEDIES)) return;
    terminal_print(terminal, STYLE_DIM, "%s", section_words[id].title);
    if (id == SECTION_TYPES)
        terminal_print(terminal, STYLE_DIM, ", %s in all",
                       units_size((int64_t)section->all_bytes).text);
    putchar('\n');
    for (size_t i = 0; i < section->count; i++)
        print_row(terminal, id, section->all_bytes, &section->rows[i]);
    if (id == SECTION_WASTE && !section->count) printf("  %17s\n", "nothing");
    if (*section->why) terminal_print(terminal, STYLE_DIM, "not known: %s\n", section->why);
    if (id == SECTION_PARTS) print_beside(overview, terminal);
}

static void print_screen(const struct overview *overview) {
    const struct terminal terminal = terminal_of(stdout);
    char sentence[CLAIM_SENTENCE_BYTES], next[NAME_BYTES];
    write_sentence(overview, sentence);
    write_next(overview, next);
    terminal_print(&terminal, STYLE_STRONG, "%s (%d)", overview->name, (int)overview->pid);
    printf(" · %s resident, not recorded:\n",
           units_size((int64_t)overview->resident.picture.rss_bytes).text);
    terminal_print(&terminal, STYLE_STRONG, "  %s\n", sentence);
    for (int i = 0; i < SECTIONS; i++) print_section(overview, &terminal, (enum section_id)i);
    if (*next) terminal_print(&terminal, STYLE_STRONG, "next: %s\n", next);
}

static void put_section(struct json *json, const struct section *section, const char *key) {
    if (!section->is_there || *section->why) {
        json_put_null(json, key);
        return;
    }
    json_open_array(json, key);
    for (size_t i = 0; i < section->count; i++) {
        json_open_object(json, NULL);
        json_put_uint(json, "bytes", section->rows[i].bytes);
        json_put_string(json, "what", section->rows[i].label);
        if (section->rows[i].class) json_put_string(json, "class", section->rows[i].class);
        json_close(json);
    }
    json_close(json);
}

static void print_json(const struct overview *overview) {
    char sentence[CLAIM_SENTENCE_BYTES], next[NAME_BYTES];
    write_sentence(overview, sentence);
    write_next(overview, next);
    struct claim claim;
    struct json json;
    json_start(&json, stdout);
    json_open_object(&json, NULL);
    json_put_string(&json, "schema", "cairn.overview/1");
    json_put_uint(&json, "pid", (uint64_t)overview->pid);
    json_put_string(&json, "name", overview->name);
    json_put_uint(&json, "rss_bytes", overview->resident.picture.rss_bytes);
    json_put_uint(&json, "swap_bytes", overview->resident.picture.swap_bytes);
    if (overview->is_open)
        json_put_uint(&json, "pause_ns", overview->subject.look.live.pause_ns);
    else
        json_put_null(&json, "pause_ns");
    json_put_string(&json, "sentence", sentence);
    make_claim(overview, &claim);
    if (overview->parts.count)
        claim_put_json_alone(&json, &claim);
    else
        json_put_null(&json, "claims");
    json_put_string(&json, "not_known",
                    overview->has_heap || overview->has_other ? NULL : overview->why_no_heap);
    for (int i = 0; i < SECTIONS; i++)
        put_section(&json, &overview->sections[i], section_words[i].key);
    json_put_string(&json, "next", *next ? next : NULL);
    json_close(&json);
}

bool core_overview_report(const char *word, const struct overview_wish *wish, struct error *error) {
    struct overview overview;
    bool is_ok = open_overview(&overview, word, wish, error);
    if (is_ok && wish->request) {
        is_ok = resident_parts_print(&overview.parts, overview.name, overview.pid, wish->request,
                                     error);
    } else if (is_ok) {
        fill_sections(&overview);
        if (wish->is_json)
            print_json(&overview);
        else
            print_screen(&overview);
    }
    close_overview(&overview);
    return is_ok;
}
