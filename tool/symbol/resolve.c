// SPDX-License-Identifier: Apache-2.0
// The order of work for one module: find its files; ask the table of a Go program; sort the
// addresses; give each its compile unit; read every touched unit once (tree and line table); put
// the frames together; ask the symbol tables for what is left without a name.
#include "tool/symbol/resolve.h"

#include <dwarf.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tool/base/clock.h"
#include "tool/symbol/candidates.h"
#include "tool/symbol/debug_information.h"
#include "tool/symbol/dwp.h"
#include "tool/symbol/go_table.h"
#include "tool/symbol/image.h"
#include "tool/symbol/line.h"
#include "tool/symbol/scope.h"

#define STEPS_OF_INLINED 16  // of a frame, which takes memory too

// Everything that is open while one module is resolved.
struct resolution {
    struct resolver *resolver;
    struct string_pool *names;
    struct string_pool *scratch;
    const struct located *files;
    struct debug_information debug;
    struct dwp *package;  // of split units; NULL: none, or not looked for yet
    bool has_looked_for_package;
    struct unit_list units;
    struct line_table lines;
    struct effort effort;
    struct qualifier *qualifier;
    const char *note;  // what of the debug information is missing
    struct symtab symtab;
    bool has_symtab;
    bool has_dynsym;
    struct request *requests;
    size_t count;
    size_t done;      // requests that the progress knows of
    size_t go_count;  // answered by Go's own table
    bool has_dwarf_answer;
    size_t late_begin, late_end;  // requests whose units were not read in time
};

bool resolve_is_late(const struct symbol_options *options) {
    return options->deadline_ns && clock_now_ns() >= options->deadline_ns;
}

static int request_by_address(const void *left, const void *right) {
    const struct request *a = left, *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

static int request_by_unit(const void *left, const void *right) {
    const struct request *a = left, *b = right;
    if (a->unit != b->unit) return a->unit < b->unit ? -1 : 1;
    return request_by_address(left, right);
}

// One request for each query that nobody has answered yet.
static bool make_requests(struct resolution *work, const struct symbol_query *queries,
                          size_t count) {
    work->requests = calloc(count, sizeof *work->requests);
    if (!work->requests) return false;
    for (size_t i = 0; i < count; i++) {
        if (queries[i].is_known) continue;
        work->requests[work->count++] = (struct request){
            .address = queries[i].address, .query = (uint32_t)i, .unit = UNIT_NONE};
    }
    qsort(work->requests, work->count, sizeof *work->requests, request_by_address);
    return true;
}

static void open_dwarf(struct resolution *work) {
    if (!work->resolver->is_without_lines)
        debug_information_open(&work->debug, work->files, work->resolver->options, work->names);
    work->note = work->debug.note;
}

static bool read_symtabs(struct resolution *work) {
    const struct located *files = work->files;
    const struct image *images[] = {&files->module, &files->debug, &files->packed};
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++) {
        bool added;
        if (!images[i]->elf) continue;
        if (!symtab_add(&work->symtab, images[i], SHT_SYMTAB, &added)) return false;
        work->has_symtab |= added;
    }
    if (!files->module.elf) return true;
    return symtab_add(&work->symtab, &files->module, SHT_DYNSYM, &work->has_dynsym);
}

// The tree of a unit whose information was split off into a file of its own, or a part of a
// package.
static bool read_split(struct resolution *work, Dwarf_Die *skeleton, Dwarf_Die *split,
                       const struct dwp_unit *packed, struct request *requests, size_t count) {
    struct line_table files = {.effort = &work->effort};
    line_table_open_split(&files, dwarf_getelf(dwarf_cu_getdwarf(split->cu)));
    bool has_files = bytes_left(&files.line);
    bool is_done = !has_files || line_table_read(&files, skeleton);
    struct scope_use use = {has_files ? &files : &work->lines,
                            work->qualifier,
                            work->scratch,
                            work->names,
                            work->has_symtab,
                            packed};
    is_done = is_done && scope_find(&use, split, requests, count);
    line_table_close(&files);
    return is_done;
}

static void open_package(struct resolution *work) {
    struct candidates list = {.count = 0};
    const struct located *files = work->files;
    candidates_of_package(&list, work->resolver->options, files->module_path, files->debug_path,
                          work->names);
    work->has_looked_for_package = true;
    for (size_t i = 0; i < list.count && !work->package; i++)
        work->package = dwp_open(list.paths[i], work->debug.image);
}

