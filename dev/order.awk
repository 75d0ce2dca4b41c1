# SPDX-License-Identifier: Apache-2.0
# The linker's own script for libraries, in which the functions that runtime/order.txt names come first in .text, and
# constants lie beside the headers that the dynamic linker reads anyway, not beside unwind information that nobody
# does. Zeroed variables follow the others without a gap; those that are APART, or have pages of their own, come behind
# them. How it is called: the Makefile. What gcc's linker does not say in this form stays as it is.
FNR == NR {
    if (/^[a-z_]/) usual = usual "    *(.text." $1 " .text." $1 ".* .text.startup." $1 " .text.exit." $1 " .text.unlikely." $1 " .text.unlikely." $1 ".*)\n"
    next
}
/^=====/ { is_script = !is_script; next }
!is_script { next }
/^  \.rela\.plt / { print "  .rodata : { *(.rodata .rodata.*) }" }
is_zeroed && /\.bss\.\*/ { sub(/\.bss \.bss\.\*/, ".bss") }
{ print }
is_zeroed && /\}/ { print "  .bss.apart : { *(.bss.apart) *(.bss.*) }"; is_zeroed = 0 }
/^  \.bss / { is_zeroed = 1 }
/^  \.text / { is_text = 1 }
is_text && /\{/ { printf "%s", usual; is_text = 0 }
