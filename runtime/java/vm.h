// SPDX-License-Identifier: Apache-2.0
// Where HotSpot keeps what a stack needs: by the tables that libjvm exports for debuggers
// (gHotSpotVMStructs, gHotSpotVMTypes). What these do not say (the form of compiled debug
// information, words of an interpreted frame) is known of some versions (cairn_java_is_read);
// another one is not read.
#ifndef RUNTIME_JAVA_VM_H
#define RUNTIME_JAVA_VM_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sys/sys.h"

// row(member, type, field): an offset in bytes, or the address of a static field.
// clang-format off
#define VM_FIELDS(row) \
    row(major, "Abstract_VM_Version", "_vm_major_version") \
    row(thread_list, "ThreadsSMRSupport", "_java_thread_list") \
    row(list_length, "ThreadsList", "_length") \
    row(list_threads, "ThreadsList", "_threads") \
    row(thread_anchor, "JavaThread", "_anchor") \
    row(thread_stack_base, "JavaThread", "_stack_base") \
    row(os_tid, "OSThread", "_thread_id") \
    row(anchor_sp, "JavaFrameAnchor", "_last_Java_sp") \
    row(anchor_pc, "JavaFrameAnchor", "_last_Java_pc") \
    row(anchor_fp, "JavaFrameAnchor", "_last_Java_fp") \
    row(wrapper_anchor, "JavaCallWrapper", "_anchor") \
    row(call_stub_return, "StubRoutines", "_call_stub_return_address") \
    row(interpreter, "AbstractInterpreter", "_code") \
    row(queue_buffer, "StubQueue", "_stub_buffer") \
    row(queue_limit, "StubQueue", "_buffer_limit") \
    row(code_heaps, "CodeCache", "_heaps") \
    row(array_length, "GrowableArrayBase", "_len") \
    row(array_data, "GrowableArray<int>", "_data") \
    row(heap_memory, "CodeHeap", "_memory") \
    row(heap_segments, "CodeHeap", "_segmap") \
    row(heap_shift, "CodeHeap", "_log2_segment_size") \
    row(space_low, "VirtualSpace", "_low") \
    row(space_high, "VirtualSpace", "_high") \
    row(blob_name, "CodeBlob", "_name") \
    row(blob_size, "CodeBlob", "_size") \
    row(blob_frame_size, "CodeBlob", "_frame_size") \
    row(compiled_orig_pc, "nmethod", "_orig_pc_offset") \
    row(compiled_pcs, "nmethod", "_scopes_pcs_offset") \
    row(compiled_id, "nmethod", "_compile_id") \
    row(method_constant, "Method", "_constMethod") \
    row(constant_pool, "ConstMethod", "_constants") \
    row(constant_code_size, "ConstMethod", "_code_size") \
    row(constant_name, "ConstMethod", "_name_index") \
    row(pool_holder, "ConstantPool", "_pool_holder") \
    row(pool_file, "ConstantPool", "_source_file_name_index") \
    row(class_name, "Klass", "_name") \
    row(symbol_length, "Symbol", "_length") \
    row(symbol_body, "Symbol", "_body")
#define VM_SIZES(row) \
    row(constant_bytes, "ConstMethod") \
    row(pool_bytes, "ConstantPool") \
    row(block_bytes, "HeapBlock")

// row(first, last, member, type, field): those that versions of JDK have at other places. Up to 21
// a compiled method has all its parts behind it and leads to some by addresses; in 25 what is
// written once lies apart, and so does what changes.
#define VM_FIELDS_OF_SOME(row) \
    row(17, 21, thread_os, "JavaThread", "_osthread") \
    row(25, 25, thread_os, "Thread", "_osthread") \
    row(17, 17, constant_flags, "ConstMethod", "_flags") \
    row(21, 25, constant_flags, "ConstMethod", "_flags._flags") \
    row(17, 21, blob_code, "CodeBlob", "_code_begin") \
    row(25, 25, blob_code, "CodeBlob", "_code_offset") \
    row(17, 21, compiled_method, "CompiledMethod", "_method") \
    row(25, 25, compiled_method, "nmethod", "_method") \
    row(17, 21, compiled_deopt, "CompiledMethod", "_deopt_handler_begin") \
    row(25, 25, compiled_deopt, "nmethod", "_deopt_handler_offset") \
    row(17, 21, compiled_deopt_handle, "CompiledMethod", "_deopt_mh_handler_begin") \
    row(25, 25, compiled_deopt_handle, "nmethod", "_deopt_mh_handler_offset") \
    row(17, 21, compiled_scopes, "CompiledMethod", "_scopes_data_begin") \
    row(25, 25, compiled_scopes, "nmethod", "_scopes_data_offset") \
    row(17, 21, compiled_pcs_end, "nmethod", "_dependencies_offset") \
    row(17, 21, compiled_metadata, "nmethod", "_metadata_offset") \
    row(25, 25, compiled_written_once, "nmethod", "_immutable_data") \
    row(25, 25, blob_changing, "CodeBlob", "_mutable_data") \
    row(25, 25, blob_relocation_bytes, "CodeBlob", "_relocation_size")
// clang-format on

struct vm_layout {
#define VM_MEMBER(member, ...) uint64_t member;
    VM_FIELDS(VM_MEMBER)
    VM_SIZES(VM_MEMBER)
#undef VM_MEMBER
    uint64_t thread_os, constant_flags, blob_code, compiled_method;
    uint64_t compiled_deopt, compiled_deopt_handle, compiled_scopes, compiled_pcs_end;
    uint64_t compiled_metadata, compiled_written_once, blob_changing, blob_relocation_bytes;
    uint64_t version;  // of the JDK
};

extern HIDDEN struct vm_layout vm;

// Of compressed numbers (numbers.h).
static inline uint8_t vm_least_byte(void) {
    const uint64_t first_without_zero = 20;
    return vm.version >= first_without_zero;
}

enum vm_state {
    VM_ABSENT,   // no libjvm, or its tables are not made yet
    VM_UNKNOWN,  // another version, or one whose tables lack a field
    VM_READ,
};

// Looks for the tables, and takes what they say. May ask the dynamic linker. `major`: the version,
// as 17; 0: it does not say it.
enum vm_state vm_find(uint32_t *major);

#endif