// The object file of a skeleton that has the skeleton's unit inside; NULL: none has.
static struct dwp *open_object(struct resolution *work, Dwarf_Die *skeleton,
                               struct dwp_unit *unit) {
    struct candidates list = {.count = 0};
    Dwarf_Attribute name_at, directory_at;
    const char *name = dwarf_formstring(dwarf_attr(skeleton, DW_AT_dwo_name, &name_at));
    if (!name) name = dwarf_formstring(dwarf_attr(skeleton, DW_AT_GNU_dwo_name, &name_at));
    if (!name) return NULL;
    candidates_of_object(&list, work->resolver->options, work->debug.path,
                         dwarf_formstring(dwarf_attr(skeleton, DW_AT_comp_dir, &directory_at)),
                         name, work->scratch);
    for (size_t i = 0; i < list.count; i++) {
        struct dwp *object = dwp_open_object(list.paths[i], work->debug.image);
        if (object && dwp_unit_open(object, skeleton, unit)) return object;
        dwp_close(object);
    }
    return NULL;
}

// libdw finds .dwo files; packages and object files are found here. Without any the unit has lines
// only.
static bool read_skeleton(struct resolution *work, Dwarf_Die *skeleton, Dwarf_Die *split,
                          struct request *requests, size_t count) {
    struct dwp_unit packed;
    struct dwp *object = NULL;
    if (split->addr) return read_split(work, skeleton, split, NULL, requests, count);
    if (!work->has_looked_for_package) open_package(work);
    bool is_packed = work->package && dwp_unit_open(work->package, skeleton, &packed);
    if (!is_packed && !(object = open_object(work, skeleton, &packed))) {
        work->note = "debug information is missing that was split off into .dwo or .dwp files";
        return true;
    }
    bool is_done = read_split(work, skeleton, &packed.die, &packed, requests, count);
    dwp_unit_close(&packed);
    dwp_close(object);
    return is_done;
}

static bool read_unit(struct resolution *work, Dwarf_Die *unit, struct request *requests,
                      size_t count) {
    if (!line_table_read(&work->lines, unit) ||
        !line_find(&work->lines, work->debug.image, requests, count, work->names))
        return false;
    uint8_t type;
    Dwarf_Die split = {0};
    if (!dwarf_cu_info(unit->cu, NULL, &type, NULL, &split, NULL, NULL, NULL) &&
        type == DW_UT_skeleton)
        return read_skeleton(work, unit, &split, requests, count);
    struct scope_use use = {&work->lines, work->qualifier,  work->scratch,
                            work->names,  work->has_symtab, NULL};
    return scope_find(&use, unit, requests, count);
}

// Reads each touched unit once.
static bool read_units(struct resolution *work) {
    if (!work->debug.dwarf) return true;
    if (!(work->qualifier = qualifier_open(work->scratch))) return false;
    work->effort.left =
        EFFORT_STEPS_MIN + EFFORT_STEPS_PER_BYTE * image_file_bytes(work->debug.image);
    work->lines.effort = &work->effort;
    line_table_open(&work->lines, work->debug.image);
    if (!unit_assign(&work->units, work->debug.dwarf, work->debug.image, work->requests,
                     work->count, &work->effort))
        return false;
    qsort(work->requests, work->count, sizeof *work->requests, request_by_unit);
    for (size_t i = 0, next; i < work->count && work->requests[i].unit != UNIT_NONE; i = next) {
        struct request *first = &work->requests[i];
        for (next = i; next < work->count && work->requests[next].unit == first->unit;) next++;
        if (resolve_is_late(work->resolver->options)) {
            if (work->late_begin == work->late_end) work->late_begin = i;
            work->late_end = next;
            continue;
        }
        Dwarf_Die *unit = &work->units.units[first->unit].die;
        if (!read_unit(work, unit, first, next - i)) return false;
        atomic_fetch_add(work->resolver->done, next - i);
        work->done += next - i;
    }
    return true;
}

static const struct symtab_entry *find_symbol(struct resolution *work, uint64_t address) {
    const struct located *files = work->files;
    const struct image *image = files->module.elf ? &files->module : &files->debug;
    if (!image->elf || !image_is_code(image, address)) return NULL;
    return symtab_find(&work->symtab, address);
}

// Name of the function at an address that is not inlined, as linker or compiler wrote it; `scope`
// is what the debug information knows of it, or NULL. The symbol table has the whole name where the
// debug information has its last part, and the name that people use where a C library has several
// (strdup, __GI___strdup).
static bool name_function(struct resolution *work, uint64_t address, const struct scope *scope,
                          const char **linkage) {
    *linkage = scope ? scope->linkage : NULL;
    const char *name = *linkage ? string_pool_readable(work->names, *linkage) : NULL;
    if (*linkage && !name) return false;
    bool is_whole = name && scope->is_full_name;
    if (is_whole && name[0] != '_') return true;
    const struct symtab_entry *symbol = find_symbol(work, address);
    if (!symbol || (name && symbol->is_label)) return true;
    const char *other = string_pool_readable(work->names, symbol->name);
    if (!other) return false;
    if (is_whole && strspn(other, "_") >= strspn(name, "_")) return true;
    *linkage = string_pool_intern(work->names, symbol->name, strlen(symbol->name));
    return *linkage;
}

