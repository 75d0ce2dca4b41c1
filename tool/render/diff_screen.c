// SPDX-License-Identifier: Apache-2.0
#include "tool/render/diff_screen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/interval.h"
#include "tool/render/shorten.h"

enum {
    FRAME_INDENT = 8,
    LINE_BYTES = FRAME_TEXT_BYTES,
    SIZE_COLUMNS = 10,
    PLAIN_COLUMNS = 15,
    SURE_COLUMNS = 30,  // " ± 1.2 MiB (62 samples)"
};
static const char arrow[] = "\xe2\x86\x92";
static const char *const known_of_change = "+-";

static struct unit_text value_text(int64_t value, bool is_bytes, bool is_plain_number) {
    return is_bytes ? units_size_as(value, is_plain_number) : units_count(value);
}

struct unit_text diff_delta_text(int64_t delta, bool is_bytes, bool is_plain_number) {
    struct unit_text text = value_text(delta, is_bytes, is_plain_number), out = text;
    if (delta > 0) snprintf(out.text, sizeof out.text, "%c%.38s", known_of_change[0], text.text);
    return out;
}

static enum style style_of(int64_t delta) {
    return delta > 0 ? STYLE_WARNING : delta < 0 ? STYLE_NAME : STYLE_DIM;
}

// "(+13 %)": how much the value grew; nothing for what is new.
static void print_growth(const struct terminal *terminal, struct change change) {
    const double whole = 100;
    if (!change.before || !change.delta) return;
    double percent = (double)change.delta / (double)change.before * whole;
    terminal_print(terminal, style_of(change.delta),
                   fabs(percent) < 10 ? " (%+.1f %%)" : " (%+.0f %%)", percent);
}

static struct measured sureness_of(struct change change) {
    return measured_of_interval(change.delta, change.interval, change.samples);
}

// " ± 1.2 MiB (62 samples)" behind a difference of estimates.
static void print_interval(const struct diff_screen *screen, struct change change, bool is_bytes) {
    const struct measured sure = sureness_of(change);
    fprintf(screen->terminal->out, "%s%s",
            interval_text(sure, is_bytes, screen->view->is_plain_number).text,
            interval_samples(sure).text);
}

// "10 % by chance" behind a difference that noise alone could have made.
static void print_chance(const struct terminal *terminal, struct change change) {
    const int64_t whole = 1000;
    if (change.chance <= 0) return;
    int64_t thousandths = (int64_t)(change.chance * (double)whole + 0.5);
    terminal_print(terminal, STYLE_DIM, "  %s%s by chance", thousandths ? "" : "below ",
                   units_percent(thousandths ? thousandths : 1, whole).text);
}

void diff_print_figure(const struct diff_screen *screen, const char *name, const int64_t *values,
                       const struct diff_estimate *estimates, bool is_bytes) {
    enum { INDENT = 2, KEY_COLUMNS = 13 };
    const struct terminal *terminal = screen->terminal;
    bool is_plain = screen->view->is_plain_number;
    struct change change = diff_change(screen->diff, values, estimates);
    terminal_indent(terminal, INDENT);
    terminal_print(terminal, STYLE_DIM, "%-*s", KEY_COLUMNS, name);
    fprintf(terminal->out, "%s %s %s", value_text(change.before, is_bytes, is_plain).text, arrow,
            value_text(change.after, is_bytes, is_plain).text);
    if (change.is_noise)
        terminal_print(terminal, STYLE_DIM,
                       change.interval ? "   within the interval of the samples,"
                                       : "   within the spread of the recordings");
    else if (!change.delta)
        terminal_print(terminal, STYLE_DIM, "   unchanged");
    else
        terminal_print(terminal, style_of(change.delta), "   %s",
                       diff_delta_text(change.delta, is_bytes, is_plain).text);
    print_interval(screen, change, is_bytes);
    if (!change.is_noise) print_growth(terminal, change);
    if (!change.is_noise) print_chance(terminal, change);
    fputc('\n', terminal->out);
}

static const char *noun_of(const struct diff_screen *screen, size_t count) {
    return screen->noun[count != 1];
}

// Adds up the recordings of a side: its number of calls, all over.
static int64_t calls_of(const struct diff *diff, size_t row, size_t from, size_t end) {
    int64_t calls = 0;
    for (size_t i = from; i < end; i++)
        calls = figures_add(calls, diff->calls.items[row * diff->recording_count + i]);
    return calls;
}

