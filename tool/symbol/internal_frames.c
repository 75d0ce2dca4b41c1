// SPDX-License-Identifier: Apache-2.0
// The user's rules come first, so that they may show what cairn would hide.
//
// The table of internal frames, one rule a row. Rules without a module hold everywhere: an
// allocator is one wherever it is linked in. Names that a program may well use itself (clone,
// start_thread) count only inside libc; a module rule without a name is of the whole library.
// Public functions of containers (std::vector<T>::push_back) are not internal frames: they say what
// the memory is for. What they call is, and so are constructors of strings: what is kept in a
// string says whoever makes it.
#include "tool/symbol/internal_frames.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/heap_functions.h"
#include "tool/base/array.h"

const struct internal_rule internal_rules[] = {
// The allocation functions of C, as programs and other allocators name them.
// clang-format off
#define RULE(name) {#name, EXACT, INTERNAL_ALLOCATOR, NULL},
    CAIRN_HEAP_FUNCTIONS(CAIRN_ROW_NAME, RULE)
    CAIRN_HEAP_FUNCTIONS_LATE(CAIRN_ROW_NAME, RULE)
#undef RULE
    {"__libc_malloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    // clang-format on
    {"__libc_free", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"__libc_calloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"__libc_realloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"__libc_memalign", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"__GI___libc_", PREFIX, INTERNAL_ALLOCATOR, "libc"},
    {"__posix_memalign", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"_mid_memalign", EXACT, INTERNAL_ALLOCATOR, "libc"},
    {"_int_malloc", EXACT, INTERNAL_ALLOCATOR, "libc"},
    {"_int_realloc", EXACT, INTERNAL_ALLOCATOR, "libc"},
    {"sysmalloc", EXACT, INTERNAL_ALLOCATOR, "libc"},
    {"tcache_init", EXACT, INTERNAL_ALLOCATOR, "libc"},
    {NULL, EXACT, INTERNAL_ALLOCATOR, "libjemalloc"},
    {NULL, EXACT, INTERNAL_ALLOCATOR, "libtcmalloc"},
    {NULL, EXACT, INTERNAL_ALLOCATOR, "libmimalloc"},
    {NULL, EXACT, INTERNAL_ALLOCATOR, "libcairn"},
    {NULL, EXACT, INTERNAL_ALLOCATOR, "memfd:libcairn"},  // of cairn attach

    // C++ operators; "operator new" is also the beginning of "operator new[]".
    {"operator new", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"operator delete", PREFIX, INTERNAL_ALLOCATOR, NULL},

    // Rust's allocator entries.
    {"__rust_alloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"<cairn::Alloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"cairn::library::", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"dhat::Alloc as core::", CONTAINS, INTERNAL_ALLOCATOR, NULL},
    {"__rust_realloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"__rust_dealloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"__rdl_", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"__rg_", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"__rustc::__r", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"alloc::alloc::", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"<alloc::alloc::Global", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"std::alloc::", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"<std::alloc::System", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"std::sys::alloc::", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"std::sys::unix::alloc::", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"std::sys::pal::unix::alloc::", PREFIX, INTERNAL_ALLOCATOR, NULL},

    // Wrappers of well-known programs and libraries: every allocation passes through them, so
    // they tell nothing.
    {"xmalloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"xcalloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"xrealloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"xzalloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"xmallocz", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"do_xmalloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"g_malloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"g_try_malloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"g_realloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"g_try_realloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"g_slice_alloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"sqlite3MemMalloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"sqlite3MemRealloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"sqlite3Malloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"sqlite3Realloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"sqlite3DbMalloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"sqlite3DbRealloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"sqlite3_malloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"sqlite3_realloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"mallocWithAlarm", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"dbMallocRawFinish", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"_PyMem_", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"PyMem_", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"_PyObject_Malloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"_PyObject_Calloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"_PyObject_Realloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"PyObject_Malloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"PyObject_Calloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"PyObject_Realloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"Perl_safesys", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"zmalloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"zcalloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"zrealloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"ztrymalloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"ztrycalloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"ztryrealloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"__malloc", SUFFIX, INTERNAL_ALLOCATOR, NULL},  // mosquitto__malloc
    {"__calloc", SUFFIX, INTERNAL_ALLOCATOR, NULL},
    {"__realloc", SUFFIX, INTERNAL_ALLOCATOR, NULL},
    {"gmalloc", EXACT, INTERNAL_ALLOCATOR, NULL},  // of Graphviz
    {"gcalloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"grealloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"CRYPTO_malloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"CRYPTO_zalloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"CRYPTO_realloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"jv_mem_", PREFIX, INTERNAL_ALLOCATOR, NULL},

    // Pools of servers: blocks of theirs are shared by all who take from them.
    {"ngx_alloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"ngx_calloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"ngx_memalign", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"ngx_palloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"ngx_pnalloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"ngx_pcalloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"ngx_pmemalign", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"apr_palloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"apr_pcalloc", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"apr_allocator_alloc", EXACT, INTERNAL_ALLOCATOR, NULL},
    {"allocator_alloc", EXACT, INTERNAL_ALLOCATOR, "libapr"},
    {"apr_pool_create", PREFIX, INTERNAL_ALLOCATOR, NULL},
    {"apr_pstr", PREFIX, INTERNAL_LIBRARY, NULL},
    {"apr_pmemdup", EXACT, INTERNAL_LIBRARY, NULL},

    // Virtual machines: how the JVM takes memory of its own, and what V8 is made of.
    {"os::malloc", PREFIX, INTERNAL_ALLOCATOR, "libjvm"},
    {"os::realloc", PREFIX, INTERNAL_ALLOCATOR, "libjvm"},
    {"AllocateHeap", PREFIX, INTERNAL_ALLOCATOR, "libjvm"},
    {"ReallocateHeap", PREFIX, INTERNAL_ALLOCATOR, "libjvm"},
    {"::operator new", SUFFIX, INTERNAL_ALLOCATOR, "libjvm"},
    {"Arena::", PREFIX, INTERNAL_ALLOCATOR, "libjvm"},
    {"Chunk::", PREFIX, INTERNAL_ALLOCATOR, "libjvm"},
    {"ChunkPool::", PREFIX, INTERNAL_ALLOCATOR, "libjvm"},
    {"resource_allocate_bytes", EXACT, INTERNAL_ALLOCATOR, "libjvm"},
    {"v8::internal::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"v8::base::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"cppgc::internal::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"Builtins_", PREFIX, INTERNAL_LIBRARY, NULL},

    // Insides of the C++ library: reserved names and allocators.
    {"__gnu_cxx::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"__cxxabiv1::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"std::_", PREFIX, INTERNAL_LIBRARY, NULL},
    {"std::allocator<", PREFIX, INTERNAL_LIBRARY, NULL},
    {"std::allocator_traits<", PREFIX, INTERNAL_LIBRARY, NULL},
    {"std::invoke", PREFIX, INTERNAL_LIBRARY, NULL},
    {"std::uninitialized_", PREFIX, INTERNAL_LIBRARY, NULL},
    {"std::thread::_", PREFIX, INTERNAL_LIBRARY, NULL},
    {"std::string::basic_string", PREFIX, INTERNAL_LIBRARY, NULL},
    {"std::wstring::basic_string", PREFIX, INTERNAL_LIBRARY, NULL},
    {"std::basic_string<", PREFIX, INTERNAL_LIBRARY, NULL},
    {"std::allocate_shared", PREFIX, INTERNAL_LIBRARY, NULL},
    {">::shared_ptr<", CONTAINS, INTERNAL_LIBRARY, NULL},
    {"std::construct_at", PREFIX, INTERNAL_LIBRARY, NULL},
    {"std::destroy_at", PREFIX, INTERNAL_LIBRARY, NULL},
    {"std::function<", PREFIX, INTERNAL_LIBRARY, NULL},
    {"std::coroutine_handle<", PREFIX, INTERNAL_LIBRARY, NULL},
    {"cairn::context_promise::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"::_M_", CONTAINS, INTERNAL_LIBRARY, NULL},
    {"::_S_", CONTAINS, INTERNAL_LIBRARY, NULL},

    // Insides of Rust's core, alloc and std.
    {"core::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"<core::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"<T as core::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"<I as core::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"<F as core::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"<&F as core::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"<&mut F as core::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"<&mut I as core::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"alloc::raw_vec::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"<alloc::raw_vec::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"alloc::slice::hack", PREFIX, INTERNAL_LIBRARY, NULL},
    {"alloc::collections::btree::node::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"<alloc::collections::btree::node::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"hashbrown::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"<hashbrown::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"::to_vec_in", SUFFIX, INTERNAL_LIBRARY, NULL},
    {"::extend_desugared", CONTAINS, INTERNAL_LIBRARY, NULL},
    {"::extend_trusted", CONTAINS, INTERNAL_LIBRARY, NULL},
    {"::append_elements", CONTAINS, INTERNAL_LIBRARY, NULL},
    {"alloc::sync::arcinner_layout", PREFIX, INTERNAL_LIBRARY, NULL},
    {"<T as alloc::slice::hack", PREFIX, INTERNAL_LIBRARY, NULL},
    {"<T as alloc::vec::spec_", PREFIX, INTERNAL_LIBRARY, NULL},
    {"::spec_from_iter", CONTAINS, INTERNAL_LIBRARY, NULL},
    {"::spec_extend", CONTAINS, INTERNAL_LIBRARY, NULL},
    {" as alloc::vec::spec_", CONTAINS, INTERNAL_LIBRARY, NULL},
    {"alloc::vec::in_place_collect", PREFIX, INTERNAL_LIBRARY, NULL},
    {" as core::ops::function::Fn", CONTAINS, INTERNAL_LIBRARY, NULL},
    {"<alloc::boxed::Box<F", PREFIX, INTERNAL_LIBRARY, NULL},
    {"alloc::boxed::box_new", EXACT, INTERNAL_LIBRARY, NULL},
    {"alloc::fmt::format::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"_capacity_in", SUFFIX, INTERNAL_LIBRARY, NULL},
    {"new_uninit_in", SUFFIX, INTERNAL_LIBRARY, NULL},
    {"new_zeroed_in", SUFFIX, INTERNAL_LIBRARY, NULL},
    {"::allocate_in", SUFFIX, INTERNAL_LIBRARY, NULL},
    {"::try_allocate_in", SUFFIX, INTERNAL_LIBRARY, NULL},
    {"std::thread::local::", PREFIX, INTERNAL_LIBRARY, NULL},

    // Executors of Rust's futures, and what libraries have in between those that await each other.
    {"tokio::runtime::builder::Builder::build", EXACT, INTERNAL_NONE, NULL},
    {"tokio::runtime::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"<tokio::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"tokio::loom::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"tokio::coop::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"tokio::park::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"tokio::util::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"tokio::macros::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"tokio::task::spawn::spawn_inner", EXACT, INTERNAL_LIBRARY, NULL},
    {"tokio::task::local::spawn_local_inner", EXACT, INTERNAL_LIBRARY, NULL},
    {"tokio::task::local::Context::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"tokio::task::local::Shared::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"tokio::task::local::<impl", PREFIX, INTERNAL_LIBRARY, NULL},
    {"tokio::task::local::LocalSet::tick", PREFIX, INTERNAL_LIBRARY, NULL},
    {"tokio::task::local::LocalSet::with", PREFIX, INTERNAL_LIBRARY, NULL},
    {"async fn tokio::task::local::LocalSet::run_until", EXACT, INTERNAL_LIBRARY, NULL},
    {"async_executor::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"async fn async_executor::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"async_task::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"<async_task::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"futures_executor::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"futures_lite::future::block_on", PREFIX, INTERNAL_LIBRARY, NULL},
    {"<futures_lite::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"<futures_util::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"<T as futures_util::", PREFIX, INTERNAL_LIBRARY, NULL},
    {"futures_util::stream::stream::StreamExt::poll_", PREFIX, INTERNAL_LIBRARY, NULL},
    {"futures_util::future::future::FutureExt::poll_", PREFIX, INTERNAL_LIBRARY, NULL},
    {"std::rt::init", PREFIX, INTERNAL_START, NULL},
    {"std::rt::lang_start", PREFIX, INTERNAL_START, NULL},
    {"std::panicking::", PREFIX, INTERNAL_START, NULL},
    {"std::panic::catch_unwind", PREFIX, INTERNAL_START, NULL},
    {"__rust_try", EXACT, INTERNAL_START, NULL},
    {"__rust_begin_short_backtrace", CONTAINS, INTERNAL_START, NULL},
    {"std::thread::Builder::spawn_unchecked", PREFIX, INTERNAL_START, NULL},
    {"std::thread::lifecycle::", PREFIX, INTERNAL_START, NULL},
    {"std::sys::thread::", PREFIX, INTERNAL_START, NULL},
    {"<std::sys::thread::", PREFIX, INTERNAL_START, NULL},
    {"std::sys::unix::thread::", PREFIX, INTERNAL_START, NULL},
    {"std::sys::pal::unix::thread::", PREFIX, INTERNAL_START, NULL},

    // How processes and threads begin, and the loops that call all that a server does.
    {"uv_run", EXACT, INTERNAL_START, NULL},
    {"event_base_loop", EXACT, INTERNAL_START, "libevent"},
    {"g_main_", PREFIX, INTERNAL_START, "libglib-2.0"},
    {"_start", EXACT, INTERNAL_START, NULL},
    {"__libc_start_", PREFIX, INTERNAL_START, NULL},  // main, call_main
    {"__libc_csu_init", EXACT, INTERNAL_START, NULL},
    {"clone", EXACT, INTERNAL_START, "libc"},
    {"__clone", EXACT, INTERNAL_START, "libc"},
    {"clone3", EXACT, INTERNAL_START, "libc"},
    {"__clone3", EXACT, INTERNAL_START, "libc"},
    {"start_thread", EXACT, INTERNAL_START, "libc"},
    {"clone", EXACT, INTERNAL_START, "libpthread"},
    {"start_thread", EXACT, INTERNAL_START, "libpthread"},
    {"call_init", EXACT, INTERNAL_START, "ld-"},
    {"_dl_init", EXACT, INTERNAL_START, "ld-"},
    {"_dl_start_user", EXACT, INTERNAL_START, "ld-"},
    {"_dl_catch_e", PREFIX, INTERNAL_START, NULL},  // exception, error

    // How interpreters begin.
    {"Py_BytesMain", EXACT, INTERNAL_START, NULL},
    {"Py_RunMain", EXACT, INTERNAL_START, NULL},
    {"pymain_", PREFIX, INTERNAL_START, NULL},
    {"_PyRun_", PREFIX, INTERNAL_START, NULL},
    {"run_mod", EXACT, INTERNAL_START, "python3"},
    {"run_eval_code_obj", EXACT, INTERNAL_START, "python3"},
    {"run_mod", EXACT, INTERNAL_START, "libpython3"},
    {"run_eval_code_obj", EXACT, INTERNAL_START, "libpython3"},
    {NULL, EXACT, INTERNAL_START, "<frozen importlib"},
    // How runners of Python's tests call them, and Django a view.
    {NULL, EXACT, INTERNAL_START, "/unittest/case.py"},
    {NULL, EXACT, INTERNAL_START, "/unittest/suite.py"},
    {NULL, EXACT, INTERNAL_START, "/unittest/runner.py"},
    {NULL, EXACT, INTERNAL_START, "/unittest/main.py"},
    {NULL, EXACT, INTERNAL_START, "/pluggy/"},
    {NULL, EXACT, INTERNAL_START, "/_pytest/"},
    {"Thread.", PREFIX, INTERNAL_START, "/threading.py"},
    {"SimpleTestCase._", PREFIX, INTERNAL_START, "/django/test/testcases.py"},
    {NULL, EXACT, INTERNAL_START, "/django/test/runner.py"},
    {NULL, EXACT, INTERNAL_LIBRARY, "/django/test/client.py"},
    {"instrumented_test_render", EXACT, INTERNAL_LIBRARY, "/django/test/utils.py"},
    {NULL, EXACT, INTERNAL_START, "/django/core/management/__init__.py"},
    {"BaseCommand.", PREFIX, INTERNAL_START, "/django/core/management/base.py"},
    {"Command.", PREFIX, INTERNAL_START, "/django/core/management/commands/test.py"},
    {"get_response", CONTAINS, INTERNAL_LIBRARY, "/django/core/handlers/base.py"},
    {NULL, EXACT, INTERNAL_LIBRARY, "/django/core/handlers/exception.py"},
    {"WSGIHandler.__call__", EXACT, INTERNAL_LIBRARY, "/django/core/handlers/wsgi.py"},
    {"MiddlewareMixin.__call__", EXACT, INTERNAL_LIBRARY, "/django/utils/deprecation.py"},
    {"Node", PREFIX, INTERNAL_LIBRARY, "/django/template/base.py"},
    {"node::Start", EXACT, INTERNAL_START, NULL},
    {"node::SpinEventLoop", PREFIX, INTERNAL_START, NULL},
    {"node::NodeMainInstance::Run", PREFIX, INTERNAL_START, NULL},
    // CPython, HotSpot, CoreCLR, PHP and Ruby themselves, which are also linked into servers.
    {NULL, EXACT, INTERNAL_PYTHON, "python3"},
    {NULL, EXACT, INTERNAL_PYTHON, "libpython3"},
    {NULL, EXACT, INTERNAL_PYTHON, "libjvm"},
    {NULL, EXACT, INTERNAL_PYTHON, "libcoreclr"},
    {NULL, EXACT, INTERNAL_PYTHON, "libclrjit"},
    {NULL, EXACT, INTERNAL_PYTHON, "php"},
    {NULL, EXACT, INTERNAL_PYTHON, "php8"},
    {NULL, EXACT, INTERNAL_PYTHON, "libphp"},
    {NULL, EXACT, INTERNAL_PYTHON, "libphp8"},
    {NULL, EXACT, INTERNAL_PYTHON, "ruby"},
    {NULL, EXACT, INTERNAL_PYTHON, "ruby3"},
    {NULL, EXACT, INTERNAL_PYTHON, "libruby"},
    // What V8 and node pass through on the way to JavaScript.
    {"v8::", PREFIX, INTERNAL_PYTHON, NULL},
    {"node::InternalMakeCallback", PREFIX, INTERNAL_PYTHON, NULL},
    {"node::MakeCallback", PREFIX, INTERNAL_PYTHON, NULL},
    {"node::AsyncWrap::MakeCallback", PREFIX, INTERNAL_PYTHON, NULL},
    {"node::CallbackScope::", PREFIX, INTERNAL_PYTHON, NULL},
    {"node::InternalCallbackScope::", PREFIX, INTERNAL_PYTHON, NULL},
    {"node::ExecuteBootstrapper", PREFIX, INTERNAL_PYTHON, NULL},
    {"node::StartExecution", PREFIX, INTERNAL_PYTHON, NULL},
    {"node::LoadEnvironment", PREFIX, INTERNAL_PYTHON, NULL},
    {"node::builtins::", PREFIX, INTERNAL_PYTHON, NULL},
    {"node::Realm::", PREFIX, INTERNAL_PYTHON, NULL},
    // How Go and C call each other.
    {"runtime.asmcgocall", EXACT, INTERNAL_LIBRARY, NULL},
    {"runtime.cgocall", PREFIX, INTERNAL_LIBRARY, NULL},  // and cgocallback, cgocallbackg1
    {"crosscall2", EXACT, INTERNAL_LIBRARY, NULL},
    {"_cgoexp_", PREFIX, INTERNAL_LIBRARY, NULL},
    {"runtime.goexit", EXACT, INTERNAL_START, NULL},
    {"runtime.mstart", PREFIX, INTERNAL_START, NULL},
};

const size_t internal_rule_count = sizeof internal_rules / sizeof internal_rules[0];

// The user's rules, and the lines that they point into.
static ARRAY(struct internal_rule) own_rules;
static ARRAY(char *) own_lines;

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(end), whole = strlen(text);
    return whole >= length && !strcmp(text + whole - length, end);
}

// "libc" is the library of that name, not the beginning of "libcurl"; "/unittest/case.py" is the
// end of a path, and "/pluggy/" a directory in it.
static bool is_module(const char *path, const char *module) {
    if (!path) return false;
    size_t length = strlen(module);
    if (*module == '/')
        return module[length - 1] == '/' ? strstr(path, module) != NULL : ends_with(path, module);
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    if (strncmp(file, module, length) != 0) return false;
    return module[length - 1] == '-' || strchr("._-", file[length]);
}

static bool name_matches(const struct internal_rule *rule, const char *function) {
    switch (rule->match) {
    case EXACT:
        return !strcmp(function, rule->pattern);
    case PREFIX:
        return !strncmp(function, rule->pattern, strlen(rule->pattern));
    case SUFFIX:
        return ends_with(function, rule->pattern);
    case CONTAINS:
        return strstr(function, rule->pattern) != NULL;
    }
    return false;
}

static bool rule_matches(const struct internal_rule *rule, const char *function,
                         const char *module_path) {
    if (rule->module && !is_module(module_path, rule->module)) return false;
    return !rule->pattern || (function && name_matches(rule, function));
}

static const char *const kind_words[] = {[INTERNAL_NONE] = "show",
                                         [INTERNAL_ALLOCATOR] = "allocator",
                                         [INTERNAL_LIBRARY] = "library",
                                         [INTERNAL_START] = "start",
                                         [INTERNAL_PYTHON] = "python"};

static bool read_kind(const char *word, size_t length, enum internal_kind *kind) {
    for (size_t i = 0; i < sizeof kind_words / sizeof *kind_words; i++) {
        if (strlen(kind_words[i]) != length || strncmp(kind_words[i], word, length) != 0) continue;
        *kind = (enum internal_kind)i;
        return true;
    }
    return false;
}

// "NAME", "NAME*", "*NAME", "*NAME*"; a lone "*" is every function.
static void read_pattern(char *pattern, struct internal_rule *rule) {
    size_t length = strlen(pattern);
    bool has_start = length > 1 && pattern[0] == '*';
    bool has_end = length > 1 && pattern[length - 1] == '*';
    static const enum internal_match matches[2][2] = {{EXACT, PREFIX}, {SUFFIX, CONTAINS}};
    if (has_end) pattern[length - 1] = 0;
    rule->match = matches[has_start][has_end];
    rule->pattern = strcmp(pattern, "*") ? pattern + has_start : NULL;
}

// "KIND PATTERN [in MODULE]"; the rule keeps pointers into the line.
static bool read_rule(char *line, struct internal_rule *rule, struct error *error) {
    size_t word = strcspn(line, " \t");
    char *pattern = line + word + strspn(line + word, " \t"), *module = strstr(pattern, " in ");
    *rule = (struct internal_rule){0};
    if (!read_kind(line, word, &rule->kind))
        return error_set(error, "\"%.*s\" is not allocator, library, start, python or show",
                         (int)word, line);
    if (module) {
        *module = 0;
        rule->module = module + strlen(" in ");
    }
    if (!*pattern || (rule->module && !*rule->module))
        return error_set(error, "no name of a function or module");
    read_pattern(pattern, rule);
    return true;
}

// Both live as long as the process.
static bool load_line(const char *text, struct error *error) {
    char **line = array_push(&own_lines);
    struct internal_rule *rule = array_push(&own_rules);
    if (!line || !rule || !(*line = strdup(text))) return error_set(error, "no memory for rules");
    return read_rule(*line, rule, error);
}

bool internal_load(const char *path, struct error *error) {
    FILE *file = fopen(path, "re");
    if (!file) return error_set(error, "%s: %s", path, strerror(errno));
    char *line = NULL;
    size_t size = 0, number = 0;
    bool is_ok = true;
    while (is_ok && getline(&line, &size, file) > 0) {
        number++;
        size_t length = strcspn(line, "\r\n");
        while (length && isblank((unsigned char)line[length - 1])) length--;
        line[length] = 0;
        const char *start = line + strspn(line, " \t");
        if (*start && *start != '#') is_ok = load_line(start, error);
    }
    free(line);
    fclose(file);
    return is_ok || error_wrap(error, "%s:%zu", path, number);
}

enum internal_kind internal_kind_of(const char *function, const char *module_path) {
    for (size_t i = 0; i < own_rules.count; i++)
        if (rule_matches(&own_rules.items[i], function, module_path))
            return own_rules.items[i].kind;
    for (size_t i = 0; i < internal_rule_count; i++)
        if (rule_matches(&internal_rules[i], function, module_path)) return internal_rules[i].kind;
    return INTERNAL_NONE;
}

static bool begins_with_any(const char *text, const char *const *beginnings) {
    for (; *beginnings; beginnings++)
        if (!strncmp(text, *beginnings, strlen(*beginnings))) return true;
    return false;
}

bool internal_is_runtime(const char *module_path) {
    static const char *const modules[] = {"libc", "libstdc++", "libc++", "libpthread", "ld-", NULL};
    for (const char *const *module = modules; *module; module++)
        if (is_module(module_path, *module)) return true;
    return false;
}

bool internal_is_library(const char *function, const char *file) {
    static const char *const names[] = {"std::",   "<std::",         "core::",      "<core::",
                                        "alloc::", "<alloc::",       "__gnu_cxx::", "std.",
                                        "object.", "core.internal.", NULL};
    static const char *const sources[] = {"/usr/include/", "/usr/lib/", "/usr/share/", "/rustc/",
                                          "/rust/deps/",   "/nix/",     "/gnu/",       NULL};
    if (function && begins_with_any(function, names)) return true;
    if (!file) return false;
    return begins_with_any(file, sources) || strstr(file, "/rustlib/src/") ||
           strstr(file, "/.cargo/registry/");
}

bool internal_is_hidden(const char *function, const char *module_path) {
    return internal_kind_of(function, module_path) != INTERNAL_NONE;
}

size_t internal_first_shown(const struct internal_frame *frames, size_t frame_count) {
    size_t best = frame_count ? frame_count - 1 : 0;
    bool has_best = false;
    for (size_t i = 0; i < frame_count; i++) {
        enum internal_kind kind = internal_kind_of(frames[i].function, frames[i].module_path);
        if (kind == INTERNAL_NONE) return i;
        if (kind == INTERNAL_ALLOCATOR || has_best) continue;
        best = i;
        has_best = true;
    }
    return best;
}
