// SPDX-License-Identifier: Apache-2.0
// Where V8 keeps what a stack needs: by the constants that node exports for debuggers of core dumps
// (v8dbg_…), so that most is that of the very binary. What these do not say (flags of a ScopeInfo,
// compiled code, its translations) is in a table of the versions that were tried; another one is
// not read.
#ifndef RUNTIME_JS_ENGINE_H
#define RUNTIME_JS_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/managed/memory.h"
#include "runtime/sys/sys.h"

// row(member, constant): offsets in bytes from the beginning of an object or from a frame pointer,
// and types of objects.
// clang-format off
#define ENGINE_ROWS(row) \
    row(smi_shift, "v8dbg_SmiShiftSize") \
    row(frame_context, "v8dbg_off_fp_context") \
    row(frame_function, "v8dbg_off_fp_function") \
    row(frame_bytecodes, "v8dbg_off_fp_bytecode_array") \
    row(frame_offset, "v8dbg_off_fp_bytecode_offset") \
    row(map_type, "v8dbg_class_Map__instance_type__uint16_t") \
    row(function_shared, "v8dbg_class_JSFunction__shared__SharedFunctionInfo") \
    row(script_name, "v8dbg_class_Script__name__Object") \
    row(script_source, "v8dbg_class_Script__source__Object") \
    row(script_line_ends, "v8dbg_class_Script__line_ends__Object") \
    row(bytecodes_data, "v8dbg_class_BytecodeArray__data__uintptr_t") \
    row(array_length, "v8dbg_class_FixedArrayBase__length__SMI") \
    row(array_data, "v8dbg_class_FixedArray__data__uintptr_t") \
    row(string_length, "v8dbg_class_String__length__int32_t") \
    row(string_one_byte, "v8dbg_class_SeqOneByteString__chars__char") \
    row(string_two_byte, "v8dbg_class_SeqTwoByteString__chars__char") \
    row(string_first, "v8dbg_class_ConsString__first__String") \
    row(string_second, "v8dbg_class_ConsString__second__String") \
    row(string_parent, "v8dbg_class_SlicedString__parent__String") \
    row(string_offset, "v8dbg_class_SlicedString__offset__SMI") \
    row(string_actual, "v8dbg_class_ThinString__actual__String") \
    row(string_resource, "v8dbg_class_ExternalString__resource__Object") \
    row(first_non_string, "v8dbg_FirstNonstringType") \
    row(string_form_mask, "v8dbg_StringRepresentationMask") \
    row(string_width_mask, "v8dbg_StringEncodingMask") \
    row(one_byte, "v8dbg_OneByteStringTag") \
    row(form_plain, "v8dbg_SeqStringTag") \
    row(form_cons, "v8dbg_ConsStringTag") \
    row(form_external, "v8dbg_ExternalStringTag") \
    row(form_sliced, "v8dbg_SlicedStringTag") \
    row(form_thin, "v8dbg_ThinStringTag") \
    row(type_shared, "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE") \
    row(type_scope, "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE") \
    row(type_script, "v8dbg_type_Script__SCRIPT_TYPE") \
    row(type_bytecodes, "v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE") \
    row(type_array, "v8dbg_type_FixedArray__FIXED_ARRAY_TYPE") \
    row(type_interpreter_data, "v8dbg_type_InterpreterData__INTERPRETER_DATA_TYPE") \
    row(type_code, "v8dbg_type_Code__CODE_TYPE") \
    row(kind_mask, "v8dbg_CodeKindFieldMask") \
    row(kind_interpreted, "v8dbg_CodeKindInterpretedFunction") \
    row(kind_baseline, "v8dbg_CodeKindBaseline")
// And under one of two names: instructions lie behind a Code until they have an object of their
// own, and tables of code are bytes like others until they are kept where programs do not reach.
#define ENGINE_RENAMED_ROWS(row) \
    row(shared_name, \
        "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_", \
        "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object") \
    row(shared_script, "v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_", \
        "v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject") \
    row(type_bytes, "v8dbg_type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE", \
        "v8dbg_type_ByteArray__BYTE_ARRAY_TYPE") \
    row(type_stream, "v8dbg_type_InstructionStream__INSTRUCTION_STREAM_TYPE", \
        "v8dbg_type_Code__CODE_TYPE") \
    row(stream_start, "v8dbg_class_InstructionStream__instruction_start__uintptr_t", \
        "v8dbg_class_Code__instruction_start__uintptr_t")
// clang-format on

struct engine_layout {
#define ENGINE_MEMBER(member, ...) int32_t member;
    ENGINE_ROWS(ENGINE_MEMBER)
    ENGINE_RENAMED_ROWS(ENGINE_MEMBER)
#undef ENGINE_MEMBER
    uint16_t version;         // major << 8 | minor
    uint64_t bytecode_sizes;  // where V8 has the sizes of its bytecodes; 0: it does not say
};

extern HIDDEN struct engine_layout engine;

enum engine_state {
    ENGINE_ABSENT,   // no V8 that exports its version
    ENGINE_UNKNOWN,  // another version, or one that lacks a constant
    ENGINE_READ,
};

// Looks for the constants. `version`: as above, or 0.
enum engine_state engine_find(uint16_t *version);

// ---- words --------------------------------------------------------------------------------------

enum { ENGINE_OBJECT_TAG = 1, ENGINE_TAG_MASK = 3 };
// Of a SharedFunctionInfo: what there is of its code.
enum { ENGINE_SHARED_DATA = 8 };
// Of a SharedFunctionInfo, with what a function is known by.
enum { ENGINE_SHARED_WORDS = 7 };
// Elements of an array beyond are not asked for: their offsets fit into 32 bits.
enum { ENGINE_ELEMENTS_MOST = 1 << 27 };

static inline bool engine_is_object(uint64_t word) {
    return (word & ENGINE_TAG_MASK) == ENGINE_OBJECT_TAG;
}

// A small number; its lower half is 0.
static inline bool engine_is_number(uint64_t word) {
    return !(uint32_t)word;
}

static inline int32_t engine_number(uint64_t word) {
    return (int32_t)(word >> 32);
}

static inline bool engine_read(struct memory_reader *memory, uint64_t object, int32_t offset,
                               uint64_t *word) {
    return engine_is_object(object) &&
           memory_read_word(memory, object - ENGINE_OBJECT_TAG + (uint64_t)(int64_t)offset, word);
}

static inline bool engine_read_half(struct memory_reader *memory, uint64_t object, int32_t offset,
                                    uint32_t *half) {
    return engine_is_object(object) &&
           memory_read_part(memory, object - ENGINE_OBJECT_TAG + (uint64_t)(int64_t)offset,
                            UINT32_MAX, half);
}

static inline bool engine_read_number(struct memory_reader *memory, uint64_t object, int32_t offset,
                                      int32_t *number) {
    uint64_t word;
    if (!engine_read(memory, object, offset, &word) || !engine_is_number(word)) return false;
    *number = engine_number(word);
    return true;
}

// The type of an object, as its map says; -1: it is none.
int32_t engine_type(struct memory_reader *memory, uint64_t object);

#endif