bool diff_claim(const struct diff *diff, enum change_kind kind, struct claim *claim) {
    size_t rows = 0, largest = 0;
    struct change most = {0};
    for (size_t i = 0; i < diff->rows.count; i++) {
        struct change change = diff_row_change(diff, i);
        bool is_there = change.before || change.after;
        if (change.kind != kind || change.is_noise || !is_there) continue;
        if (!rows++ || llabs(change.delta) > llabs(most.delta)) most = change, largest = i;
    }
    *claim = (struct claim){.key = CLAIM_DIFF_NEW + (kind - CHANGE_NEW)};
    if (!rows) return false;
    claim_set(claim, "rows", (int64_t)rows);
    claim_set_text(claim, "where", diff_name(diff, &diff->rows.items[largest], 0));
    claim_set(claim, "before", most.before);
    claim_set(claim, "after", most.after);
    if (!diff->is_of_peak) return true;
    const size_t first = diff->first_count;
    claim_set(claim, "calls_before", calls_of(diff, largest, 0, first));
    claim_set(claim, "calls_after", calls_of(diff, largest, first, diff->recording_count));
    return true;
}

void diff_claims_put_json(struct json *json, const struct diff *diff) {
    struct claim claim;
    json_open_array(json, "claims");
    for (enum change_kind kind = CHANGE_NEW; kind < CHANGE_KINDS; kind++) {
        if (!diff_claim(diff, kind, &claim)) continue;
        json_open_object(json, NULL);
        claim_put_json(json, &claim);
        json_close(json);
    }
    json_close(json);
}

// "3 grown", as the claim has it; what is the same is a count.
static void print_count(const struct diff_screen *screen, size_t kind, size_t count) {
    char sentence[CLAIM_SENTENCE_BYTES];
    struct claim claim;
    if (kind != CHANGE_NONE && diff_claim(screen->diff, (enum change_kind)kind, &claim)) {
        claim_sentence(&claim, false, sentence);
        fputs(sentence, screen->terminal->out);
    } else {
        fprintf(screen->terminal->out, "%s %s", units_count((int64_t)count).text,
                change_word((enum change_kind)kind));
    }
}

void diff_print_counts(const struct diff_screen *screen) {
    const struct diff *diff = screen->diff;
    const struct terminal *terminal = screen->terminal;
    size_t counts[CHANGE_KINDS] = {0}, noise_count = 0, used = 0, all = 0;
    for (size_t i = 0; i < diff->rows.count; i++) {
        struct change change = diff_row_change(diff, i);
        bool is_there = change.before || change.after || change.is_noise;
        counts[change.kind] += is_there && !change.is_noise;
        noise_count += change.is_noise;
        all += is_there;
    }
    const struct measure_row *about = measure_about(screen->view->by);
    terminal_print(terminal, STYLE_STRONG, "%s %s%s%s: ", units_count((int64_t)all).text,
                   noun_of(screen, all), all == 1 ? ", " : " by ",
                   all == 1 ? about->snapshot : about->order);
    for (size_t kind = CHANGE_NEW; kind <= CHANGE_KINDS; kind++) {
        size_t which = kind % CHANGE_KINDS;
        if (!counts[which]) continue;
        fputs(used++ ? ", " : "", terminal->out);
        print_count(screen, which, counts[which]);
    }
    if (noise_count)
        fprintf(terminal->out, "%s%s within the %s", used++ ? ", " : "",
                units_count((int64_t)noise_count).text,
                screen->is_sampled ? "intervals of the samples" : "spread");
    if (!used) fputs("none", terminal->out);
    fputc('\n', terminal->out);
    if (diff->joined_count)
        terminal_print(terminal, STYLE_DIM, "%s matched although functions were inlined or split\n",
                       units_count((int64_t)diff->joined_count).text);
}

static void print_change(const struct diff_screen *screen, struct change change) {
    bool is_bytes = measure_about(screen->view->by)->is_bytes;
    bool is_plain = screen->view->is_plain_number;
    const int columns = is_plain ? PLAIN_COLUMNS : SIZE_COLUMNS;
    terminal_print(screen->terminal, style_of(change.delta), "%*s", columns + 2,
                   diff_delta_text(change.delta, is_bytes, is_plain).text);
    fprintf(screen->terminal->out, " %*s %s %-*s", columns,
            value_text(change.before, is_bytes, is_plain).text, arrow, columns,
            value_text(change.after, is_bytes, is_plain).text);
    if (!screen->is_sampled) return;
    const struct measured sure = sureness_of(change);
    char text[2 * SURE_COLUMNS];
    snprintf(text, sizeof text, "%s%s", interval_text(sure, is_bytes, is_plain).text,
             interval_samples(sure).text);
    size_t used = text_columns(text);
    fputs(text, screen->terminal->out);
    terminal_indent(screen->terminal, used < SURE_COLUMNS ? SURE_COLUMNS - used : 0);
}

