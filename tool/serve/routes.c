// SPDX-License-Identifier: Apache-2.0
// Which answer belongs to a path: a row each.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/serve/answers.h"
#include "tool/serve/exchange.h"
#include "tool/serve/requests.h"

enum { MESSAGE_BYTES = 768 };

typedef enum MHD_Result answer_fn(struct exchange *exchange, struct served *served);

// What is said of an answer that a child makes.
struct product {
    job_make *make;
    const char *type, *file;  // name for a file to keep it in; NULL: it is shown
    unsigned keep_times;
};

struct route {
    const char *path;
    const char *help;  // for the index; NULL: it is not listed
    answer_fn *answer;
    struct product product;
    bool has_body;      // POST as well
    bool is_of_all;     // it needs no process
    bool is_allocated;  // of a profile
};

// --- responses

static const char plain[] = "text/plain; charset=utf-8", html[] = "text/html; charset=utf-8";

static enum MHD_Result queue(struct exchange *exchange, unsigned status, const char *type,
                             struct MHD_Response *response) {
    if (!response) return MHD_NO;
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    MHD_add_response_header(response, "X-Frame-Options", "DENY");
    exchange->connection->state = CONNECTION_WRITES;
    enum MHD_Result result = MHD_queue_response(exchange->http, status, response);
    MHD_destroy_response(response);
    return result;
}

// `text` is malloc's.
static enum MHD_Result answer_text(struct exchange *exchange, unsigned status, const char *type,
                                   char *text, size_t size) {
    struct MHD_Response *response =
        text ? MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE) : NULL;
    if (!response) free(text);
    return queue(exchange, status, type, response);
}

static enum MHD_Result refuse_with(struct exchange *exchange, unsigned status, const char *header,
                                   const char *value, const char *message) {
    char text[MESSAGE_BYTES];
    text_escape(text, sizeof text - 1, message);
    size_t length = strlen(text);
    text[length++] = '\n';
    struct MHD_Response *response =
        MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_COPY);
    if (response && header) MHD_add_response_header(response, header, value);
    return queue(exchange, status, plain, response);
}

static enum MHD_Result refuse(struct exchange *exchange, unsigned status, const char *message) {
    return refuse_with(exchange, status, NULL, NULL, message);
}

// --- what children make

static enum MHD_Result start_job(struct exchange *exchange, struct served *served,
                                 struct answer_request *request) {
    const struct route *route = exchange->route;
    struct server *server = exchange->server;
    char key[JOB_KEY_BYTES];
    struct error error;
    snprintf(key, sizeof key, "%s %u %u %d", route->path, served->serial, request->seconds,
             processes_is_running(served));
    // each has texts of its own
    if (request->text_size) snprintf(key, sizeof key, "%p %s", (void *)exchange, route->path);
    request->title = served->name;
    request->pid = served->is_over ? 0 : (uint32_t)served->pid;
    request->is_allocated = route->is_allocated;
    const struct job_order order = {.key = key,
                                    .path = processes_path(server->processes, served),
                                    .make = route->product.make,
                                    .request = request,
                                    .wait_ns = request->seconds * CLOCK_SECOND_NS,
                                    .keep_times = route->product.keep_times};
    exchange->job = jobs_join(&server->jobs, &order, &error);
    if (!exchange->job)
        return refuse_with(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "Retry-After", "1", error.text);
    if (exchange->job->state != JOB_RUNS) return routes_answer_job(exchange);
    exchange->connection->state = CONNECTION_WAITS;
    server->waiting[server->waiting_count++] = exchange;
    MHD_suspend_connection(exchange->http);
    return MHD_YES;
}

static enum MHD_Result refuse_job(struct exchange *exchange, const struct job *job) {
    char reason[MESSAGE_BYTES / 2] = "", text[MESSAGE_BYTES];
    ssize_t length = job->file < 0 ? 0 : pread(job->file, reason, sizeof reason - 1, 0);
    if (length > 0) reason[length] = 0;
    snprintf(text, sizeof text, "no answer could be made: %s",
             length > 0 ? reason : "it took too long, or ended before its time");
    return refuse(exchange, MHD_HTTP_INTERNAL_SERVER_ERROR, text);
}

// "attachment; filename=..." of characters that need no quotes.
static void name_file(const struct exchange *exchange, struct MHD_Response *response) {
    char value[NAME_MAX];
    if (!exchange->route->product.file) return;
    snprintf(value, sizeof value, "attachment; filename=\"%s\"", exchange->route->product.file);
    MHD_add_response_header(response, "Content-Disposition", value);
}

