// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/safe_point.h"

#include <stdio.h>
#include <string.h>

#include "format/heap_functions.h"

// Functions of libc after which, or in which, locks are held that loading a library needs as well.
// clang-format off
#define NAME(name) #name,
static const char *const unsafe_names[] = {
    CAIRN_HEAP_FUNCTIONS(CAIRN_ROW_NAME, NAME)
    CAIRN_HEAP_FUNCTIONS_LATE(CAIRN_ROW_NAME, NAME)
#undef NAME
    "mallopt", "mallinfo", "mallinfo2", "malloc_trim", "malloc_stats", "malloc_info",
    "malloc_usable_size", "exit", "quick_exit", "on_exit", "atexit", "at_quick_exit", "abort",
    "fork", "_Fork", "vfork", "daemon", "system", "popen", "posix_spawn", "posix_spawnp",
    "pthread_create", "pthread_exit", "pthread_cancel", "pthread_atfork", "setlocale",
    "newlocale", "freelocale", "duplocale", "uselocale", "gettext", "dgettext", "dcgettext",
    "ngettext", "dngettext", "dcngettext", "bindtextdomain", "textdomain", "iconv_open",
    "iconv_close", "setenv", "putenv", "unsetenv", "clearenv", "backtrace", "getaddrinfo",
    "getnameinfo", "tzset", "localtime", "localtime_r", "mktime", "strftime"};
// clang-format on
static const char *const unsafe_starts[] = {"dl",
                                            "_dl",
                                            "__libc_dl",
                                            "__libc_malloc",
                                            "__libc_calloc",
                                            "__libc_realloc",
                                            "__libc_free",
                                            "__libc_memalign",
                                            "__malloc",
                                            "__cxa_",
                                            "__register_",
                                            "__nss",
                                            "gethostby",
                                            "getpw",
                                            "getgr",
                                            "getserv"};

static bool is_unsafe_name(const char *name) {
    for (size_t i = 0; i < sizeof unsafe_names / sizeof *unsafe_names; i++)
        if (!strcmp(name, unsafe_names[i])) return true;
    for (size_t i = 0; i < sizeof unsafe_starts / sizeof *unsafe_starts; i++)
        if (!strncmp(name, unsafe_starts[i], strlen(unsafe_starts[i]))) return true;
    return false;
}

static bool is_start(const struct safe_point_frame *frame) {
    return frame->name &&
           (!strcmp(frame->name, "__libc_start_main") || !strcmp(frame->name, "clone"));
}

// Frames without a name that are known nevertheless: those of a wrapper that waits in a system
// call, and those that every thread begins with.
static bool is_known_unnamed(const struct safe_point_stack *stack, size_t at) {
    enum { START_FRAMES = 2 };
    bool is_innermost = true;
    for (size_t i = 0; i < at; i++)
        if (stack->frames[i].kind != FRAME_LIBC || stack->frames[i].name) is_innermost = false;
    if (is_innermost && stack->is_in_system_call) return true;
    size_t left = stack->count - 1 - at;
    if (left && is_start(&stack->frames[at + 1])) return true;
    if (left >= START_FRAMES) return false;
    return !left || (stack->frames[at + 1].kind == FRAME_LIBC && !stack->frames[at + 1].name);
}

static void refuse(struct safe_point *point, const char *format, const char *text) {
    if (point->why[0]) return;
    point->is_safe = false;
    snprintf(point->why, sizeof point->why, format, text);
}

static void evaluate_frame(const struct safe_point_stack *stack, size_t at,
                           struct safe_point *point) {
    const struct safe_point_frame *frame = &stack->frames[at];
    switch (frame->kind) {
    case FRAME_LINKER:
        point->is_in_linker = true;
        refuse(point, "it is in the dynamic linker%s", "");
        break;
    case FRAME_ALLOCATOR:
        refuse(point, "it is in the allocator%s", "");
        break;
    case FRAME_LIBC:
        if (frame->name && is_unsafe_name(frame->name)) refuse(point, "it is in %s", frame->name);
        if (frame->name && !strcmp(frame->name, "pthread_create")) point->is_making_thread = true;
        if (frame->name && !strncmp(frame->name, "dl_iterate", strlen("dl_iterate")))
            point->is_in_linker = true;
        if (!frame->name && !is_known_unnamed(stack, at))
            refuse(point, "it is in a function of libc that has no name%s", "");
        break;
    case FRAME_PROGRAM:
        break;
    }
}

struct safe_point safe_point_judge(const struct safe_point_stack *stack) {
    struct safe_point point = {.is_safe = true};
    for (size_t i = 0; i < stack->count; i++) {
        uint64_t pc = stack->frames[i].pc;
        if (pc >= stack->code_start && pc < stack->code_end) point.is_in_range = true;
        evaluate_frame(stack, i, &point);
    }
    if (!stack->is_complete) refuse(&point, "its stack cannot be followed%s", "");
    if (point.is_in_range) refuse(&point, "it is in cairn%s", "");
    return point;
}
