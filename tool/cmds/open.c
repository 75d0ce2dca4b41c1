// SPDX-License-Identifier: Apache-2.0
// cairn open: a recording, a run or a comparison as a page for a browser, written to a file and
// shown; of a process, served and followed.
#include "tool/cmds/open.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/base/error.h"
#include "tool/base/output.h"
#include "tool/base/text.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/core_save.h"
#include "tool/cmds/report_run.h"
#include "tool/cmds/serve.h"
#include "tool/query/heap_views.h"
#include "tool/query/live.h"
#include "tool/query/merged.h"
#include "tool/query/subject.h"
#include "tool/serve/page.h"
#include "tool/web/web.h"

// --- the web browser

extern char **environ;

// A starter such as xdg-open ends at once, with a status; a browser runs on. Who has not failed
// within this time is taken to work.
enum { LOOKS = 30, LOOK_MS = 50 };

static bool has_failed(pid_t child) {
    for (int look = 0; look < LOOKS; look++) {
        int status;
        pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child) return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        if (ended < 0) return false;
        poll(NULL, 0, LOOK_MS);
    }
    return false;
}

// In a session of its own and silent: browsers write to the terminal for as long as they run.
static bool start(const char *program, const char *path) {
    char *const words[] = {(char *)program, (char *)path, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    pid_t child;
    if (posix_spawn_file_actions_init(&actions)) return false;
    if (posix_spawnattr_init(&attributes)) {
        posix_spawn_file_actions_destroy(&actions);
        return false;
    }
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
    int result = posix_spawnp(&child, program, &actions, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return !result && !has_failed(child);
}

// $BROWSER is a list, as other tools read it: the first that starts.
static bool start_wanted(const char *list, const char *path) {
    char *copy = strdup(list), *rest = NULL;
    bool is_shown = false;
    for (char *word = copy ? strtok_r(copy, ":", &rest) : NULL; word && !is_shown;
         word = strtok_r(NULL, ":", &rest))
        is_shown = start(word, path);
    free(copy);
    return is_shown;
}

// Starts the first of $BROWSER, xdg-open and the usual browsers that can be started; it goes on
// when cairn has ended. False with the reason if there is none.
static bool browser_show(const char *path, struct error *error) {
    static const char *const usual[] = {"xdg-open", "sensible-browser", "firefox", "chromium",
                                        "google-chrome"};
    const char *wanted = getenv("BROWSER");
    if (wanted && *wanted) {
        if (start_wanted(wanted, path)) return true;
        return error_set(error, "the browser \"%s\" ($BROWSER) did not start", wanted);
    }
    const char *x11 = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    if ((!x11 || !*x11) && (!wayland || !*wayland))
        return error_set(error, "there is no display for a browser here");
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (start(usual[i], path)) return true;
    return error_set(error, "no browser could be started, and $BROWSER names none");
}

enum { PROCESSES_MAX = 24, TITLE_BYTES = 512, LINE_COLUMNS = 4000 };

// What a page is about: a recording, a run, or two recordings; or snapshots of recordings.
struct page {
    struct subject subjects[2];
    char *words[2];            // what was named; snapshots point into them
    const char *snapshots[2];  // NULL: none was named
    size_t count;
    int owners;  // a file in memory of who keeps the blocks of a process; -1: none
};

static bool put_run_facts(struct web *web, const struct run *run, struct error *error) {
    struct run_screen screen = {0};
    char *facts = NULL;
    size_t size;
    if (!report_run_measure(run, &screen, error)) return false;
    FILE *out = open_memstream(&facts, &size);
    if (!out) return error_set(error, "no memory for the page");
    const struct terminal terminal = {.out = out, .columns = LINE_COLUMNS};
    run_screen_print_facts(&terminal, &screen);
    bool is_ok = !fclose(out) || error_set(error, "no memory for the page");
    const struct web_run about = {run, screen.combined.low_bytes, screen.combined.high_bytes,
                                  facts};
    if (is_ok) web_put_run(web, &about);
    free(facts);
    return is_ok;
}

// The processes with the highest peaks come with their stacks, the others as rows of a table.
static bool put_run(struct web *web, const char *directory, struct error *error) {
    struct run run;
    char path[PATH_MAX];
    size_t count = 0;
    if (!run_open(directory, &run, error)) return false;
    bool is_ok = put_run_facts(web, &run, error);
    for (size_t i = 0; is_ok && i < run.rows.count && count < PROCESSES_MAX; i++) {
        const struct run_row *row = &run.rows.items[i];
        int length = snprintf(path, sizeof path, "%s/%s", directory, row->file);
        if (!row->is_there || length >= (int)sizeof path) continue;
        struct error unreadable;
        const struct page_part part = {.path = path, .role = WEB_PROCESS};
        if (page_put_recording(web, &part, &unreadable))
            count++;
        else if (web->sink.is_bad)
            is_ok = error_set(error, "%s", unreadable.text);
    }
    if (is_ok && !count) is_ok = error_set(error, "%s: no recording in this run", directory);
    run_close(&run);
    return is_ok;
}

// "server.cairn@10s → server.cairn@exit"
static void title_of(const struct page *page, char *out, size_t size) {
    char name[2][TITLE_BYTES / 2] = {"", ""}, full[PATH_MAX + TITLE_BYTES];
    for (size_t i = 0; i < page->count; i++) {
        const char *snapshot = page->snapshots[i];
        snprintf(full, sizeof full, "%s%s%s", text_base_name(page->subjects[i].name),
                 snapshot ? "@" : "", snapshot ? snapshot : "");
        text_escape(name[i], sizeof name[i], full);
    }
    snprintf(out, size, "%s%s%s", name[0], page->count > 1 ? " \xe2\x86\x92 " : "", name[1]);
}

// Both sides of a comparison. If a snapshot is named, the other side stands for its peak, as in
// `cairn diff`.
static bool put_sides(struct web *web, const struct page *page, struct error *error) {
    bool has_snapshots = page->snapshots[0] || page->snapshots[1], is_ok = true;
    struct page_matching matching;
    page_matching_start(&matching, has_snapshots ? MEASURE_AT : MEASURE_PEAK);
    for (size_t i = 0; i < 2 && is_ok; i++) {
        const char *snapshot = page->snapshots[i] || !has_snapshots ? page->snapshots[i] : "peak";
        const struct page_part part = {.path = page->subjects[i].path,
                                       .shown_path = page->subjects[i].name,
                                       .role = i ? WEB_AFTER : WEB_BEFORE,
                                       .snapshot = snapshot,
                                       .matching = &matching};
        is_ok = page_put_recording(web, &part, error);
    }
    is_ok = is_ok && page_put_matching(web, &matching, error);
    page_matching_free(&matching);
    return is_ok;
}

// A process, or its core, with the picture of its heap.
static bool put_one(struct web *web, const struct page *page, struct error *error) {
    const char *path = page->subjects[0].path, *word = page->words[0];
    const struct heap_wish wish = {.depth = HEAP_HEADS, .bytes_max = UINT64_MAX};
    struct heap_look look;
    struct error reason;
    bool has_heap = word && !page->snapshots[0] && heap_look_is_possible(word);
    if (has_heap && !heap_look_take(word, &wish, &look, &reason)) {
        fprintf(stderr, "cairn: without a picture of its heap: %s\n", reason.text);
        has_heap = false;
    }
    const struct page_part part = {.path = path,
                                   .shown_path = page->subjects[0].name,
                                   .role = WEB_ONE,
                                   .log = page->subjects[0].log,
                                   .snapshot = page->snapshots[0],
                                   .look = has_heap ? &look : NULL};
    bool is_ok = page_put_recording(web, &part, error);
    if (has_heap) heap_look_close(&look);
    return is_ok;
}

static bool write_page(FILE *out, const struct page *page, struct error *error) {
    struct web web;
    struct error unused;
    char title[TITLE_BYTES];
    title_of(page, title, sizeof title);
    bool is_ok = web_open(&web, out, title, false, error);
    const struct subject *first = &page->subjects[0];
    if (is_ok && page->count > 1)
        is_ok = put_sides(&web, page, error);
    else if (is_ok && first->is_run && !page->snapshots[0])
        is_ok = put_run(&web, first->path, error);
    else if (is_ok)
        is_ok = put_one(&web, page, error);
    return web_close(&web, is_ok ? error : &unused) && is_ok;
}

static bool write_file(const struct page *page, const char *path, bool can_replace,
                       struct error *error) {
    struct output output;
    if (!output_open(path, can_replace, &output, error)) return false;
    if (write_page(output.file, page, error)) return output_commit(&output, error);
    output_cancel(&output);
    return false;
}

// A name for the page in the temporary directory that nobody else has.
static bool choose_temporary(const struct page *page, char path[PATH_MAX], struct error *error) {
    static const char ending[] = ".html";
    const char *directory = getenv("TMPDIR");
    char name[NAME_MAX / 2];
    snprintf(name, sizeof name, "%s", text_base_name(page->subjects[0].name));
    int length = snprintf(path, PATH_MAX, "%s/%s.XXXXXX%s",
                          directory && *directory ? directory : "/tmp", name, ending);
    if (length >= PATH_MAX) return error_set(error, "$TMPDIR is too long");
    int file = mkstemps(path, (int)strlen(ending));
    if (file < 0) return error_set(error, "%s: %s", path, strerror(errno));
    close(file);
    return true;
}

static bool show_page(const struct page *page, struct error *error) {
    const mode_t mine_alone = 077;
    char path[PATH_MAX];
    if (!choose_temporary(page, path, error)) return false;
    mode_t mask = umask(mine_alone);
    bool is_written = write_file(page, path, true, error);
    umask(mask);
    if (!is_written) {
        unlink(path);
        return false;
    }
    struct error reason;
    if (!browser_show(path, &reason))
        return error_set(error, "%s; the page is %s", reason.text, path);
    fprintf(stderr, "cairn: %s\n", path);
    return true;
}

bool open_show(const char *path, struct error *error) {
    struct page page = {.count = 1, .owners = -1};
    return subject_find(path, &page.subjects[0], error) && show_page(&page, error);
}

// A comparison adds up the processes of a run.
static bool read_subjects(const struct command_args *args, struct page *page, struct error *error) {
    const char *process = args_text(args, OPTION_PROCESS, NULL);
    page->count = args->word_count > 1 ? 2 : 1;
    for (size_t i = 0; i < page->count; i++) {
        struct subject *subject = &page->subjects[i];
        if (args->word_count) {
            page->words[i] = strdup(args->words[i]);
            if (!page->words[i]) return error_set(error, "no memory for the page");
            page->snapshots[i] = subject_cut_snapshot(page->words[i]);
        }
        if (!subject_find(page->words[i], subject, error)) return false;
        if (process && !subject_enter(subject, process, error)) return false;
    }
    return true;
}

// Who keeps the blocks of a process or core dump, instead of a recording.
static bool take_owners(const struct command_args *args, struct page *page, struct error *error) {
    struct subject *subject = &page->subjects[0];
    page->count = 1;
    page->owners = core_image_take(args->words[0], !args_has(args, OPTION_NO_COPY_LIMIT),
                                   args_has(args, OPTION_CONTENTS), subject->path, error);
    snprintf(subject->name, sizeof subject->name, "%s", args->words[0]);
    return page->owners >= 0;
}

// The server goes on meanwhile: browsers are looked at for a while after their start.
static void show_address(const char *url) {
    struct error reason;
    sigset_t none;
    fflush(NULL);
    if (fork()) return;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (!browser_show(url, &reason)) {
        error_wrap(&reason, "open the address yourself");
        command_fail(STATUS_FAILURE, &reason);
    }
    _exit(STATUS_OK);
}

// A process that is being recorded, and nothing else is asked for.
static bool is_to_be_followed(const struct command_args *args) {
    static struct live_process process;
    if (args->word_count != 1 || args_has(args, OPTION_OUTPUT) || args_has(args, OPTION_OWNERS) ||
        args_has(args, OPTION_PROCESS))
        return false;
    const char *word = args->words[0];
    return running_may_be(word) && live_choose(word, &process, NULL);
}

int cmd_open(const struct command_args *args) {
    struct page page = {.owners = -1};
    struct error error;
    const char *path = args_text(args, OPTION_OUTPUT, NULL);
    if (!path && args_has(args, OPTION_FORCE)) {
        error_set(&error, "open: --force is for -o FILE");
        return command_fail(STATUS_USAGE, &error);
    }
    if (args_has(args, OPTION_OWNERS) && args->word_count != 1) {
        error_set(&error, "open: --owners: of which process or core dump? (one)");
        return command_fail(STATUS_USAGE, &error);
    }
    if (is_to_be_followed(args)) return serve_process(args->words[0], show_address);
    bool is_ok = (args_has(args, OPTION_OWNERS) ? take_owners(args, &page, &error)
                                                : read_subjects(args, &page, &error)) &&
                 (path ? write_file(&page, path, args_has(args, OPTION_FORCE), &error)
                       : show_page(&page, &error));
    for (size_t i = 0; i < 2; i++) free(page.words[i]);
    if (page.owners >= 0) close(page.owners);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