enum MHD_Result routes_answer_job(struct exchange *exchange) {
    const struct job *job = exchange->job;
    if (job->state != JOB_DONE) return refuse_job(exchange, job);
    int file = dup(job->file);
    off_t size = file < 0 ? -1 : lseek(file, 0, SEEK_END);
    struct MHD_Response *response =
        size < 0 ? NULL : MHD_create_response_from_fd_at_offset64((uint64_t)size, file, 0);
    if (!response) {
        if (file >= 0) close(file);
        return MHD_NO;
    }
    name_file(exchange, response);
    if (exchange->route->product.keep_times) {  // how long it is good for
        const uint64_t ns_per_ms = 1000000;
        char wait[24];
        uint64_t now_ns = clock_now_ns();
        uint64_t left_ns = job->kept_until_ns > now_ns ? job->kept_until_ns - now_ns : 0;
        snprintf(wait, sizeof wait, "%" PRIu64, left_ns / ns_per_ms);
        MHD_add_response_header(response, "X-Next-Milliseconds", wait);
    }
    return queue(exchange, MHD_HTTP_OK, exchange->route->product.type, response);
}

// False after it was refused.
static bool read_seconds(struct exchange *exchange, unsigned *seconds, enum MHD_Result *result) {
    const char *text =
        MHD_lookup_connection_value(exchange->http, MHD_GET_ARGUMENT_KIND, "seconds");
    if (request_seconds(text, seconds)) return true;
    *result = refuse(exchange, MHD_HTTP_BAD_REQUEST, "seconds: a number from 0 to 3600");
    return false;
}

static enum MHD_Result answer_heap(struct exchange *exchange, struct served *served) {
    struct answer_request request = {0};
    enum MHD_Result result;
    if (!read_seconds(exchange, &request.seconds, &result)) return result;
    return start_job(exchange, served, &request);
}

static enum MHD_Result answer_whole(struct exchange *exchange, struct served *served) {
    struct answer_request request = {0};
    return start_job(exchange, served, &request);
}

static enum MHD_Result answer_symbol(struct exchange *exchange, struct served *served) {
    static const char known[] = "num_symbols: 1\n";
    struct answer_request request = {.text = exchange->body, .text_size = exchange->body_size};
    if (request.text_size) return start_job(exchange, served, &request);
    return queue(
        exchange, MHD_HTTP_OK, plain,
        MHD_create_response_from_buffer(strlen(known), (void *)known, MHD_RESPMEM_PERSISTENT));
}

// --- what the server answers itself

static enum MHD_Result answer_stream(struct exchange *exchange, struct served *served) {
    struct MHD_Response *response =
        streams_begin(&exchange->server->streams, served, exchange->http);
    if (!response)
        return refuse_with(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "Retry-After", "10",
                           "too many pages follow this server already");
    MHD_add_response_header(response, "X-Accel-Buffering", "no");
    enum MHD_Result result = queue(exchange, MHD_HTTP_OK, "text/event-stream", response);
    exchange->connection->state = CONNECTION_STREAMS;
    return result;
}

static size_t read_all(struct processes *processes, struct metrics_process *figures) {
    size_t count = 0;
    for (size_t i = 0; i < processes->list.count; i++)
        count += processes_figures(processes, &processes->list.items[i], &figures[count], NULL);
    return count;
}

static enum MHD_Result answer_metrics(struct exchange *exchange, struct served *served) {
    struct processes *processes = exchange->server->processes;
    const char *accept = MHD_lookup_connection_value(exchange->http, MHD_HEADER_KIND, "Accept");
    enum metrics_form form = metrics_form_wanted(accept);
    struct metrics_process *figures = calloc(processes->list.count + 1, sizeof *figures);
    struct metrics_cgroup cgroup;
    char *text = NULL;
    size_t size = 0, count = 0;
    FILE *out = figures ? open_memstream(&text, &size) : NULL;
    if (out) {
        count = served ? processes_figures(processes, served, figures, NULL)
                       : read_all(processes, figures);
        bool has_cgroup = !served && processes_cgroup(processes, &cgroup);
        metrics_print_build(out, form);
        metrics_print(out, figures, count, processes_are_many(processes),
                      has_cgroup ? &cgroup : NULL, form);
        if (fclose(out)) size = 0;
    }
    free(figures);
    return answer_text(exchange, MHD_HTTP_OK, metrics_content_type(form), text, size);
}

