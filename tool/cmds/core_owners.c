// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_owners.h"

#include <stdio.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/core_owner_rows.h"
#include "tool/cmds/core_save.h"
#include "tool/query/look_answer.h"
#include "tool/tui/browser.h"

enum { LABEL_BYTES = KIN_LABEL_BYTES, FIGURES_COLUMNS = 33 };

// --- the screen

static void print_figures(const struct owner_listing *listing, const struct terminal *terminal,
                          const struct owner_row *row) {
    uint64_t all = listing->owners.retained[0];
    double share = all ? 100.0 * (double)row->retained / (double)all : 0;
    fprintf(terminal->out, "%10s %5.1f %% %11s  ", units_size((int64_t)row->retained).text, share,
            units_count((int64_t)row->blocks).text);
    terminal_indent(terminal, 2 * (size_t)row->depth);
}

// Of a root in a library: "  libfoo.so.1"; the program's own need none.
static void write_module(const struct owner_listing *listing, const struct owner_row *row,
                         char *text, size_t size) {
    const struct core_image *core = listing->subject->core;
    const struct owner_root *root = core_owners_root(&listing->owners, (uint32_t)row->kin.value);
    char module[LABEL_BYTES / 2];
    // what is mapped first is the program
    if (!root->module || !strcmp(root->module, core->files.items[0].path)) return;
    text_escape(module, sizeof module, text_base_name(root->module));
    size_t length = strlen(root->name), own = strlen(module);
    bool is_said = length >= own && !strcmp(root->name + length - own, module);  // "data of ..."
    if (!is_said) snprintf(text, size, "  %s", module);
}

static bool print_row(const struct owner_listing *listing, const struct terminal *terminal,
                      const struct owner_row *row) {
    char label[LABEL_BYTES], more[LABEL_BYTES] = "";
    print_figures(listing, terminal, row);
    if (row->left_out) {
        terminal_print(terminal, STYLE_DIM, "%s\n",
                       units_counted((int64_t)row->left_out, "other", "others").text);
        return true;
    }
    if (!owner_listing_label(listing, &row->kin, label)) return false;
    if (row->kin.kind == KIND_ROOT)
        write_module(listing, row, more, sizeof more);
    else
        snprintf(more, sizeof more, "  %s, %s",
                 units_counted((int64_t)row->count, "block", "blocks").text,
                 units_size((int64_t)row->own).text);
    size_t used = FIGURES_COLUMNS + 2 * (size_t)row->depth + strlen(more);
    if (terminal->is_terminal)
        text_cut(label, terminal->columns > used ? terminal->columns - used : 1);
    terminal_print(terminal, row->kin.kind == KIND_ROOT ? STYLE_STRONG : STYLE_NAME, "%s", label);
    terminal_print(terminal, STYLE_DIM, "%s\n", more);
    return true;
}

// With the root that keeps most. False without memory.
static bool claim_of_owners(struct claim *claim, const struct owner_listing *listing) {
    const struct core_owners *owners = &listing->owners;
    char label[LABEL_BYTES];
    *claim = (struct claim){.key = CLAIM_OWNERS};
    claim_set(claim, "bytes", (int64_t)owners->retained[0]);
    claim_set(claim, "blocks", owners->counts[0]);
    claim_set(claim, "shared_bytes", (int64_t)owners->shared_bytes);
    claim_set(claim, "shared_blocks", (int64_t)owners->shared_count);
    claim_set(claim, "inner_bytes", (int64_t)owners->inner_bytes);
    claim_set(claim, "leaked_bytes", (int64_t)owners->leaked_bytes);
    claim_set(claim, "leaked_blocks", (int64_t)owners->leaked_count);
    claim_set(claim, "inner_blocks", (int64_t)owners->inner_count);
    if (!listing->rows.count || listing->rows.items[0].left_out) return true;
    if (!owner_listing_label(listing, &listing->rows.items[0].kin, label)) return false;
    claim_set_text(claim, "largest", label);
    claim_set(claim, "largest_bytes", (int64_t)listing->rows.items[0].retained);
    return true;
}

