# SPDX-License-Identifier: Apache-2.0
# Builds cairn with plain GNU make. Sources are found by room; a new file needs no line here.
#   make                build/cairn and build/libcairn.so
#   make quick          build/quick/cairn with its libraries: for the next look at what was just edited
#   make try            record an example with two faults and print the report (PROG='...' for another one)
#   make check          everything: build, lint, unit tests, real programs; make check-quick: a selection; make check-long: more
#   make check-anywhere CONDITIONS=... TESTS=...: the tests under hostile circumstances
#   make fuzz SECONDS=N, make fuzz-afl SECONDS=N, make soak EVENTS=N, make soak-events EVENTS=N, make attach-long: the long searches
#   make bench ROUNDS=N ROWS='sqlite3|depth 20$', make bench-quick: what recording costs, beside the peers
#   make install        PREFIX=/usr/local DESTDIR= LIBDIR= ... (at the end of this file)
#   make tarball, make deb: a release's files, below build/dist; make site: the documentation as pages, build/site
#   make V=1            shows the commands
# Everything that is made lies below build/.

# Another processor than this machine's: `make ARCH=aarch64 runtime programs` (CONTRIBUTING.md).
# By clang, which is a compiler for all of them, with the libraries that Debian has for crossing.
HOST_ARCH := $(shell uname -m)
ARCH ?= $(HOST_ARCH)
IS_CROSS := $(filter-out $(HOST_ARCH),$(ARCH))
BUILD ?= build$(IS_CROSS:%=/%)
# One spelling for one place: dependency files name their objects by it.
# By subst, which leaves the blanks of a directory's name alone.
override BUILD := $(subst $(CURDIR)/,,$(abspath $(subst $(CURDIR)/,,$(BUILD))))
PREFIX ?= /usr/local
DESTDIR ?=
TOOL_VERSION = $(shell dev/commit.sh --version)
CLANG ?= clang
ifneq ($(IS_CROSS),)
# With a sysroot (dev/sysroot.sh) the tool, too; without, what needs libc alone.
SYSROOT := $(abspath $(wildcard $(BUILD)/sysroot))
CROSS := --target=$(ARCH)-linux-gnu -fuse-ld=lld -Wno-unused-command-line-argument $(if $(SYSROOT),--sysroot=$(SYSROOT) --gcc-toolchain=$(SYSROOT)/usr)
CC := $(CLANG) $(CROSS)
CXX := $(CLANG)++ $(CROSS)
endif
ifeq ($(origin CC),default)
CC := gcc
endif
# `make CC=clang CXX=clang++ BUILD=build/clang` is a build by clang alone (dev/checks.mk).
IS_CLANG := $(IS_CROSS)$(findstring clang,$(notdir $(firstword $(CC))))
PYTHON ?= python3
SECONDS ?= 60
EVENTS ?= 1000000000
WERROR ?= -Werror

Q := $(if $(V),,@)
is_silent := $(findstring s,$(firstword -$(MAKEFLAGS)))
say = $(if $(V)$(is_silent),,@echo '  $(1)' $@)

find_sources = $(sort $(shell find $(1) -name '*.c' 2>/dev/null))
TOOL_SOURCES := $(filter-out $(addprefix %_,$(addsuffix .c,$(filter-out $(ARCH),x86_64 aarch64))),$(call find_sources,tool))
# What makes allocations fail is a library of its own.
RUNTIME_SOURCES := $(filter-out runtime/torture/% runtime/bare/%,$(call find_sources,runtime))
TOOL_ROOMS := $(filter-out tool/main.c,$(TOOL_SOURCES))
# The wrapped functions themselves would replace the sanitizer's in a unit test.
RUNTIME_ROOMS := $(filter-out runtime/hook/% runtime/preload/%,$(RUNTIME_SOURCES))
HEADERS := $(sort $(shell find format tool runtime include -name '*.h' 2>/dev/null))

# snprintf cuts texts on purpose (one line of an error), so its guesses at lengths are no warning.
WARNINGS := -Wall -Wextra $(WERROR) -Wundef -Wshadow -Wno-format-truncation
ifneq ($(IS_CLANG),)
# Of gcc, the library asks for memcmp instead of bcmp; tests count on sized deletes and on every frame.
CLANG_RUNTIME := -fno-builtin-bcmp
CLANG_PROGRAMS := -fsized-deallocation -fno-optimize-sibling-calls -Wno-unknown-attributes -Wno-for-loop-analysis
CLANG_WARNINGS := $(addprefix -Wno-,unknown-warning-option sign-conversion implicit-int-conversion missing-field-initializers)
endif
COMMON := -std=gnu17 -D_GNU_SOURCE -I. -Iinclude -MMD -MP $(WARNINGS) $(CLANG_WARNINGS)
TOOL_FLAGS := $(COMMON) -O2 -g
TOOL_LIBS_x86_64 := -lZydis
PLAIN_MICROHTTPD := $(BUILD)/libmicrohttpd.a
TOOL_LIBS := -Wl,--as-needed -ldw -lelf -liberty -lzstd -llz4 -llzma -lbz2 -lz -ljansson -lsqlite3 -lpcre2-8 -lncursesw -ltinfo $(TOOL_LIBS_$(ARCH)) $(PLAIN_MICROHTTPD) -lm -pthread

# The runtime lives in other people's processes: no fortify and no stack protector (their helpers
# are missing or newer than some libc it must load on), own unwind tables for every function,
# thread-locals that fit the static surplus, and no malloc call that the compiler invented or
# folded away.
HEAP_FUNCTIONS := $(shell dev/exported-names.sh heap)
NO_BUILTINS := $(HEAP_FUNCTIONS:%=-fno-builtin-%)
# aarch64: the walker finds out of its own functions by their frame records (walk_start_of), which
# must hold plain addresses; and helpers for atomics would be another library's.
PROCESSOR_FLAGS_aarch64 := -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer \
	-mbranch-protection=none -mno-outline-atomics
RUNTIME_OPTIMIZED ?= -O2 -g
RUNTIME_BASE := $(COMMON) $(PROCESSOR_FLAGS_$(ARCH)) -Wconversion $(CLANG_WARNINGS) $(CLANG_RUNTIME) $(RUNTIME_OPTIMIZED) -fPIC -fvisibility=hidden -ftls-model=initial-exec \
	-U_FORTIFY_SOURCE -fno-stack-protector -fasynchronous-unwind-tables -fno-plt \
	-fno-tree-slp-vectorize -ffunction-sections $(NO_BUILTINS)
RUNTIME_LTO := $(if $(IS_CLANG),,-flto=auto -flto-partition=one)
RUNTIME_FLAGS := $(RUNTIME_BASE) $(RUNTIME_LTO)
EXPORTS := $(BUILD)/exports.map
VERSION_SCRIPT := -Wl,--version-script=$(EXPORTS)
# No start files: their hooks (__cxa_finalize, __gmon_start__) are of no use here and would be
# undefined symbols more. Constructors work without them.
RUNTIME_LINK := -shared -nostartfiles -Wl,-soname,libcairn.so -Wl,-z,now -Wl,-z,relro \
	-Wl,--no-undefined -Wl,--as-needed