static const struct scope *outermost(const struct scope *scope, size_t *depth) {
    for (*depth = 1; scope && scope->caller; scope = scope->caller) ++*depth;
    return scope;
}

// The frames of one request: the chain of its scopes, innermost first. Each frame's line is where
// it is: from the line table for the first, from the call of the one before for the others.
static bool make_frames(struct resolution *work, const struct request *request,
                        struct symbol_query *query) {
    size_t count, i = 0;
    const char *linkage;
    const struct scope *innermost = request->scope;
    const struct scope *function = outermost(innermost, &count);
    if (count > 1 && !effort_spend(&work->effort, (count - 1) * STEPS_OF_INLINED)) {
        innermost = function;
        count = 1;
    }
    if (!name_function(work, request->address, function, &linkage)) return false;
    query->is_known = true;
    if (!function && !linkage && !request->file) return true;
    struct symbol_frame *frames = string_pool_alloc(work->names, count * sizeof *frames);
    if (!frames) return false;
    frames[0].file = request->file;
    frames[0].line = request->line;
    for (const struct scope *scope = innermost; scope != function; scope = scope->caller) {
        frames[i].linkage = scope->linkage;
        frames[i].declared_line = scope->declared_line;
        frames[i].is_inlined = true;
        i++;
        frames[i].file = scope->call_file;
        frames[i].line = scope->call_line;
    }
    frames[i].linkage = linkage;
    frames[i].declared_line = function ? function->declared_line : 0;
    work->has_dwarf_answer |= request->scope || request->file;
    query->frames = frames;
    query->frame_count = count;
    return true;
}

static void make_report(const struct resolution *work, struct symbol_report *report) {
    const struct located *files = work->files;
    report->origin = SYMBOL_ORIGIN_FILE;
    report->is_gone = files->is_gone;
    report->note = files->note ? files->note : work->note;
    if (work->debug.dwarf && !work->effort.left)
        report->note = "its debug information takes too long to read, so only a part of it was";
    report->path = files->module_path;
    if (work->go_count) {
        report->source = SYMBOL_SOURCE_DWARF;
    } else if (work->has_dwarf_answer) {
        report->source = SYMBOL_SOURCE_DWARF;
        report->path = work->debug.path;
    } else if (work->has_symtab) {
        report->source = SYMBOL_SOURCE_SYMTAB;
        if (files->debug.elf) report->path = files->debug_path;
    } else if (work->has_dynsym) {
        report->source = SYMBOL_SOURCE_DYNSYM;
    } else {
        report->source = SYMBOL_SOURCE_NONE;
        report->path = NULL;
        if (!report->note) report->note = "the file has no symbols";
    }
    bool has_more = image_has_dwarf(&files->module) || image_has_dwarf(&files->debug);
    report->is_partial = work->resolver->is_without_lines && has_more;
    report->is_late = work->late_end > work->late_begin;
    if (report->is_partial && !report->note)
        report->note = "its lines are left for cairn report, for they take long to read";
}

static bool resolve(struct resolution *work, struct symbol_query *queries, size_t count) {
    if (!count) return true;
    open_dwarf(work);
    if (!go_table_answer(&work->files->module, work->names, queries, count, &work->go_count))
        return false;
    if (!make_requests(work, queries, count) || !read_symtabs(work) || !read_units(work))
        return false;
    for (size_t i = 0; i < work->count; i++)
        if ((i < work->late_begin || i >= work->late_end) &&
            !make_frames(work, &work->requests[i], &queries[work->requests[i].query]))
            return false;
    return true;
}

static void resolution_close(struct resolution *work) {
    atomic_fetch_add(work->resolver->done, work->count - work->done);
    debug_information_close(&work->debug);
    dwp_close(work->package);
    unit_free(&work->units);
    line_table_close(&work->lines);
    symtab_free(&work->symtab);
    free(work->requests);
    string_pool_close(work->scratch);
}

bool resolve_from_files(struct resolver *resolver, const struct located *files,
                        struct symbol_job *job) {
    struct resolution work = {.resolver = resolver,
                              .names = resolver->names,
                              .files = files,
                              .debug = {.alternate = IMAGE_CLOSED}};
    bool is_done = (work.scratch = string_pool_open()) && resolve(&work, job->queries, job->count);
    if (is_done) make_report(&work, &job->report);
    resolution_close(&work);
    return is_done;
}