static const struct route routes[];

static const char style[] =
    "<style>body{font:15px/1.5 system-ui,sans-serif;margin:2rem;max-width:70rem;color-scheme:light "
    "dark}"
    "td,th{padding:.2rem .8rem;text-align:right}td:nth-child(2),th:nth-child(2){text-align:left}"
    "th{font-weight:600}dt{font-family:ui-monospace,monospace}</style>";

// `more`: of the head.
static void put_head(FILE *out, const char *title, const char *more) {
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", out);
    text_put_markup(out, title);
    fprintf(out, "</title><link rel=\"icon\" href=\"data:,\">%s%s</head><body>\n<h1>", style, more);
    text_put_markup(out, title);
    fputs("</h1>\n", out);
}

// `is_of_one`: of a process; else what is of all, without the list itself.
static void put_links(FILE *out, const char *base, bool is_of_one) {
    fputs("<dl>\n", out);
    for (const struct route *route = routes; route->path; route++)
        if (route->help && (is_of_one || (route->is_of_all && route->path[1])))
            fprintf(out, "<dt><a href=\"%s%s\">%s</a></dt><dd>%s</dd>\n", base, route->path + 1,
                    route->path, route->help);
    fputs("</dl>\n</body></html>\n", out);
}

static enum MHD_Result answer_pprof_index(struct exchange *exchange, struct served *served) {
    char *text = NULL, name[NAME_MAX], title[NAME_MAX + 32];
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) return MHD_NO;
    text_escape(name, sizeof name, served->name);
    snprintf(title, sizeof title, "%s %d", name, (int)served->pid);
    put_head(out, title, "");
    put_links(out, "../../", true);
    if (fclose(out)) size = 0;
    return answer_text(exchange, MHD_HTTP_OK, html, text, size);
}

static void put_row(FILE *out, const struct metrics_process *one) {
    char name[NAME_MAX];
    text_escape(name, sizeof name, one->name);
    fprintf(out, "<tr><td><a href=\"pid/%d/\">%d</a></td><td>", (int)one->pid, (int)one->pid);
    text_put_markup(out, name);
    fprintf(out, "</td><td>%s</td>", units_size(one->figures.exit_bytes).text);
    fprintf(out, "<td>%s</td>", units_size((int64_t)one->figures.peak_bytes).text);
    fprintf(out, "<td>%s</td>", units_size((int64_t)one->rss_bytes).text);
    fprintf(out, "<td><a href=\"pid/%d/debug/pprof/heap\">heap</a> ", (int)one->pid);
    fprintf(out, "<a href=\"pid/%d/debug/pprof/\">more</a></td></tr>\n", (int)one->pid);
}

static enum MHD_Result answer_list(struct exchange *exchange) {
    struct processes *processes = exchange->server->processes;
    struct metrics_process *figures = calloc(processes->list.count + 1, sizeof *figures);
    char *text = NULL;
    size_t size = 0;
    FILE *out = figures ? open_memstream(&text, &size) : NULL;
    if (out) {
        size_t count = read_all(processes, figures);
        put_head(out, "Recorded processes", "<meta http-equiv=\"refresh\" content=\"10\">");
        fputs("<table><tr><th>pid</th><th>program</th><th>live heap</th><th>peak</th><th>RSS</th>"
              "<th></th></tr>\n",
              out);
        for (size_t i = 0; i < count; i++) put_row(out, &figures[i]);
        fputs(count ? "</table>\n" : "</table><p>No process is being recorded.</p>\n", out);
        put_links(out, "", false);
        if (fclose(out)) size = 0;
    }
    free(figures);
    return answer_text(exchange, MHD_HTTP_OK, html, text, size);
}

static enum MHD_Result answer_root(struct exchange *exchange, struct served *served) {
    return served ? answer_whole(exchange, served) : answer_list(exchange);
}

// --- the table