static bool print_screen(const struct owner_listing *listing, struct error *error) {
    const struct terminal terminal = terminal_of(stdout);
    const struct core_owners *owners = &listing->owners;
    char name[LABEL_BYTES];
    text_escape(name, sizeof name, listing->subject->look.name);
    terminal_print(&terminal, STYLE_STRONG, "%s", name);
    struct claim claim;
    char sentence[CLAIM_SENTENCE_BYTES];
    if (!claim_of_owners(&claim, listing)) return error_set(error, "out of memory");
    claim_sentence(&claim, false, sentence);
    printf(" · %s\n", sentence);
    if (owners->inner_count)
        terminal_print(&terminal, STYLE_DIM,
                       "%s in %s are reached only by words that point inside, perhaps by chance\n",
                       units_size((int64_t)owners->inner_bytes).text,
                       units_counted((int64_t)owners->inner_count, "block", "blocks").text);
    const char *why = listing->subject->is_recorded ? NULL : core_sources_missing(listing->subject);
    if (why) terminal_print(&terminal, STYLE_DIM, "%s\n", why);
    terminal_print(&terminal, STYLE_DIM, "  RETAINED   SHARE      BLOCKS  OWNER\n");
    bool is_ok = true;
    for (size_t i = 0; i < listing->rows.count && is_ok; i++)
        is_ok = print_row(listing, &terminal, &listing->rows.items[i]);
    return is_ok || error_set(error, "out of memory");
}

// The path of the file that a variable is in; NULL: it is none.
static const char *module_of(const struct owner_listing *listing, const struct owner_row *row) {
    bool is_root = !row->left_out && row->kin.kind == KIND_ROOT;
    return is_root ? core_owners_root(&listing->owners, (uint32_t)row->kin.value)->module : NULL;
}

enum owner_column {
    OWNER_RETAINED,
    OWNER_SHARE,
    OWNER_RETAINED_BLOCKS,
    OWNER_NAME,
    OWNER_KIND,
    OWNER_MODULE,
    OWNER_OWN,
    OWNER_OWN_BLOCKS,
    OWNER_LEFT_OUT,
    OWNER_COLUMNS
};

static const struct answer_column owner_columns[OWNER_COLUMNS] = {
    [OWNER_RETAINED] = ANSWER_FIGURES("retained_bytes", "retained", ANSWER_BYTES, 0),
    [OWNER_SHARE] = {.key = "share", .unit = ANSWER_SHARE, .place = ANSWER_FIGURE},
    [OWNER_RETAINED_BLOCKS] = ANSWER_FIGURES("retained_blocks", "blocks", ANSWER_COUNT, 0),
    [OWNER_NAME] = ANSWER_NAMES("name", ANSWER_TAIL, .head = "owner"),
    [OWNER_KIND] = ANSWER_TAILS("kind", " ", NULL, .head = "kind"),
    [OWNER_MODULE] = ANSWER_DATA("module", ANSWER_TEXT),
    [OWNER_OWN] = ANSWER_DATA("own_bytes", ANSWER_BYTES),
    [OWNER_OWN_BLOCKS] = ANSWER_DATA("own_blocks", ANSWER_COUNT),
    [OWNER_LEFT_OUT] = ANSWER_DATA("left_out", ANSWER_COUNT)};

struct owner_list {
    const struct owner_listing *listing;
    size_t at;
    char label[LABEL_BYTES];
};

static bool next_owner(struct answer *answer, struct answer_row *out) {
    struct owner_list *list = answer->state;
    if (list->at == list->listing->rows.count) return false;
    const struct owner_row *row = &list->listing->rows.items[list->at++];
    const char *module = module_of(list->listing, row);
    out->level = row->depth;
    answer->is_failed =
        !row->left_out && !owner_listing_label(list->listing, &row->kin, list->label);
    answer_set(out, OWNER_RETAINED, (int64_t)row->retained);
    answer_set(out, OWNER_SHARE, (int64_t)row->retained);
    answer_set(out, OWNER_RETAINED_BLOCKS, (int64_t)row->blocks);
    if (!row->left_out) answer_set_text(out, OWNER_NAME, list->label);
    answer_set_text(out, OWNER_KIND, row->left_out ? "others" : core_kin_word(row->kin.kind));
    if (module) answer_set_text(out, OWNER_MODULE, module);
    answer_set(out, OWNER_OWN, (int64_t)row->own);
    answer_set(out, OWNER_OWN_BLOCKS, row->kin.kind == KIND_ROOT ? 0 : row->count);
    answer_set(out, OWNER_LEFT_OUT, (int64_t)row->left_out);
    return !answer->is_failed;
}