# Functions that nearly every recorded program runs lie together (runtime/order.txt), in pieces that begin where the
# kernel's do: it maps 64 KiB around each page that is touched. A linker that is not GNU's takes the list itself, or
# leaves the order as it is.
RUNTIME_ORDER := @$(BUILD)/order.flags
COMMA := ,
LLD_ORDER := -Wl$(COMMA)--symbol-ordering-file=runtime/order.txt -Wl$(COMMA)--no-warn-symbol-ordering
# Before all others (runtime/hook/hooks.c). Not the check build: that loads libgcc as it starts, and dlopen before
# libc is initialized would initialize it without arguments and environment.
RUNTIME_FIRST := -Wl,-z,initfirst

# COVERAGE=1: counters in the place of sanitizers (dev/checks.mk), at an address that a process chooses.
COUNTED := $(if $(COVERAGE),-fprofile-instr-generate -fcoverage-mapping -mllvm -runtime-counter-relocation -Wno-unused-command-line-argument)
RUNTIME_BASE += $(COUNTED)
RUNTIME_FLAGS += $(COUNTED)
SANITIZE := $(or $(COUNTED),-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
# Pages vary: unit tests say how large those of the kernel are (runtime/sys/sys.h).
UNIT_FLAGS := $(COMMON) -O1 -g $(SANITIZE) -DCAIRN_PAGES_VARY=1
UNIT_RUNTIME_FLAGS := $(UNIT_FLAGS) -ftls-model=initial-exec $(NO_BUILTINS)
AFL_CC ?= afl-clang-fast
AFL_FLAGS := $(COMMON) -Wno-unknown-warning-option -O2 -g -fsanitize=address,undefined \
	-fno-sanitize-recover=undefined
FUZZ_FLAGS := $(COMMON) -Wno-unknown-warning-option -O2 -g1 -DCAIRN_PAGES_VARY=1 \
	$(or $(COUNTED),-fsanitize=fuzzer-no-link$(COMMA)address$(COMMA)undefined -fno-sanitize-recover=undefined)

TOOL_OBJECTS := $(TOOL_SOURCES:%.c=$(BUILD)/obj/%.o)
RUNTIME_OBJECTS := $(RUNTIME_SOURCES:%.c=$(BUILD)/obj/%.o)
# Processors on which static programs are recorded.
BARE_LIBRARY := $(if $(filter x86_64,$(ARCH)),$(BUILD)/libcairn-bare.so)
MUSL_OBJECTS := $(RUNTIME_OBJECTS:$(BUILD)/obj/%=$(BUILD)/musl/%)
# Without LTO, what never sees CAIRN_CHECK, itself or by its headers, is compiled for both builds alike, and so once.
CHECK_SOURCES := $(RUNTIME_SOURCES)
ifeq ($(RUNTIME_LTO),)
sees_check = $(shell grep -lF -e CAIRN_CHECK $(1:%=-e '"%"') $(RUNTIME_SOURCES) $(HEADERS))
all_that_see_check = $(if $(filter-out $(1),$(call sees_check,$(1))),$(call all_that_see_check,$(call sees_check,$(1))),$(1))
CHECK_SOURCES := $(filter $(RUNTIME_SOURCES),$(call all_that_see_check))
endif
CHECK_OBJECTS := $(CHECK_SOURCES:%.c=$(BUILD)/check/%.o) $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out $(CHECK_SOURCES),$(RUNTIME_SOURCES)))
UNIT_RUNTIME_OBJECTS := $(RUNTIME_ROOMS:%.c=$(BUILD)/san/%.o)
FUZZ_OBJECTS := $(TOOL_ROOMS:%.c=$(BUILD)/fuzz/%.o)
# What reads unwind information; the fuzzer stands in for the rooms below.
FUZZ_UNWIND_SOURCES := runtime/unwind/eh_frame.c runtime/unwind/expression.c
FUZZ_UNWIND_OBJECTS := $(FUZZ_UNWIND_SOURCES:%.c=$(BUILD)/fuzz/%.o)

