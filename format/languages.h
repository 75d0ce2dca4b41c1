// SPDX-License-Identifier: Apache-2.0
// The versions of each language whose frames the library reads: it decides by them, and the tool
// says by them why others are missing.
#ifndef CAIRN_LANGUAGES_H
#define CAIRN_LANGUAGES_H

#include <stdint.h>

// The versions of CPython whose frames the library reads, as Py_Version without its lower half.
#define CAIRN_PYTHON_FIRST 0x03080000u
#define CAIRN_PYTHON_LAST 0x030f0000u
#define CAIRN_PYTHON_READ "CPython 3.8 to 3.15"

static inline _Bool cairn_python_is_read(uint32_t version) {
    const uint32_t lower_half = 0xffff;
    return version >= CAIRN_PYTHON_FIRST && (version & ~lower_half) <= CAIRN_PYTHON_LAST;
}

// The JDKs whose frames the library reads, and one that does not say which it is.
#define CAIRN_JAVA_READ "JDK 17, 21 and 25"
#define CAIRN_JAVA_UNKNOWN UINT16_MAX

static inline _Bool cairn_java_is_read(uint32_t version) {
    return version == 17 || version == 21 || version == 25;
}

// Go whose frames the library reads, its minor version, and one that does not say which it is.
#define CAIRN_GO_FIRST 18u
#define CAIRN_GO_UNKNOWN UINT16_MAX

// V8 whose frames the library reads, as major << 8 | minor; each was compared with its own stacks.
#define CAIRN_JS_READ "10.2, 11.3 and 13.6 (Node 18, 20 and 24)"

static inline _Bool cairn_js_is_read(uint32_t version) {
    const uint32_t of_node_18 = 10u << 8 | 2u, of_node_20 = 11u << 8 | 3u;
    const uint32_t of_node_24 = 13u << 8 | 6u;
    return version == of_node_18 || version == of_node_20 || version == of_node_24;
}

// PHP whose frames the library reads, as major << 8 | minor, and one that does not say which it is,
// or is built for threads.
#define CAIRN_PHP_READ "8.2 and 8.4"
#define CAIRN_PHP_UNKNOWN UINT16_MAX

static inline _Bool cairn_php_is_read(uint32_t version) {
    return version == (8u << 8 | 2u) || version == (8u << 8 | 4u);
}

// Ruby (MRI) whose frames the library reads, as major << 8 | minor, and one that does not say which
// it is, or keeps its threads in a way that is not known.
#define CAIRN_RUBY_READ "3.1"
#define CAIRN_RUBY_UNKNOWN UINT16_MAX

static inline _Bool cairn_ruby_is_read(uint32_t version) {
    return version == (3u << 8 | 1u);
}

#endif
