// SPDX-License-Identifier: Apache-2.0
// The words in which PHP keeps the functions of malloc, past all tables of modules.
//
// With USE_ZEND_ALLOC=0 PHP allocates by functions of its own that call malloc, and frees by the
// address of free, in a struct that it has taken from malloc itself: `custom_heap` of Zend's struct
// _zend_mm_heap, for which a function returns the address. x86-64 only, where that function is one
// load; a PHP for threads has another one, and is left.
#ifndef TOOL_ATTACH_PHP_HEAP_H
#define TOOL_ATTACH_PHP_HEAP_H

#include "tool/attach/module_tables.h"
#include "tool/proc/remote.h"

enum { PHP_HEAP_FUNCTIONS = 3 };

// Finds the place of the addresses of PHP's malloc, free and realloc, which follow each other.
// `is_real` tells if a word is the address of the allocator's own function or of its hook; others
// are the module's. 0: the module is not such a PHP.
uint64_t php_heap_find(struct loaded_module *module, const struct remote *remote,
                       bool (*is_real)(const void *context, unsigned which, uint64_t word),
                       const void *context, uint64_t words[PHP_HEAP_FUNCTIONS]);

#endif
