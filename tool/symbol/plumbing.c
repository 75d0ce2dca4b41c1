// SPDX-License-Identifier: Apache-2.0
// The table of plumbing, one rule a row. Rules without a module hold everywhere: an allocator is
// one wherever it is linked in. Names that a program may well use itself (clone, start_thread)
// count only inside libc, and a module rule without a name stands for the whole library.
//
// Public functions of containers (std::vector<T>::push_back) are not plumbing: they say what the
// memory is for. What they call is.
#include "tool/symbol/plumbing.h"

#include <string.h>

enum match { EXACT, PREFIX, CONTAINS };

struct rule {
    const char *pattern;
    enum match match;
    enum plumbing_kind kind;
    const char *module;  // beginning of the module's file name; NULL: any module
};

static const struct rule rules[] = {
    // The allocation functions of C, as programs and other allocators name them.
    {"malloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"free", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"cfree", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"calloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"realloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"reallocarray", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"posix_memalign", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"aligned_alloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"memalign", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"valloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"pvalloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"free_sized", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"free_aligned_sized", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"__libc_malloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"__libc_free", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"__libc_calloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"__libc_realloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"__libc_reallocarray", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"__libc_memalign", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"__GI___libc_", PREFIX, PLUMBING_ALLOCATOR, "libc"},
    {"__posix_memalign", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"_mid_memalign", EXACT, PLUMBING_ALLOCATOR, "libc"},
    {"_int_malloc", EXACT, PLUMBING_ALLOCATOR, "libc"},
    {"_int_realloc", EXACT, PLUMBING_ALLOCATOR, "libc"},
    {"sysmalloc", EXACT, PLUMBING_ALLOCATOR, "libc"},
    {"tcache_init", EXACT, PLUMBING_ALLOCATOR, "libc"},
    {NULL, EXACT, PLUMBING_ALLOCATOR, "libjemalloc"},
    {NULL, EXACT, PLUMBING_ALLOCATOR, "libtcmalloc"},
    {NULL, EXACT, PLUMBING_ALLOCATOR, "libmimalloc"},
    {NULL, EXACT, PLUMBING_ALLOCATOR, "libcairn"},

    // C++ operators; "operator new" is also the beginning of "operator new[]".
    {"operator new", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"operator delete", PREFIX, PLUMBING_ALLOCATOR, NULL},

    // Rust's allocator entries.
    {"__rust_alloc", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"__rust_realloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"__rust_dealloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"__rdl_", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"__rg_", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"__rustc::__r", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"alloc::alloc::", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"<alloc::alloc::Global", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"std::alloc::", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"<std::alloc::System", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"std::sys::alloc::", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"std::sys::unix::alloc::", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"std::sys::pal::unix::alloc::", PREFIX, PLUMBING_ALLOCATOR, NULL},

    // Wrappers of well-known programs and libraries: every allocation passes through them, so
    // they tell nothing.
    {"xmalloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"xcalloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"xrealloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"xzalloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"xmallocz", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"do_xmalloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"do_xmallocz", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"g_malloc", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"g_try_malloc", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"g_realloc", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"g_try_realloc", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"g_slice_alloc", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"sqlite3MemMalloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"sqlite3MemRealloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"sqlite3Malloc", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"sqlite3Realloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"sqlite3DbMalloc", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"sqlite3DbRealloc", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"sqlite3_malloc", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"sqlite3_realloc", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"mallocWithAlarm", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"dbMallocRawFinish", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"_PyMem_", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"PyMem_", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"_PyObject_Malloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"_PyObject_Calloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"_PyObject_Realloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"PyObject_Malloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"PyObject_Calloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"PyObject_Realloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"Perl_safesys", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"zmalloc", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"zcalloc", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"zrealloc", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"ztrymalloc", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"ztrycalloc", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"ztryrealloc", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"CRYPTO_malloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"CRYPTO_zalloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"CRYPTO_realloc", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"jv_mem_", PREFIX, PLUMBING_ALLOCATOR, NULL},
    {"uv__malloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"uv__calloc", EXACT, PLUMBING_ALLOCATOR, NULL},
    {"uv__realloc", EXACT, PLUMBING_ALLOCATOR, NULL},

    // Insides of the C++ library: reserved names and allocators.
    {"__gnu_cxx::", PREFIX, PLUMBING_LIBRARY, NULL},
    {"__cxxabiv1::", PREFIX, PLUMBING_LIBRARY, NULL},
    {"std::_", PREFIX, PLUMBING_LIBRARY, NULL},
    {"std::allocator<", PREFIX, PLUMBING_LIBRARY, NULL},
    {"std::allocator_traits<", PREFIX, PLUMBING_LIBRARY, NULL},
    {"std::invoke", PREFIX, PLUMBING_LIBRARY, NULL},
    {"std::uninitialized_", PREFIX, PLUMBING_LIBRARY, NULL},
    {"std::thread::_", PREFIX, PLUMBING_LIBRARY, NULL},
    {"::_M_", CONTAINS, PLUMBING_LIBRARY, NULL},
    {"::_S_", CONTAINS, PLUMBING_LIBRARY, NULL},

    // Insides of Rust's core, alloc and std.
    {"core::", PREFIX, PLUMBING_LIBRARY, NULL},
    {"<core::", PREFIX, PLUMBING_LIBRARY, NULL},
    {"<T as core::", PREFIX, PLUMBING_LIBRARY, NULL},
    {"<I as core::", PREFIX, PLUMBING_LIBRARY, NULL},
    {"<F as core::", PREFIX, PLUMBING_LIBRARY, NULL},
    {"<&F as core::", PREFIX, PLUMBING_LIBRARY, NULL},
    {"<&mut F as core::", PREFIX, PLUMBING_LIBRARY, NULL},
    {"<&mut I as core::", PREFIX, PLUMBING_LIBRARY, NULL},
    {"alloc::raw_vec::", PREFIX, PLUMBING_LIBRARY, NULL},
    {"<alloc::raw_vec::", PREFIX, PLUMBING_LIBRARY, NULL},
    {"alloc::slice::hack", PREFIX, PLUMBING_LIBRARY, NULL},
    {"<T as alloc::slice::hack", PREFIX, PLUMBING_LIBRARY, NULL},
    {"<T as alloc::vec::spec_", PREFIX, PLUMBING_LIBRARY, NULL},
    {"::spec_from_iter", CONTAINS, PLUMBING_LIBRARY, NULL},
    {"::spec_extend", CONTAINS, PLUMBING_LIBRARY, NULL},
    {"alloc::boxed::box_new", EXACT, PLUMBING_LIBRARY, NULL},
    {"std::rt::lang_start", PREFIX, PLUMBING_START, NULL},
    {"std::panicking::", PREFIX, PLUMBING_START, NULL},
    {"std::panic::catch_unwind", PREFIX, PLUMBING_START, NULL},
    {"__rust_try", EXACT, PLUMBING_START, NULL},
    {"__rust_begin_short_backtrace", CONTAINS, PLUMBING_START, NULL},
    {"std::sys::thread::", PREFIX, PLUMBING_START, NULL},
    {"std::sys::unix::thread::", PREFIX, PLUMBING_START, NULL},
    {"std::sys::pal::unix::thread::", PREFIX, PLUMBING_START, NULL},

    // How processes and threads begin.
    {"_start", EXACT, PLUMBING_START, NULL},
    {"__libc_start_main", PREFIX, PLUMBING_START, NULL},
    {"__libc_start_call_main", EXACT, PLUMBING_START, NULL},
    {"__libc_csu_init", EXACT, PLUMBING_START, NULL},
    {"clone", EXACT, PLUMBING_START, "libc"},
    {"__clone", EXACT, PLUMBING_START, "libc"},
    {"clone3", EXACT, PLUMBING_START, "libc"},
    {"__clone3", EXACT, PLUMBING_START, "libc"},
    {"start_thread", EXACT, PLUMBING_START, "libc"},
    {"clone", EXACT, PLUMBING_START, "libpthread"},
    {"start_thread", EXACT, PLUMBING_START, "libpthread"},
    {"call_init", EXACT, PLUMBING_START, "ld-"},
    {"_dl_init", EXACT, PLUMBING_START, "ld-"},
    {"_dl_start_user", EXACT, PLUMBING_START, "ld-"},
    {"_dl_catch_exception", EXACT, PLUMBING_START, NULL},
    {"_dl_catch_error", EXACT, PLUMBING_START, NULL},
};

// "libc" is the library of that name, not the beginning of "libcurl".
static bool is_module(const char *path, const char *module) {
    if (!path) return false;
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    size_t length = strlen(module);
    if (strncmp(file, module, length) != 0) return false;
    return module[length - 1] == '-' || strchr("._-", file[length]);
}

static bool rule_matches(const struct rule *rule, const char *function, const char *module_path) {
    if (rule->module && !is_module(module_path, rule->module)) return false;
    if (!rule->pattern) return true;
    if (!function) return false;
    switch (rule->match) {
    case EXACT:
        return !strcmp(function, rule->pattern);
    case PREFIX:
        return !strncmp(function, rule->pattern, strlen(rule->pattern));
    case CONTAINS:
        return strstr(function, rule->pattern) != NULL;
    }
    return false;
}

enum plumbing_kind plumbing_kind_of(const char *function, const char *module_path) {
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rule_matches(&rules[i], function, module_path)) return rules[i].kind;
    return PLUMBING_NONE;
}

bool plumbing_is_hidden(const char *function, const char *module_path) {
    return plumbing_kind_of(function, module_path) != PLUMBING_NONE;
}

size_t plumbing_first_shown(const struct plumbing_frame *frames, size_t frame_count) {
    size_t best = frame_count ? frame_count - 1 : 0;
    bool has_best = false;
    for (size_t i = 0; i < frame_count; i++) {
        enum plumbing_kind kind = plumbing_kind_of(frames[i].function, frames[i].module_path);
        if (kind == PLUMBING_NONE) return i;
        if (kind == PLUMBING_ALLOCATOR || has_best) continue;
        best = i;
        has_best = true;
    }
    return best;
}