static bool print_form(const struct owner_listing *listing, const struct request *request,
                       struct error *error) {
    const char *why = core_sources_missing(listing->subject);
    struct owner_list list = {.listing = listing};
    struct look_answer of;
    struct claim claim;
    if (!claim_of_owners(&claim, listing)) return error_set(error, "out of memory");
    struct answer answer = {.view = "owners",
                            .options = &request->options,
                            .columns = owner_columns,
                            .column_count = OWNER_COLUMNS,
                            .has_levels = true,
                            .whole = (int64_t)listing->owners.retained[0],
                            .next_row = next_owner,
                            .state = &list};
    for (size_t i = 0; i < listing->rows.count; i++) answer.count += !listing->rows.items[i].depth;
    look_answer_of(&of, &listing->subject->look, &answer);
    answer.shown = answer.count;
    look_answer_claims(&answer, &claim, 1);
    if (why && !listing->subject->is_recorded) answer_note(&answer, "%s", why);
    return look_answer_print(request, &answer, error);
}

// On a terminal, as the call tree is.
static bool walk(struct owner_listing *listing, const struct request *request,
                 struct error *error) {
    struct opened opened;
    struct filter *filter;
    const struct frame_names *names;
    struct frame_names own_names;
    struct request whole = *request;  // names of all, since all of it is walked through
    whole.options.top = 0;
    if (!filter_open(&filter, &request->filter, error)) return false;
    bool is_ok = core_image_open(listing, &opened, error);
    if (is_ok) {
        is_ok = request_apply(&whole, filter, &opened, &names, &own_names, error) &&
                browser_run(&opened.profile, names, &request->options, error);
        opened_close(&opened);
    }
    filter_close(filter);
    return is_ok;
}

bool core_owners_print(struct core_subject *subject, const struct view_options *options,
                       struct error *error) {
    struct owner_listing listing;
    if (!owner_listing_make(subject, options, OWNER_ROWS, &listing, error)) return false;
    bool is_ok = print_screen(&listing, error);
    owner_listing_free(&listing);
    return is_ok;
}

bool core_owners_rows(struct core_subject *subject, const struct request *request,
                      struct error *error) {
    struct owner_listing listing;
    if (!owner_listing_make(subject, &request->options, OWNER_ROWS, &listing, error)) return false;
    bool is_ok = print_form(&listing, request, error);
    owner_listing_free(&listing);
    return is_ok;
}

bool core_owners_report(const char *word, const struct request *request, bool has_limit,
                        struct error *error) {
    const struct heap_wish wish = {.depth = HEAP_REFERENCES,
                                   .bytes_max = has_limit ? CORE_COPIED_BYTES_MAX : UINT64_MAX,
                                   .way_around = "--no-copy-limit"};
    struct core_subject subject;
    struct owner_listing listing;
    if (!core_subject_open(word, &wish, NULL, &subject, error)) return false;
    bool is_walked = !request->form && !request->is_printed && browser_is_possible();
    const struct view_options everything = {0};
    bool is_ok = owner_listing_make(&subject, is_walked ? &everything : &request->options,
                                    is_walked ? OWNER_BLOCKS : OWNER_ROWS, &listing, error);
    if (is_ok) {
        is_ok = is_walked       ? walk(&listing, request, error)
                : request->form ? print_form(&listing, request, error)
                                : print_screen(&listing, error);
        core_print_doubts(&subject);
        owner_listing_free(&listing);
    }
    if (!is_ok) heap_look_blame(&subject.look, error);
    core_subject_close(&subject);
    return is_ok;
}
