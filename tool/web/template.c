// SPDX-License-Identifier: Apache-2.0
// The assembler reads the page in; the Makefile makes this file's objects depend on it.
#include "tool/web/template.h"

__asm__(".pushsection .rodata\n"
        ".globl web_template\n"
        ".globl web_template_end\n"
        "web_template:\n"
        ".incbin \"web/report.html\"\n"
        "web_template_end:\n"
        ".byte 0\n"
        ".popsection\n");