UNIT_SOURCES := $(sort $(shell find tests/unit -name '*_test.c' 2>/dev/null))
# Files beside the tests that are no test and no program: helpers that all of them may use.
TEST_TOOLS := $(shell grep -l '^int main' tests/tools/*.c)
HELPER_SOURCES := $(filter-out %_preload.c $(TEST_TOOLS),$(wildcard tests/tools/*.c)) \
	$(filter-out %_test.c,$(call find_sources,tests/unit))
UNIT_HELPERS := $(HELPER_SOURCES:%.c=$(BUILD)/san/%.o)
FUZZ_HELPERS := $(HELPER_SOURCES:%.c=$(BUILD)/fuzz/%.o)
TEST_TOOL_PROGRAMS := $(TEST_TOOLS:tests/tools/%.c=$(BUILD)/tests/%)
UNIT_TESTS := $(UNIT_SOURCES:%.c=$(BUILD)/%)
FUZZ_SOURCES := $(wildcard tests/fuzz/*_fuzz.c)
FUZZERS := $(FUZZ_SOURCES:tests/fuzz/%.c=$(BUILD)/fuzz/%)
AFL_TARGETS := $(FUZZ_SOURCES:tests/fuzz/%_fuzz.c=$(BUILD)/afl/%_afl)
# Registers of one processor by name.
NOT_FOR_aarch64 := tests/programs/steps.c tests/programs/generated.c
NOT_FOR_x86_64 := tests/programs/moved_code.c
PROGRAM_SOURCES := $(filter-out $(NOT_FOR_$(ARCH)),$(wildcard tests/programs/*.c tests/programs/*.cc))
PROGRAM_LIBRARIES := $(patsubst tests/programs/%.c,$(BUILD)/tests/programs/%.so,\
	$(filter tests/programs/lib%,$(PROGRAM_SOURCES)))
PROGRAMS := $(patsubst tests/programs/%,$(BUILD)/tests/programs/%,\
	$(basename $(filter-out tests/programs/lib%,$(PROGRAM_SOURCES))))
TEST_PRELOADS := $(patsubst tests/tools/%_preload.c,$(BUILD)/tests/%_preload.so,\
	$(wildcard tests/tools/*_preload.c))

BENCH_PROGRAMS := $(patsubst bench/programs/%,$(BUILD)/bench/%,\
	$(patsubst %_preload.c,%_preload.so,$(filter %_preload.c,$(wildcard bench/programs/*.c))) \
	$(basename $(filter-out %_preload.c,$(wildcard bench/programs/*.c bench/programs/*.cc))))
QUICK_ROWS := ^sqlite3$$|^perl$$|^(one|256) stacks?.*(20|60)$$|producer|start

# Twins for each claim (tests/truth): a source is built once with HOLDS=1 and once with HOLDS=0 for each of its lines of flags.
TRUTH := $(patsubst tests/truth/%,$(BUILD)/tests/truth/%.built,$(wildcard tests/truth/*.c tests/truth/*.cc))

.PHONY: all quick quick-tests tools runtime deps-of-check check-long check-runtime programs tests fuzzers install install-api deps try reference check check-quick check-anywhere fuzz fuzz-afl afl-targets soak soak-events attach-long harm \
	lint tidy format bench bench-quick bench-programs bench-latency bench-reports bench-newer bench-counts clean
.DELETE_ON_ERROR:
.PRECIOUS: $(BUILD)/%.o

all: $(BUILD)/cairn $(BUILD)/cairn-replay $(BUILD)/libcairn.so $(BUILD)/libcairn-cxx.so $(BUILD)/libcairn-musl.so $(BUILD)/libcairn-torture.so $(BUILD)/libcairn_stub.a \
	$(BUILD)/libcairn_static.a $(BUILD)/libcairn_embed.a $(BARE_LIBRARY)
tools: $(BUILD)/cairn
runtime: $(BUILD)/libcairn.so $(BUILD)/libcairn-cxx.so
check-runtime: $(BUILD)/check/libcairn.so
programs: $(PROGRAMS) $(PROGRAM_LIBRARIES) $(TEST_PRELOADS) $(TRUTH)
tests: $(UNIT_TESTS) $(PROGRAMS) $(PROGRAM_LIBRARIES) $(TEST_PRELOADS) $(TRUTH) $(TEST_TOOL_PROGRAMS) bench-programs

# Renamed into place like the libraries below: another commit makes it anew, while tests may run it.
$(PLAIN_MICROHTTPD): dev/plain-microhttpd.sh
	$(call say,AR  )
	$(Q)dev/plain-microhttpd.sh '$(CC)' $@
$(BUILD)/cairn: $(TOOL_OBJECTS) | $(PLAIN_MICROHTTPD)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) -o $@.new $^ $(TOOL_LIBS)
	$(Q)mv -f $@.new $@

$(BUILD)/exports.map $(BUILD)/exports-cxx.map $(BUILD)/exports-bare.map: dev/exported-names.sh dev/runtime-symbols.allow format/heap_functions.h \
		runtime/hook/hooks.def runtime/preload/operators.def
	@mkdir -p $(@D)
	$(Q)dev/exported-names.sh --map $(filter cxx bare,$(subst -, ,$(basename $(@F)))) >$@

$(BUILD)/order.flags: runtime/order.txt dev/order.awk Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $(RUNTIME_LINK) -Wl,--verbose -o $@.so 2>/dev/null | awk -f dev/order.awk $< - >$(BUILD)/order.ld; \
		rm -f $@.so; \
		if grep -q 'text\.exit\.malloc ' $(BUILD)/order.ld; then \
			echo -Wl,-T,$(BUILD)/order.ld -Wl,-z,max-page-size=65536; \
		else echo $(if $(IS_CROSS),$(LLD_ORDER)); fi >$@

# ---- Between two edits ----
# The libraries without LTO, and the tool without optimization: an edit costs two compilations and a link or three. musl's
# flavour and what cairn torture loads are left to `make`.
# The tests' programs are found beside them as beside the whole build.
QUICK := $(BUILD)/quick
QUICK_TOOL_OBJECTS := $(TOOL_SOURCES:%.c=$(QUICK)/%.o)
QUICK_RUNTIME_OBJECTS := $(RUNTIME_OBJECTS:$(BUILD)/obj/%=$(QUICK)/%)
# Unit tests that take longer than all others together, and rarely fail: left to `make check`.
QUICK_UNIT_TESTS := $(filter-out $(patsubst !%,$(BUILD)/tests/%,$(filter !unit/%,$(file <tests/quick.txt))),$(UNIT_TESTS))
quick: $(QUICK)/cairn $(QUICK)/libcairn.so $(QUICK)/libcairn-cxx.so $(BUILD)/cairn-replay
	@ln -sfn ../tests $(QUICK)/tests
	@ln -sf ../cairn-replay $(QUICK)/cairn-replay
quick-tests: quick $(QUICK_UNIT_TESTS) $(PROGRAMS) $(PROGRAM_LIBRARIES) $(TEST_PRELOADS)
$(QUICK)/tool/cmds/gdb_script.o: tool/cmds/gdb_script.py
$(QUICK)/tool/%.o: tool/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(CPPFLAGS) $(TOOL_FLAGS) -O0 $(CFLAGS) -c -o $@ $<
$(QUICK)/runtime/%.o: runtime/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(RUNTIME_BASE) -c -o $@ $<
$(QUICK)/cairn: $(QUICK_TOOL_OBJECTS) | $(PLAIN_MICROHTTPD)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) -o $@.new $^ $(TOOL_LIBS)
	$(Q)mv -f $@.new $@
$(QUICK)/libcairn.so: $(QUICK_RUNTIME_OBJECTS) $(EXPORTS)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) $(RUNTIME_BASE) $(RUNTIME_LINK) $(RUNTIME_FIRST) $(VERSION_SCRIPT) -o $@.new $(QUICK_RUNTIME_OBJECTS)
	$(Q)mv -f $@.new $@
$(QUICK)/libcairn-cxx.so: $(QUICK_RUNTIME_OBJECTS) $(OPERATOR_OBJECTS:$(BUILD)/obj/%=$(QUICK)/%) $(BUILD)/exports-cxx.map
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) $(RUNTIME_BASE) $(RUNTIME_LINK:libcairn.so=libcairn-cxx.so) $(RUNTIME_FIRST) \
		-Wl,--version-script=$(BUILD)/exports-cxx.map -o $@.new $(filter %.o,$^)
	$(Q)mv -f $@.new $@

# Renamed into place, never written in place: programs that run have the old one mapped.
$(BUILD)/libcairn.so: $(RUNTIME_OBJECTS) $(EXPORTS) $(BUILD)/order.flags
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) $(RUNTIME_FLAGS) $(RUNTIME_LINK) $(RUNTIME_ORDER) $(RUNTIME_FIRST) $(VERSION_SCRIPT) -o $@.new $(RUNTIME_OBJECTS)
	$(Q)mv -f $@.new $@

# The same with the hooks of C++'s operator new and delete exported too (runtime/preload/operators.h).
$(BUILD)/libcairn-cxx.so: $(RUNTIME_OBJECTS) $(BUILD)/exports-cxx.map $(BUILD)/order.flags
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) $(RUNTIME_FLAGS) $(RUNTIME_LINK:libcairn.so=libcairn-cxx.so) $(RUNTIME_ORDER) $(RUNTIME_FIRST) \
		-Wl,--version-script=$(BUILD)/exports-cxx.map -o $@.new $(RUNTIME_OBJECTS)
	$(Q)mv -f $@.new $@

# With libgcc's unwinder inside, for cairn torture.
$(BUILD)/libcairn-torture.so: runtime/torture/torture.c Makefile
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) $(filter-out -flto% -MMD -MP,$(RUNTIME_FLAGS)) -MMD -MP -MF $(BUILD)/obj/torture.d -shared -static-libgcc \
		-Wl,-soname,libcairn-torture.so -Wl,-z,now -Wl,-z,relro -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -o $@.new $<
	$(Q)mv -f $@.new $@

# For processes with musl's libc that are attached to: its dlopen takes no library with initial-exec thread-locals.
# Descriptors of thread-locals (gnu2) are found by a call that changes no register and allocates nothing there. clang has
# them for x86_64 from its version 19 on: gcc makes this library beside a tool of clang's.
TLS_DESCRIPTORS_x86_64 := -mtls-dialect=gnu2
MUSL_CC := $(if $(IS_CROSS),$(CC),$(if $(IS_CLANG),gcc,$(CC)))
MUSL_FLAGS := $(filter-out -ftls-model=%,$(RUNTIME_FLAGS)) -ftls-model=global-dynamic $(TLS_DESCRIPTORS_$(ARCH)) -DCAIRN_MUSL=1
$(BUILD)/musl/runtime/%.o: runtime/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(MUSL_CC) $(MUSL_FLAGS) -c -o $@ $<
$(BUILD)/libcairn-musl.so: $(MUSL_OBJECTS) $(EXPORTS) $(BUILD)/order.flags
	$(call say,LINK)
	$(Q)$(MUSL_CC) $(LDFLAGS) $(MUSL_FLAGS) $(RUNTIME_LINK:libcairn.so=libcairn-musl.so) $(RUNTIME_ORDER) $(VERSION_SCRIPT) -o $@.new $(MUSL_OBJECTS)
	$(Q)mv -f $@.new $@

# For static programs: the same without a libc, which the tool's loader puts into them (tool/attach/bare_library.h). Its
# thread-locals are found by descriptors, as those for musl are. The room that stands in for libc is compiled without LTO
# and builtins.
BARE_TWICE := runtime/inject/attach.c runtime/process/end.c runtime/process/real.c runtime/sys/linker.c
BARE_SOURCES := $(call find_sources,runtime/bare) $(BARE_TWICE)
BARE_OBJECTS := $(BARE_SOURCES:%.c=$(BUILD)/bare/%.o)
BARE_RUNTIME := $(filter-out $(BARE_TWICE:%.c=$(BUILD)/musl/%.o),$(MUSL_OBJECTS))
BARE_FLAGS := $(filter-out -ftls-model=%,$(RUNTIME_BASE)) -ftls-model=global-dynamic $(TLS_DESCRIPTORS_$(ARCH)) -DCAIRN_BARE=1 -fno-builtin \
	-fno-tree-loop-distribute-patterns
BARE_LINK := $(RUNTIME_LINK:libcairn.so=libcairn-bare.so) -nostdlib -Wl,-Bsymbolic -Wl,--version-script=$(BUILD)/exports-bare.map
$(BUILD)/bare/runtime/%.o: runtime/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(MUSL_CC) $(BARE_FLAGS) -c -o $@ $<
$(BUILD)/libcairn-bare.so: $(BARE_RUNTIME) $(BARE_OBJECTS) $(BUILD)/exports-bare.map $(BUILD)/order.flags
	$(call say,LINK)
	$(Q)$(MUSL_CC) $(LDFLAGS) $(MUSL_FLAGS) $(BARE_LINK) $(RUNTIME_ORDER) -o $@.new $(BARE_RUNTIME) $(BARE_OBJECTS) -lgcc
	$(Q)mv -f $@.new $@

# In place of it between two edits: all of it without LTO.
QUICK_BARE_OBJECTS := $(BARE_RUNTIME:$(BUILD)/musl/%=$(BUILD)/bare/%) $(BARE_OBJECTS)
quick: $(BARE_LIBRARY:$(BUILD)/%=$(QUICK)/%)
$(QUICK)/libcairn-bare.so: $(QUICK_BARE_OBJECTS) $(BUILD)/exports-bare.map
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(MUSL_CC) $(LDFLAGS) $(BARE_FLAGS) $(BARE_LINK) -o $@.new $(QUICK_BARE_OBJECTS) -lgcc
	$(Q)mv -f $@.new $@

# What performs the calls of an event log (cairn replay): a program of its own, which allocators are preloaded to.
REPLAY_FLAGS := -std=gnu17 -D_GNU_SOURCE -I. $(WARNINGS) $(CLANG_WARNINGS) -O2 -g $(NO_BUILTINS)

$(BUILD)/cairn-replay: replay/driver.c format/replay.h Makefile
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) $(REPLAY_FLAGS) -o $@.new $< -pthread
	$(Q)mv -f $@.new $@

# For programs that use include/cairn and have linkers that want every symbol defined.
STUB_FLAGS := -std=gnu17 -D_GNU_SOURCE -Iinclude -MMD -MP $(WARNINGS) $(CLANG_WARNINGS) -O2 -fPIC -fvisibility=hidden
$(BUILD)/obj/bindings/%.o: bindings/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(STUB_FLAGS) -c -o $@ $<
$(BUILD)/libcairn_stub.a: $(BUILD)/obj/bindings/c/stub.o
	@rm -f $@
	$(call say,AR  )
	$(Q)$(AR) crsD $@ $^

# The runtime as a part of the program: one object without names that could meet the program's own.
COMMA := ,
EMPTY :=
SPACE := $(EMPTY) $(EMPTY)
STATIC_SOURCES := $(filter-out runtime/preload/% runtime/inject/% runtime/check/%,$(RUNTIME_SOURCES)) bindings/static/static.c
STATIC_OBJECTS := $(STATIC_SOURCES:%.c=$(BUILD)/static/%.o)
STATIC_FLAGS := $(RUNTIME_BASE) -fPIE -ftls-model=local-exec -include bindings/static/symbols.h $(if $(RUNTIME_LTO),-flto=auto)
STATIC_EXPORTS := cairn_api cairn_recording cairn_embed_begin cairn_embed_keep TOTAL_ALLOCS TOTAL_ALLOCATED_BYTES
static_objcopy = objcopy $(foreach name,$(HEAP_FUNCTIONS),--redefine-sym $(name)=$(1)$(name) --keep-global-symbol=$(1)$(name)) \
	$(STATIC_EXPORTS:%=--keep-global-symbol=%)
$(BUILD)/static/%.o: %.c bindings/static/symbols.h Makefile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(STATIC_FLAGS) -c -o $@ $<
$(BUILD)/static/cairn.o: $(STATIC_OBJECTS) bindings/static/text.ld
	$(call say,LINK)
	$(Q)$(CC) $(STATIC_FLAGS) -r $(if $(RUNTIME_LTO),-flinker-output=nolto-rel) -nostdlib -Wl,-T,bindings/static/text.ld -o $@ \
		$(filter %.o,$^)
$(BUILD)/static/wrapped.o: $(BUILD)/static/cairn.o
	$(Q)$(call static_objcopy,__wrap_) $< $@
$(BUILD)/static/embedded.o: $(BUILD)/static/cairn.o
	$(Q)$(call static_objcopy,cairn_embed_) $(foreach name,$(HEAP_FUNCTIONS),--redefine-sym __real_$(name)=$(name)) \
		--weaken-symbol=pvalloc $< $@  # musl has none
$(BUILD)/libcairn_static.a: $(BUILD)/static/wrapped.o
$(BUILD)/libcairn_embed.a: $(BUILD)/static/embedded.o
$(BUILD)/libcairn_static.a $(BUILD)/libcairn_embed.a:
	@rm -f $@
	$(call say,AR  )
	$(Q)$(AR) crsD $@ $^

# The check build compares fast paths with slow ones as it runs (CAIRN_CHECK).
$(BUILD)/check/libcairn.so: $(CHECK_OBJECTS) $(EXPORTS)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) $(RUNTIME_BASE) $(RUNTIME_LINK) $(VERSION_SCRIPT) -o $@.new $(CHECK_OBJECTS) -lgcc_s
	$(Q)mv -f $@.new $@

$(BUILD)/obj/tool/cmds/gdb_script.o: tool/cmds/gdb_script.py
$(BUILD)/obj/tool/%.o: tool/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(CPPFLAGS) $(TOOL_FLAGS) $(CFLAGS) -c -o $@ $<

$(BUILD)/obj/runtime/%.o: runtime/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(RUNTIME_FLAGS) -c -o $@ $<

$(BUILD)/check/runtime/%.o: runtime/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(RUNTIME_BASE) -DCAIRN_CHECK=1 -c -o $@ $<

$(BUILD)/san/runtime/%.o: runtime/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(UNIT_RUNTIME_FLAGS) -c -o $@ $<

$(BUILD)/san/tests/%.o: tests/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(UNIT_FLAGS) -c -o $@ $<

$(BUILD)/san/libruntime.a: $(UNIT_RUNTIME_OBJECTS)
$(BUILD)/san/libhelpers.a: $(UNIT_HELPERS)
$(BUILD)/san/%.a:
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR  )
	$(Q)$(AR) crsD $@ $^

$(BUILD)/tests/unit/runtime/%.o: tests/unit/runtime/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(UNIT_FLAGS) -O0 -c -o $@ $<

$(BUILD)/tests/unit/runtime/%_test: $(BUILD)/tests/unit/runtime/%_test.o $(BUILD)/san/libhelpers.a \
		$(BUILD)/san/libruntime.a | $(PLAIN_MICROHTTPD)
	$(call say,LINK)
	$(Q)$(CC) $(SANITIZE) -fuse-ld=lld -o $@ $^ -lcmocka $(TOOL_LIBS)

# The tool's have its objects from the fuzzers, which have the same sanitizers: those alone take minutes to compile.
# The tests themselves are compiled without optimization, in a third of the time, and without what guides a fuzzer.
UNIT_TEST_FLAGS = $(subst -O2,-O0,$(subst fuzzer-no-link$(COMMA),,$(FUZZ_FLAGS)))
$(BUILD)/tests/unit/%.o: tests/unit/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CLANG) $(UNIT_TEST_FLAGS) -g -c -o $@ $<
$(BUILD)/tests/unit/%_test: $(BUILD)/tests/unit/%_test.o $(BUILD)/fuzz/libhelpers.a \
		$(BUILD)/fuzz/libtool.a | $(PLAIN_MICROHTTPD)
	$(call say,LINK)
	$(Q)$(CLANG) $(SANITIZE) $(SANITIZER_APART) -fuse-ld=lld -o $@ $^ -lcmocka $(TOOL_LIBS)
# They read the table of commands, and call none: a command is the address 1 there.
UNCALLED = $(patsubst %,-Wl$(COMMA)--defsym=%=1,$(sort $(shell grep -oE '\bcmd_[a-z_]+' tool/cmds/commands.h)))
$(addprefix $(BUILD)/tests/unit/tool/,check/budgets_test cmds/parse_test query/option_rules_test query/snapshot_options_test): \
	SANITIZER_APART = $(UNCALLED)
# It looks for allocators in its own executable, where the sanitizer's would be one.
$(BUILD)/tests/unit/tool/attach/entries_test: SANITIZER_APART = -shared-libasan \
	-Wl,-rpath,$(dir $(shell $(CLANG) -print-file-name=libclang_rt.asan-$(HOST_ARCH).so))

# Programs under test call the allocator exactly as they are written, without sanitizers.
PROGRAM_FLAGS := -D_GNU_SOURCE -I. -Iinclude -MMD -MP -O1 -g -fno-builtin -Wall -Wextra $(WERROR) $(CLANG_PROGRAMS)
$(BUILD)/tests/programs/lib%.so: tests/programs/lib%.c Makefile
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) -std=gnu17 $(PROGRAM_FLAGS) -fPIC -shared -MF $@.d -MT $@ -o $@.new $<
	$(Q)mv -f $@.new $@
$(BUILD)/tests/programs/%: tests/programs/%.c Makefile
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) -std=gnu17 $(PROGRAM_FLAGS) -o $@ $< -pthread -ldl
CXX_STANDARD := c++17
$(BUILD)/tests/programs/context_tasks: CXX_STANDARD := c++20
$(BUILD)/tests/programs/%: tests/programs/%.cc Makefile
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CXX) -std=$(CXX_STANDARD) $(PROGRAM_FLAGS) -o $@ $< -pthread
$(BUILD)/tests/truth/growth_sampled.c.built: tests/truth/growth.c
$(BUILD)/tests/truth/freed_by_unnamed.c.built: tests/truth/freed_by.c
$(BUILD)/tests/truth/exact_calls.c.built: tests/truth/exact.c
$(BUILD)/tests/truth/heap.c.built: tests/truth/resident.c
$(patsubst %,$(BUILD)/tests/truth/diff_%.c.built,new gone grown shrunk not_at_peak only_at_peak): tests/truth/diff.h
$(patsubst %,$(BUILD)/tests/truth/%.c.built,remedy remedy_none remedy_unknown): tests/truth/remedy.h
$(patsubst tests/truth/%,$(BUILD)/tests/truth/%.built,$(wildcard tests/truth/now_*.c)): tests/truth/now.h
$(BUILD)/tests/truth/%.built: tests/truth/% tests/truth/ledger.h dev/build-twins.sh
	$(call say,TWIN)
	$(Q)CC='$(CC)' CXX='$(CXX)' dev/build-twins.sh $< $(@D) first
	$(Q)touch $@
$(BUILD)/tests/%_preload.so: tests/tools/%_preload.c Makefile
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(COMMON) -O2 -g -fPIC -shared $(NO_BUILTINS) -ftls-model=initial-exec -MF $@.d -MT $@ \
		-o $@.new $< -ldl
	$(Q)mv -f $@.new $@

# Of an archive they have only what they call: 0.5 s to link instead of 1.8.
$(BUILD)/obj/libtool.a: $(filter-out %/main.o,$(TOOL_OBJECTS))
	@rm -f $@
	$(call say,AR  )
	$(Q)$(AR) crsD $@ $^
$(TEST_TOOL_PROGRAMS): $(BUILD)/tests/%: tests/tools/%.c $(HELPER_SOURCES) $(BUILD)/obj/libtool.a Makefile | $(PLAIN_MICROHTTPD)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(TOOL_FLAGS) -o $@ $< $(HELPER_SOURCES) $(BUILD)/obj/libtool.a $(TOOL_LIBS)

# Rooms and files of which no fuzzer has anything are here for the unit tests alone, and compiled like those
# (UNIT_TEST_FLAGS). One that a fuzzer has all the same is sound there, without what guides it.
# Of query what adds up recordings.
QUERY_FUZZED := merged.o names.o names_frames.o recordings.o
# Of attach what reads a static program's file.
ATTACH_FUZZED := code_%.o entries.o entry_names.o executable.o static_headers.o unwind_index.o unwind_made.o
NOT_FUZZED := $(addprefix $(BUILD)/fuzz/tool/,cmds/% replay/% torture/% tui/% watch/% \
	$(addprefix query/,$(filter-out $(QUERY_FUZZED),$(notdir $(patsubst %.c,%.o,$(wildcard tool/query/*.c))))) \
	$(addprefix attach/,$(filter-out $(ATTACH_FUZZED),$(notdir $(patsubst %.c,%.o,$(wildcard tool/attach/*.c))))) \
	$(addprefix check/,budgets.o evaluate.o offenders.o) \
	$(addprefix heap/,containers.o dominators.o frames.o owner% plan.o stopped.o survey.o thread_% typed% waste% windows_%) \
	$(addprefix history/,adapters% store_append.o take.o) mcp/jobs.o mcp/loop.o \
	$(addprefix model/,follow.o live% rewrite.o) $(addprefix proc/,cgroup.o examine.o family.o remote.o threads.o) \
	$(addprefix push/,delivery.o engine.o pushing.o target.o) \
	$(addprefix render/,diff_annotate.o diff_screen.o diff_tree.o filter.o suppressions.o top_% tree_answer.o) \
	$(addprefix serve/,answers.o jobs.o page.o processes.o routes.o server.o streams.o))
# Optimization takes most of a compilation, and pays in the rooms that tests and fuzzers compute in.
FUZZ_COMPUTES := $(addprefix $(BUILD)/fuzz/tool/,$(addsuffix /%,base events glibc go import jemalloc mimalloc model proc push symbol tcmalloc types))
FUZZ_TOOL_FLAGS = $(if $(filter $(NOT_FUZZED),$@),$(UNIT_TEST_FLAGS),$(if $(filter $(FUZZ_COMPUTES),$@),$(FUZZ_FLAGS),$(subst -O2,-O0,$(FUZZ_FLAGS))))
$(BUILD)/fuzz/tool/%.o: tool/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CLANG) $(FUZZ_TOOL_FLAGS) -c -o $@ $<
$(BUILD)/fuzz/runtime/%.o: runtime/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CLANG) $(FUZZ_FLAGS) -c -o $@ $<
$(BUILD)/fuzz/cfi_fuzz: tests/fuzz/cfi_fuzz.c $(FUZZ_UNWIND_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $(filter %.c %.o,$^)
# Large blocks come from a reserve (large_blocks.c).
$(BUILD)/fuzz/large_blocks.o: tests/fuzz/large_blocks.c Makefile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CLANG) $(FUZZ_FLAGS) -c -o $@ $<
FUZZ_WRAP := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray,--wrap=free
$(BUILD)/fuzz/tests/%.o: tests/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CLANG) $(FUZZ_FLAGS) -c -o $@ $<
# Commands, and what belongs to one of them alone, are tested as programs: no unit test or fuzzer has anything of these
# files, and they are compiled for the builds of dev/checks.mk alone. One that is to be in a unit test leaves the list.
UNIT_TESTED_COMMANDS := commands core_overview_parts help manual parse reference rows_%
NOT_UNIT_TESTED := $(filter-out $(UNIT_TESTED_COMMANDS:%=$(BUILD)/fuzz/tool/cmds/%.o),$(filter $(BUILD)/fuzz/tool/cmds/%,$(FUZZ_OBJECTS))) \
	$(addprefix $(BUILD)/fuzz/tool/,$(addsuffix .o,torture/% tui/top tui/top_draw mcp/jobs mcp/loop replay/allocators replay/runner replay/script \
	$(addprefix attach/,attach bare_library entry_patch entry_wishes existing_blocks heap_copy load locals patch quiesce remote_unwind \
		session static_attach static_held static_library static_program static_start wrapped) \
	$(addprefix heap/,containers frame_variables frames owner_roots owners python_pools survey survey_other thread_data thread_locals \
		typed typed_extents typed_kinds typed_path typed_roots waste waste_drawn) \
	$(addprefix history/,adapters adapters_framework benchmarks store_append take) \
	$(addprefix query/,heap_report heap_views kept_looks log_ages look_answer removed_files top_session) \
	$(addprefix render/,diff_annotate diff_tree heap_answer top_processes) \
	$(addprefix serve/,answers jobs page processes routes server streams) \
	$(addprefix watch/,bands cgroup_processes job library limits) base/entry check/gone))
UNTESTED_OBJECTS := $(filter $(NOT_UNIT_TESTED),$(FUZZ_OBJECTS))
# Of an archive, a program has only what it calls; and bfd takes a multiple of lld's time for it.
$(BUILD)/fuzz/libtool.a: $(filter-out $(UNTESTED_OBJECTS),$(FUZZ_OBJECTS))
$(BUILD)/fuzz/libhelpers.a: $(FUZZ_HELPERS)
$(BUILD)/fuzz/libtool.a $(BUILD)/fuzz/libhelpers.a:
	@rm -f $@
	$(call say,AR  )
	$(Q)$(AR) crsD $@ $^
$(BUILD)/fuzz/%_fuzz: tests/fuzz/%_fuzz.c $(BUILD)/fuzz/large_blocks.o $(BUILD)/fuzz/libtool.a | $(PLAIN_MICROHTTPD)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CLANG) $(FUZZ_FLAGS) -fuse-ld=lld -fsanitize=fuzzer -o $@ $(filter %.c %.o %.a,$^) $(FUZZ_WRAP) $(TOOL_LIBS:-lzstd=-l:libzstd.a)

# Seeds are cut from recordings of real programs (dev/fuzz-seeds.sh).
SEED_PROGRAMS := $(filter %_seeds,$(TEST_TOOL_PROGRAMS)) $(PROGRAMS)
fuzzers: $(FUZZERS) $(SEED_PROGRAMS) all
fuzz: fuzzers
	dev/fuzz.sh $(BUILD) $(SECONDS)

# The same targets under AFL++, which mutates in other ways.
$(BUILD)/afl/tool/%.o: tool/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)AFL_QUIET=1 $(AFL_CC) $(AFL_FLAGS) -c -o $@ $<
$(BUILD)/afl/cfi_afl: tests/fuzz/afl_main.c tests/fuzz/cfi_fuzz.c $(FUZZ_UNWIND_SOURCES)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)AFL_QUIET=1 $(AFL_CC) $(filter-out -MMD -MP,$(AFL_FLAGS)) -o $@ $(filter %.c,$^)
$(BUILD)/afl/%_afl: tests/fuzz/afl_main.c tests/fuzz/%_fuzz.c $(TOOL_ROOMS:%.c=$(BUILD)/afl/%.o) | $(PLAIN_MICROHTTPD)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)AFL_QUIET=1 $(AFL_CC) $(filter-out -MMD -MP,$(AFL_FLAGS)) -o $@ $(filter %.c %.o,$^) $(TOOL_LIBS)

afl-targets: $(AFL_TARGETS) $(SEED_PROGRAMS) all
fuzz-afl:
	@dev/deps.sh fuzz
	@$(MAKE) --no-print-directory -s -j$$(nproc) afl-targets
	dev/fuzz-afl.sh $(BUILD) $(SECONDS)

# The page of `cairn open` without its data is read by the assembler (web/src; CONTRIBUTING.md).
$(foreach kind,obj quick san fuzz afl,$(BUILD)/$(kind)/tool/web/template.o): web/report.html
# So are the how-to pages.
$(foreach kind,obj quick san fuzz afl,$(BUILD)/$(kind)/tool/manual/pages.o): $(wildcard docs/howto/*.md) tool/manual/pages.def

# clang-tidy is slow: one stamp a file, renewed when the file's object was. Nearly all of its time is the
# static analyzer's, which looks at no more than so many states of a function: 225000 is its own
# limit (`make clean lint TIDY_STATES=225000`, before a release). It goes where it has not been first: of the blocks
# of our functions, 10000 states reach 98.4 %, and 5000 reach 97.9 % in 70 % of the time; of 100 faults put in, these
# find 35 and 33. 2000 save 15 % more, and find faults that are none.
# One process for many files would save its start, but in all but the first its valist check is wrong; to follow fewer calls (max-inlinable-size) saves more, and finds faults that are none.
TIDY_STATES ?= 5000
TIDY_LIMIT := $(addprefix --extra-arg=,-Xclang -analyzer-config -Xclang max-nodes=$(TIDY_STATES))
TIDY_TOOL := $(TOOL_SOURCES:%.c=$(BUILD)/tidy/%.ok)
TIDY_RUNTIME := $(RUNTIME_SOURCES:%.c=$(BUILD)/tidy/%.ok) $(BUILD)/tidy/runtime/torture/torture.ok
tidy: $(TIDY_TOOL) $(TIDY_RUNTIME)
$(BUILD)/tidy/%.ok: %.c $(BUILD)/obj/%.o .clang-tidy
	@mkdir -p $(@D)
	$(call say,TIDY)
	$(Q)clang-tidy --quiet --warnings-as-errors='*' $(TIDY_LIMIT) $< -- -std=gnu17 -D_GNU_SOURCE -I. -Iinclude 2>$(@:.ok=.log) \
		|| { cat $(@:.ok=.log) >&2; exit 1; }
	@touch $@

lint: tidy all
	dev/check-style.sh
	dev/check-directions.py
	dev/check-spelling.sh
	dev/check-prose.sh
	dev/check-runtime.sh $(BUILD)/libcairn.so
	dev/check-runtime.sh $(BUILD)/libcairn-cxx.so
	dev/check-runtime.sh $(BUILD)/libcairn-musl.so
	$(if $(BARE_LIBRARY),dev/check-runtime.sh $(BARE_LIBRARY))

format:
	@dev/check-style.sh --sources | xargs clang-format -i

reference: $(BUILD)/cairn
	@dev/reference.py $(BUILD)

deps deps-of-check:
	@dev/deps.sh $(if $(CAIRN_LONG),long,check)

# Ends with one line where a program is missing that packages should have brought: call need,NAMES OF VARIABLES.
need = $(foreach name,$(1),$(if $(shell command -v $(firstword $($(name)))),,$(error $@: there is no \
	$(firstword $($(name))): install it, or name another one by $(name)=PROGRAM)))

try:
	@dev/deps.sh try
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	@dev/try.sh

include dev/dist.mk
include dev/checks.mk

# TOOL=dist: the tests with programs, with the one-file tool. STRICT=1: a test that failed gets no second try.
check: deps-of-check $(if $(TOOL),$(DIST)/bin/cairn)
	$(call need,CC CXX CLANG PYTHON)
	@$(PYTHON) dev/run-tests.py --build-dir $(BUILD) $(if $(STRICT),--strict) $(if $(TOOL),--tool $(DIST)/bin/cairn) $(TESTS)

# With the whole of those tests of which `make check` has a part, and those of cgroups under version 2: some hours.
check-long:
	@CAIRN_LONG=1 $(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory check-cgroup2

# For the time between two edits: no fuzzers, no clang-tidy, of the tests with programs a few, by what `make quick` builds.
check-quick: deps-of-check
	$(call need,CC CXX CLANG PYTHON)
	@$(PYTHON) dev/run-tests.py --build-dir $(BUILD) --quick

# The tests under hostile circumstances: CONDITIONS='one-processor turkish' TESTS='unit/ limits'
check-anywhere: all check-runtime tests
	@dev/check-anywhere.sh $(BUILD) '$(CONDITIONS)' $(TESTS)

# Programs that are measured are built as their users build: optimized, without frame pointers.
BENCH_FLAGS := -D_GNU_SOURCE -I. -MMD -MP -O2 -g -Wall -Wextra $(WERROR)
$(BUILD)/bench/%_preload.so: bench/programs/%_preload.c Makefile
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) -std=gnu17 $(BENCH_FLAGS) -fPIC -shared $(NO_BUILTINS) -ftls-model=initial-exec -o $@ $< -ldl
$(BUILD)/bench/%: bench/programs/%.c Makefile
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) -std=gnu17 $(BENCH_FLAGS) -o $@ $< -pthread
$(BUILD)/bench/%: bench/programs/%.cc Makefile
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CXX) -std=c++17 $(BENCH_FLAGS) -o $@ $< -pthread

# A part of the rows goes to build/, since bench/results/ is for whole tables. The patterns are taken by
# their value: make would expand a $ at their end to nothing.
ROUNDS ?= 3
BENCH_OUT ?= $(if $(value ROWS)$(value VARIANTS),$(BUILD)/bench/results,bench/results)
RUN_BENCH := BUILD_DIR=$(BUILD) PYTHONDONTWRITEBYTECODE=1 $(PYTHON) bench/bench.py
bench-programs: $(BENCH_PROGRAMS)
bench:
	@dev/deps.sh bench
	@$(MAKE) --no-print-directory -s -j$$(nproc) all bench-programs
	$(RUN_BENCH) --rounds $(ROUNDS) --rows '$(value ROWS)' --variants '$(value VARIANTS)' --out $(BENCH_OUT)

bench-reports: all $(BUILD)/tests/large_recording
	$(Q)$(PYTHON) bench/reports.py --build-dir $(BUILD) > $(BUILD)/reports.md
	$(Q)mv $(BUILD)/reports.md bench/results/reports.md && cat bench/results/reports.md

# The tree is a Debian with newer profilers and programs (bench/README.md).
bench-newer: all bench-programs
	$(Q)test -n '$(CHROOT)' || { echo 'make bench-newer CHROOT=DIR: a Debian tree, as bench/README.md says'; exit 2; }
	$(Q)BUILD_DIR=$(BUILD) PYTHONDONTWRITEBYTECODE=1 $(PYTHON) bench/newer.py --chroot '$(CHROOT)' --rounds $(ROUNDS) \
		bench/results/newer.md && cat bench/results/newer.md

bench-counts: all bench-programs
	$(Q)BUILD_DIR=$(BUILD) $(PYTHON) bench/instructions.py --misses > $(BUILD)/counts.md
	$(Q)mv $(BUILD)/counts.md bench/results/counts.md && cat bench/results/counts.md
	$(Q)BUILD_DIR=$(BUILD) $(PYTHON) bench/program_counts.py > $(BUILD)/counts.md
	$(Q)mv $(BUILD)/counts.md bench/results/program_counts.md && cat bench/results/program_counts.md

bench-quick:
	@dev/deps.sh bench
	@$(MAKE) --no-print-directory -s -j$$(nproc) all bench-programs
	$(RUN_BENCH) --rounds 1 --rows '$(or $(value ROWS),$(QUICK_ROWS))' --out $(BUILD)/bench/results

bench-latency:
	@dev/deps.sh bench
	@$(MAKE) --no-print-directory -s -j$$(nproc) all bench-programs
	BUILD_DIR=$(BUILD) PYTHONDONTWRITEBYTECODE=1 $(PYTHON) bench/latency.py

# Attaches 1,000 times to twenty programs of eight kinds, and compares other real programs with and without cairn, of
# those that are installed: half an hour each on a quiet machine, as root (bench/README.md).
harm: all $(BUILD)/tests/programs/thread_makers
	HARM_DIR='$(abspath $(BUILD))/harm/attach' BUILD_DIR='$(abspath $(BUILD))' $(PYTHON) bench/harm/attach.py
	HARM_DIR='$(abspath $(BUILD))/harm/programs' BUILD_DIR='$(abspath $(BUILD))' $(PYTHON) bench/harm/programs.py

# 500 programs that do nothing but allocate, 1,000 times to and from one that is busy: some 20 minutes.
attach-long: all $(BUILD)/tests/programs/tight $(BUILD)/tests/programs/attached
	@mkdir -p $(BUILD)/attach-long
	cd $(BUILD)/attach-long && ATTACH_TARGETS=500 ATTACH_CYCLES=1000 PYTHONPATH='$(CURDIR)/tests/tools' \
		BUILD_DIR='$(abspath $(BUILD))' SOURCE_DIR='$(CURDIR)' PYTHONDONTWRITEBYTECODE=1 $(PYTHON) '$(CURDIR)/tests/e2e/attach_cycles.py'

soak: all tests
	dev/soak.sh $(BUILD) $(EVENTS) promises/soak
soak-events: all tests
	dev/soak.sh $(BUILD) $(EVENTS) e2e/replay_order

# What programs that talk to cairn are built with: headers, libraries, pkg-config's files.
API_LIBRARIES := $(BUILD)/libcairn_stub.a $(BUILD)/libcairn_static.a $(BUILD)/libcairn_embed.a
install-api: $(API_LIBRARIES)
	install -d $(DESTDIR)$(PREFIX)/include/cairn $(DESTDIR)$(LIBDIR)/cairn $(DESTDIR)$(LIBDIR)/pkgconfig
	install -m 644 $(wildcard include/cairn/*.h include/cairn/*.hpp) $(DESTDIR)$(PREFIX)/include/cairn/
	install -m 644 $(API_LIBRARIES) $(DESTDIR)$(LIBDIR)/cairn/
	for file in $(basename $(notdir $(wildcard bindings/c/*.pc.in))); do \
		sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR:$(PREFIX)/%=$${prefix}/%)/cairn|' -e 's|@VERSION@|$(TOOL_VERSION)|' \
			-e 's|@WRAPS@|$(subst $(SPACE),$(COMMA),$(HEAP_FUNCTIONS:%=--wrap=%))|' bindings/c/$$file.in \
			>$(DESTDIR)$(LIBDIR)/pkgconfig/$$file || exit 1; done

install: all install-api
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(LIBDIR)/cairn $(DESTDIR)$(DOCDIR)
	install -m 755 $(BUILD)/cairn $(DESTDIR)$(PREFIX)/bin/cairn
	install -m 644 $(BUILD)/libcairn.so $(DESTDIR)$(LIBDIR)/cairn/libcairn.so
	install -m 644 $(BUILD)/libcairn-cxx.so $(DESTDIR)$(LIBDIR)/cairn/libcairn-cxx.so
	install -m 644 $(BUILD)/libcairn-musl.so $(DESTDIR)$(LIBDIR)/cairn/libcairn-musl.so
	$(if $(BARE_LIBRARY),install -m 644 $(BARE_LIBRARY) $(DESTDIR)$(LIBDIR)/cairn/libcairn-bare.so)
	install -m 644 $(BUILD)/libcairn-torture.so $(DESTDIR)$(LIBDIR)/cairn/libcairn-torture.so
	install -m 755 $(BUILD)/cairn-replay $(DESTDIR)$(LIBDIR)/cairn/cairn-replay
	install -m 644 README.md CHANGELOG.md LICENSE THIRD_PARTY.md $(DESTDIR)$(DOCDIR)/
	for file in $(wildcard docs/*.md docs/*/*.md docs/images/*.png); do \
		install -D -m 644 $$file $(DESTDIR)$(DOCDIR)/$$file || exit 1; done
	install -d $(DESTDIR)$(UNITDIR)
	for file in $(notdir $(wildcard examples/systemd/*)); do \
		sed 's|/usr/bin/cairn|$(PREFIX)/bin/cairn|' examples/systemd/$$file >$(DESTDIR)$(UNITDIR)/$$file && \
			chmod 644 $(DESTDIR)$(UNITDIR)/$$file || exit 1; done
	SOURCE_DATE_EPOCH=$$(dev/commit.sh --seconds) dev/install-manual.sh $(BUILD)/cairn '$(DESTDIR)$(MANDIR)' \
		'$(DESTDIR)$(BASHCOMPDIR)' '$(DESTDIR)$(ZSHCOMPDIR)' '$(DESTDIR)$(FISHCOMPDIR)'

clean:
	rm -rf $(BUILD)

# BUILT=1: everything is up to date, as dev/run-tests.py knows after the build. To read of which headers objects are made
# takes 0.6 s of a processor, thirty times as long as the rest: `make quick` reads those of its own objects.
ifndef BUILT
-include $(shell find $(if $(filter-out quick,$(or $(MAKECMDGOALS),all)),$(BUILD),$(QUICK)) \( -name sysroot -o -name everywhere -o -name machine -o -name chroots \) -prune -o -type f -name '*.d' -print 2>/dev/null)
endif

# ---- Version and commit ----
# What the tool says of itself (`cairn --version`): one object is made again where the commit is another.
# The file is renewed only when its text changes, so nothing follows from asking.
VERSION_FLAGS = -DCAIRN_COMMIT="\"$$commit\"" -DCAIRN_DATE="\"$$day\""
$(BUILD)/commit: FORCE
	@mkdir -p $(@D)
	@dev/commit.sh >$@.$$$$ && { cmp -s $@.$$$$ $@ && rm $@.$$$$ || mv -f $@.$$$$ $@; }
$(BUILD)/obj/tool/base/version.o $(BUILD)/quick/tool/base/version.o: tool/base/version.c $(BUILD)/commit Makefile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)read -r commit day <$(BUILD)/commit && $(CC) $(CPPFLAGS) $(TOOL_FLAGS) $(CFLAGS) $(VERSION_FLAGS) -c -o $@ $<
.PHONY: FORCE
FORCE:

# ---- Where things are installed ----
# The tool looks for its libraries in these three (library_find); so it can be moved as a tree.
LIBDIR ?= $(PREFIX)/lib
DOCDIR ?= $(PREFIX)/share/doc/cairn
MANDIR ?= $(PREFIX)/share/man
UNITDIR ?= $(PREFIX)/lib/systemd/system
BASHCOMPDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHCOMPDIR ?= $(PREFIX)/share/zsh/site-functions
FISHCOMPDIR ?= $(PREFIX)/share/fish/vendor_completions.d
ifeq ($(filter $(PREFIX)/lib $(PREFIX)/lib64 $(PREFIX)/lib/$(ARCH)-linux-gnu,$(LIBDIR)),)
$(error LIBDIR=$(LIBDIR): the tool looks in $(PREFIX)/lib, $(PREFIX)/lib64 and $(PREFIX)/lib/$(ARCH)-linux-gnu)
endif

# ---- Releases ----
# RELEASE=1 is the same, byte for byte, in whatever directory it is built: debug information has the
# sources where debuggers of distributions look for them. Not in a tree that is worked in: there a debugger
# should find the sources where they are, and tests compare their paths. Without a seed LTO names what it
# makes by random numbers.
ifneq ($(RELEASE),)
SOURCES_NAMED := '-ffile-prefix-map=$(CURDIR)=/usr/src/cairn-$(TOOL_VERSION)' -frandom-seed=cairn
TOOL_FLAGS += $(SOURCES_NAMED)
RUNTIME_BASE += $(SOURCES_NAMED)
RUNTIME_FLAGS += $(SOURCES_NAMED)
STATIC_FLAGS += $(SOURCES_NAMED)
MUSL_FLAGS += $(SOURCES_NAMED)
BARE_FLAGS += $(SOURCES_NAMED)
REPLAY_FLAGS += $(SOURCES_NAMED)
STUB_FLAGS += $(SOURCES_NAMED)
endif

# The sources of a commit, and Debian packages of them.
.PHONY: tarball deb deb-chroots reproducible site
site:
	dev/site.sh $(BUILD)
tarball:
	@dev/tarball.sh $(BUILD)/dist
deb: tarball
	@dev/deps.sh deb
	@dev/deb.sh $(BUILD)/dist
deb-chroots:
	@dev/deps.sh deb-chroots
	@dev/deb-chroots.sh $(SUITES)
reproducible:
	@dev/deps.sh deb
	@dev/reproducible.sh