static void print_frames(const struct diff_screen *screen, const struct diff_row *row) {
    const struct terminal *terminal = screen->terminal;
    char label[LINE_BYTES], location[LINE_BYTES];
    size_t depth = screen->view->depth, room = terminal->columns - FRAME_INDENT;
    size_t shown = depth && depth < row->count ? depth : row->count, left = row->count - shown;
    for (uint32_t line = 0; line < shown; line++) {
        snprintf(label, sizeof label, "%s", diff_name(screen->diff, row, line));
        snprintf(location, sizeof location, "%s", diff_where(screen->diff, row, line));
        text_cut(location, room / 2);
        size_t location_columns = *location ? text_columns(location) + 2 : 0;
        shorten_function(label, room - location_columns);
        text_cut(label, room - location_columns);
        terminal_indent(terminal, FRAME_INDENT);
        terminal_print(terminal, STYLE_NAME, "%s", label);
        terminal_print(terminal, STYLE_DIM, *location ? "  %s\n" : "%s\n", location);
    }
    if (!left) return;
    terminal_indent(terminal, FRAME_INDENT);
    terminal_print(terminal, STYLE_DIM, "\xe2\x80\xa6 %s: --depth 0\n",
                   units_counted((int64_t)left, "more frame", "more frames").text);
}

// The least difference that is worth a line: a share of the larger side.
static int64_t threshold_of(const struct diff_screen *screen) {
    const struct diff *diff = screen->diff;
    int64_t before = 0, after = 0;
    for (size_t i = 0; i < diff->rows.count; i++) {
        struct change change = diff_row_change(diff, i);
        before = figures_add(before, change.before);
        after = figures_add(after, change.after);
    }
    return view_threshold(screen->view, before > after ? before : after);
}

static bool is_worth(const struct change *change, int64_t threshold) {
    return change->delta >= threshold || change->delta <= -threshold;
}

// Rows that are printed by `print`, and what the others add up to.
static bool print_rows(const struct diff_screen *screen,
                       void (*print)(const struct diff_screen *, const struct diff_row *,
                                     struct change, size_t),
                       struct error *error) {
    const struct diff *diff = screen->diff;
    size_t count, noise_count, shown = 0;
    int64_t threshold = threshold_of(screen), rest = 0;
    uint32_t *rows = diff_rank(diff, &count, &noise_count);
    if (!rows) return error_set(error, "no memory for the comparison");
    for (size_t i = 0; i < count; i++) {
        struct change change = diff_row_change(diff, rows[i]);
        bool has_room = !screen->view->top || shown < screen->view->top;
        if (has_room && is_worth(&change, threshold))
            print(screen, &diff->rows.items[rows[i]], change, ++shown);
        else
            rest = figures_add(rest, change.delta);
    }
    free(rows);
    if (shown == count) return true;
    bool is_bytes = measure_about(screen->view->by)->is_bytes;
    terminal_print(screen->terminal, STYLE_DIM, "\n%s in %zu other %s (--top 0: all)\n",
                   diff_delta_text(rest, is_bytes, screen->view->is_plain_number).text,
                   count - shown, noun_of(screen, count - shown));
    return true;
}

static void print_stack(const struct diff_screen *screen, const struct diff_row *row,
                        struct change change, size_t number) {
    (void)number;
    fputc('\n', screen->terminal->out);
    print_change(screen, change);
    terminal_print(screen->terminal, STYLE_STRONG, " %s", change_word(change.kind));
    print_chance(screen->terminal, change);
    fputc('\n', screen->terminal->out);
    print_frames(screen, row);
}

bool diff_print_stacks(const struct diff_screen *screen, struct error *error) {
    return print_rows(screen, print_stack, error);
}

// Lines of source are named by where they are now.
const char *diff_label(const struct diff_screen *screen, const struct diff_row *row) {
    return screen->has_places ? diff_where(screen->diff, row, 0) : diff_name(screen->diff, row, 0);
}

static void print_group(const struct diff_screen *screen, const struct diff_row *row,
                        struct change change, size_t number) {
    const struct terminal *terminal = screen->terminal;
    char label[LINE_BYTES];
    const int columns = screen->view->is_plain_number ? PLAIN_COLUMNS : SIZE_COLUMNS;
    size_t used = 3 * (size_t)columns + 16 + (screen->is_sampled ? SURE_COLUMNS : 0);
    size_t room = terminal->columns > used + 16 ? terminal->columns - used : 16;
    (void)number;
    print_change(screen, change);
    terminal_print(terminal, STYLE_STRONG, " %-6s", change_word(change.kind));
    const char *name = diff_label(screen, row);
    snprintf(label, sizeof label, "%s", *name == '/' ? text_base_name(name) : name);
    shorten_function(label, room);
    text_cut(label, room);
    terminal_print(terminal, STYLE_NAME, " %s", label);
    if (screen->has_places && row->count == DIFF_LINE_NAMES) {
        size_t taken = text_columns(label) + 1;
        snprintf(label, sizeof label, "%s", diff_name(screen->diff, row, DIFF_LINE_FUNCTION));
        shorten_function(label, room > taken ? room - taken : 0);
        if (room > taken + text_columns(label)) terminal_print(terminal, STYLE_DIM, " %s", label);
    }
    print_chance(terminal, change);
    fputc('\n', terminal->out);
}

bool diff_print_groups(const struct diff_screen *screen, struct error *error) {
    return print_rows(screen, print_group, error);
}