static const struct route routes[] = {
    {.path = "/",
     .help = "the page: timeline, flame graph and table, live",
     .answer = answer_root,
     .product = {.make = answer_page, .type = html},
     .is_of_all = true},
    {.path = "/live", .answer = answer_stream},
    {.path = "/live.data",
     .answer = answer_whole,
     .product = {.make = answer_page_data, .type = plain, .keep_times = 20}},
    {.path = "/metrics",
     .help = "figures for Prometheus",
     .answer = answer_metrics,
     .is_of_all = true},
    {.path = "/profile.cairn",
     .help = "the recording, for every command of cairn",
     .answer = answer_whole,
     .product = {.make = answer_recording,
                 .type = "application/octet-stream",
                 .file = "profile.cairn"}},
    {.path = "/debug/pprof/", .answer = answer_pprof_index},
    {.path = "/debug/pprof/heap",
     .help = "what is live, for go tool pprof; ?seconds=N: what changed in so much time",
     .answer = answer_heap,
     .product = {.make = answer_profile, .type = "application/octet-stream", .file = "heap.pb.gz"}},
    {.path = "/debug/pprof/allocs",
     .help = "what was allocated; ?seconds=N: in so much time",
     .answer = answer_heap,
     .product = {.make = answer_profile,
                 .type = "application/octet-stream",
                 .file = "allocs.pb.gz"},
     .is_allocated = true},
    {.path = "/debug/pprof/symbol",
     .answer = answer_symbol,
     .product = {.make = answer_symbols, .type = plain},
     .has_body = true},
    {0},
};

static const struct route *find(const char *path) {
    for (const struct route *route = routes; route->path; route++)
        if (!strcmp(route->path, path)) return route;
    return NULL;
}

static enum MHD_Result redirect(struct exchange *exchange, const char *where) {
    return refuse_with(exchange, MHD_HTTP_MOVED_PERMANENTLY, "Location", where, "see the next one");
}

static enum MHD_Result answer_found(struct exchange *exchange, const char *url, bool has_pid,
                                    pid_t pid) {
    struct processes *processes = exchange->server->processes;
    struct served *served = has_pid ? processes_find(processes, pid) : processes_only(processes);
    exchange->route = find(url);
    if (!exchange->route) {
        if (!strcmp(url, "/debug/pprof")) return redirect(exchange, "pprof/");
        return refuse(exchange, MHD_HTTP_NOT_FOUND, "there is nothing of this name; / has links");
    }
    if (has_pid && !served)
        return refuse(exchange, MHD_HTTP_NOT_FOUND,
                      "no recorded process has this pid; / lists them");
    if (!served && !exchange->route->is_of_all)
        return refuse(exchange, MHD_HTTP_NOT_FOUND,
                      "of which process? /pid/PID in front of the path says it; / lists them");
    return exchange->route->answer(exchange, served);
}

static enum MHD_Result answer_allowed(struct exchange *exchange, const char *url) {
    char where[REQUEST_PID_DIGITS + sizeof "/pid//"];
    pid_t pid = 0;
    bool has_pid = processes_are_many(exchange->server->processes) && request_cut_pid(&url, &pid);
    if (has_pid && !*url) {
        snprintf(where, sizeof where, "/pid/%d/", (int)pid);
        return redirect(exchange, where);
    }
    return answer_found(exchange, url, has_pid, pid);
}

static bool is_method_right(const char *method, const char *url) {
    const char *last = strstr(url, "/debug/pprof/symbol");
    if (!strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD)) return true;
    return !strcmp(method, MHD_HTTP_METHOD_POST) && last && find(last) && find(last)->has_body;
}

enum MHD_Result routes_answer(struct exchange *exchange, const char *method, const char *url) {
    const struct access_rule *rule = exchange->server->rule;
    const char *host = MHD_lookup_connection_value(exchange->http, MHD_HEADER_KIND, "Host");
    const char *who = MHD_lookup_connection_value(exchange->http, MHD_HEADER_KIND, "Authorization");
    if (!access_host_is_right(rule, host))
        return refuse(exchange, MHD_HTTP_FORBIDDEN,
                      "without a token, this server answers to addresses and localhost alone");
    if (!access_is_allowed(rule, who))
        return refuse_with(exchange, MHD_HTTP_UNAUTHORIZED, "WWW-Authenticate",
                           "Basic realm=\"cairn: the token is the password\"",
                           "Authorization: Bearer TOKEN is missing, or another one");
    exchange->connection->is_allowed = true;
    if (!is_method_right(method, url))
        return refuse_with(exchange, MHD_HTTP_METHOD_NOT_ALLOWED, "Allow", "GET, HEAD",
                           "this can only be read");
    if (exchange->is_too_large)
        return refuse(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "the body is larger than 256 KiB");
    return answer_allowed(exchange, url);
}
