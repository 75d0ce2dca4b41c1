# SPDX-License-Identifier: Apache-2.0
# A program with the tables that the linker of Go writes (runtime's pclntab and moduledata), and nothing else: two
# functions of 64 bytes, in the first of which a third one is inlined. FORM is the first byte of the table: 0xf0 of Go
# 1.18, 0xf1 of 1.20 and later. TEXTLESS: later ones do not say in the table where the code begins. For
# tests/unit/tool/symbol/go_table_test.c, and a seed of the fuzzer of symbols (dev/fuzz-seeds.sh).
    .text
text:
    .skip 128
text_end:

    .section .go.buildinfo, "a"
    .ascii "\377 Go buildinf:\010\002"

    .section .rodata, "a"
    .balign 8
table:
    .byte FORM, 0xff, 0xff, 0xff, 0, 0, 1, 8
    .quad 2, 1
.ifdef TEXTLESS
    .quad 0
.else
    .quad text
.endif
    .quad names - table, units - table, files - table, values - table, functions - table
names:
    .byte 0
name_outer: .asciz "main.outer"
name_plain: .asciz "main.plain"
name_inner: .asciz "main.inner[...]"
    .balign 4
units:
    .long file_one - files
files:
    .byte 0
file_one: .asciz "/src/main.go"

# Steps of a value, doubled, those downwards less one, and how far it holds; it begins as -1.
values:
    .byte 0
of_file: .byte 2, 64, 0
lines_outer: .byte 22, 16, 40, 16, 35, 32, 0
lines_plain: .byte 102, 64, 0
inlined_outer: .byte 0, 16, 2, 16, 1, 32, 0
    .balign 4
functions:
    .long 0, outer - functions, 64, plain - functions, 128

.macro record start, name, lines, lists, parts
    .long \start, \name - names, 0, 0, 0, of_file - values, \lines - values, \lists, 0
.if FORM == 0xf1
    .long 7
.endif
    .byte 0, 0, 0, \parts
.endm
    .balign 4
outer:
    record 0, name_outer, lines_outer, 3, 4
    .long 0, 0, inlined_outer - values
    .long -1, -1, -1, calls - inlined
plain:
    record 64, name_plain, lines_plain, 0, 0
    .balign 8
inlined:
    .quad 0
calls:
.if FORM == 0xf1
    .long 0, name_inner - names, 8, 29
.else
    .long 0, 0, 0, name_inner - names, 8
.endif

    .section .data
    .balign 8
module:
    .quad table, names
    .skip 8 * 8
    .quad values
    .skip 8 * 5
    .quad functions
    .skip 8 * 3
    .quad text, text_end, text, text_end
.ifdef TEXTLESS
    .skip 8 * 19
.elseif FORM == 0xf1
    .skip 8 * 16
.else
    .skip 8 * 14
.endif
    .quad inlined
