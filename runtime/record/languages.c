// SPDX-License-Identifier: Apache-2.0
// A walk that could not be verified by comparing may have led through a signal frame: what the
// handler interrupted may be half done, so that no memory is trusted.
#include "runtime/record/languages.h"

#include "runtime/async/async.h"
#include "runtime/go/go.h"
#include "runtime/java/java.h"
#include "runtime/js/js.h"
#include "runtime/php/php.h"
#include "runtime/process/settings.h"
#include "runtime/python/python.h"
#include "runtime/ruby/ruby.h"
#include "runtime/sink/sink.h"
#include "runtime/stack/module.h"
#include "runtime/thread/gate.h"
#include "runtime/thread/stack_memory.h"

COLD void languages_note_modules(struct walk_trace *trace) {
    bool has_replaced = false;
    struct module_place last = {0, 0};
    for (uint32_t i = 0; i < trace->count; i++)
        if (module_note(trace->frames[i].pc, &last) == MODULE_REPLACED) has_replaced = true;
    if (has_replaced) gate_forget_rules();
    trace->range.has_new_code = false;
}

// Runtimes that were not there at the start, or are now: new code was met.
static COLD void look_for_languages(struct managed_native native) {
    if (settings.has_java && !java.version) {
        java_look();
        sink.header->java_version = (uint16_t)java.version;
        sink.header->has_java_frames = java.can_be_read;
    }
    if (settings.has_go && !go.version) {
        go_look(native);
        sink.header->go_version = (uint16_t)go.version;
        sink.header->has_go_frames = go.can_be_read;
    }
    if (settings.has_js && !js.version) {
        js_look();
        sink.header->js_version = js.version;
        sink.header->has_js_frames = js.can_be_read;
    }
    if (settings.has_php && !php.version) {
        php_look();
        sink.header->php_version = php.version;
        sink.header->has_php_frames = php.can_be_read;
    }
    if (settings.has_ruby && !ruby.version) {
        ruby_look();
        sink.header->ruby_version = ruby.version;
        sink.header->has_ruby_frames = ruby.can_be_read;
    }
}

// ---- native frames further out ------------------------------------------------------------------

static struct managed_native walk_outside(void *context, uintptr_t pc, uintptr_t stack,
                                          uintptr_t *frame_slot) {
    struct thread *thread = context;
    struct walk_trace *trace = thread->outside_trace;
    struct walk_start start = {pc, stack, frame_slot};
    if (walk_stack(trace, &start).has_new_code) languages_note_modules(trace);
    return (struct managed_native){trace->frames, trace->count};
}

static bool has_outside_trace(struct thread *thread) {
    if (likely(thread->outside_trace)) return true;
    struct walk_trace *trace = sys_reserve(sizeof *trace);
    if (!trace || !walk_trace_init(trace, stack_memory_limit())) return false;
    thread->outside_trace = trace;
    return true;
}

// ---- languages ----------------------------------------------------------------------------------

// A Ruby that is not what its version says is refused on the way.
static struct managed_stack weave_ruby(struct thread *thread, struct managed_native native,
                                       bool is_careful) {
    struct managed_stack stack = ruby_weave(thread->ruby, native, is_careful);
    if (unlikely(!ruby.can_be_read)) {
        sink.header->ruby_version = ruby.version;
        sink.header->has_ruby_frames = false;
    }
    return stack;
}

// What a language needs of a thread is made at its first event. Without memory for it stacks have
// native frames only.
static struct managed_stack weave(struct thread *thread, struct managed_native native,
                                  bool is_careful) {
    const struct managed_walker walker = {walk_outside, thread};
    const uint32_t limit = thread->trace.limit;
    if (java.can_be_read && has_outside_trace(thread)) {
        if (unlikely(!thread->java)) thread->java = java_thread_make(limit);
        if (thread->java) return java_weave(thread->java, native, thread->tid, &walker);
    } else if (go.can_be_read && has_outside_trace(thread)) {
        if (unlikely(!thread->go)) thread->go = go_thread_make(limit);
        if (thread->go) return go_weave(thread->go, native, is_careful, &walker);
    } else if (js.can_be_read) {
        if (unlikely(!thread->js)) thread->js = js_thread_make(limit);
        if (thread->js) return js_weave(thread->js, native, is_careful);
    } else if (php.can_be_read) {
        if (unlikely(!thread->php)) thread->php = php_thread_make(limit);
        if (thread->php) return php_weave(thread->php, native, thread->tid, is_careful);
    } else if (ruby.can_be_read) {
        if (unlikely(!thread->ruby)) thread->ruby = ruby_thread_make(limit);
        if (thread->ruby) return weave_ruby(thread, native, is_careful);
    } else if (settings.has_python) {
        if (unlikely(!thread->python)) thread->python = python_thread_make(thread->trace.room);
        if (thread->python) return python_weave(thread->python, native, is_careful);
    } else if (settings.has_async && thread->async) {
        return async_weave(thread->async, native);
    }
    return (struct managed_stack){thread->trace.frames, native.count, 0, false};
}

struct managed_stack languages_stack(struct thread *thread, uintptr_t *frame) {
    struct walk_start start = walk_start_of(frame);
    struct walk_trace *trace = &thread->trace;
    struct walk_result walk = walk_stack(trace, &start);
    struct managed_native native = {trace->frames, trace->count};
    if (unlikely(walk.has_new_code)) {
        languages_note_modules(trace);
        look_for_languages(native);
    }
    return weave(thread, native, trace->usable_count != trace->count);
}

void languages_leave(struct thread *thread) {
    if (thread->python) python_leave(thread->python);
}
