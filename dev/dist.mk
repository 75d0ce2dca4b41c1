# SPDX-License-Identifier: Apache-2.0
# `make dist`: the tool as one static executable, with the runtime's libraries and descriptions of
# terminals inside (tool/base/one_file.h). The Makefile includes this.
#   make dist               build/dist/cairn-VERSION-linux-ARCH for this processor
#   make dist ARCH=aarch64  for that one
#   make check TOOL=dist    the tests with programs, with this tool
#   make release            all files of a release, the same bytes each time: one file, tarball, packages, image
#   make everywhere         tries it on other systems, aarch64 too
#   make check-aarch64      tests on an emulated machine of that processor, with a kernel of its own
#   make check-cgroup2      tests of control groups under version 2, in an emulated machine of this processor

DIST := $(BUILD)/dist
DIST_TOOL := $(DIST)/cairn-$(TOOL_VERSION)-linux-$(ARCH)
DIST_TERMINALS := ansi dumb linux rxvt rxvt-unicode rxvt-unicode-256color screen screen-256color \
	tmux tmux-256color vt100 vt220 xterm xterm-256color xterm-color
DIST_ZYDIS_x86_64 := $(DIST)/libZydis.a
DIST_ZYDIS := $(DIST_ZYDIS_$(ARCH))
STATIC_TOOL_LIBS := $(subst -lZydis,$(DIST_ZYDIS),$(filter-out -Wl%,$(TOOL_LIBS))) -lbz2 -lz -lm
# What is linked statically (THIRD_PARTY.md), for its copyright notices.
DIST_PACKAGES := libc6-dev libgcc-12-dev libdw-dev libelf-dev libiberty-dev libzstd-dev liblz4-dev liblzma-dev zlib1g-dev libbz2-dev \
	libjansson-dev libsqlite3-dev libpcre2-dev libncurses-dev libmicrohttpd-dev
DIST_LICENCES := $(DIST)/cairn-$(TOOL_VERSION)-linux-$(ARCH)-licences.txt
STRIP := $(if $(IS_CROSS),llvm-strip,strip)

.PHONY: dist
# For another processor its sysroot first, on which the compiler's options depend.
dist: $(if $(IS_CROSS),$(if $(SYSROOT),$(DIST_TOOL),dist-with-sysroot),$(DIST_TOOL))
.PHONY: dist-with-sysroot
dist-with-sysroot: $(BUILD)/sysroot
	$(Q)$(MAKE) --no-print-directory dist

$(BUILD)/sysroot: dev/sysroot.sh
	$(call say,GET )
	$(Q)dev/sysroot.sh $(ARCH) $@

$(DIST)/libZydis.a: dev/static-zydis.sh
	$(call say,GET )
	$(Q)dev/static-zydis.sh '$(CC)' $@

# Symbols stay, for gdb; debug information does not.
$(DIST)/cairn-replay: $(BUILD)/cairn-replay
	@mkdir -p $(@D)
	$(Q)$(STRIP) --strip-debug -o $@ $<
$(DIST)/%.so: $(BUILD)/%.so
	@mkdir -p $(@D)
	$(Q)$(STRIP) --strip-debug -o $@ $<

$(DIST)/terminals.inc: dev/dist.mk
	@mkdir -p $(@D)
	$(Q)for name in $(DIST_TERMINALS); do \
		text=$$(infocmp -Q2 -q $$name | sed '/^#/d' | tr -d '\n') && [ -n "$$text" ] && \
		printf '{"%s", "%s"},\n' "$$name" "$$text" || exit 1; done >$@

DIST_LIBRARIES := $(addprefix $(DIST)/,libcairn.so libcairn-cxx.so libcairn-musl.so libcairn-torture.so cairn-replay) $(BARE_LIBRARY:$(BUILD)/%=$(DIST)/%)
$(DIST)/one_file.o: tool/base/one_file.c $(DIST_LIBRARIES) $(DIST)/terminals.inc
	$(call say,CC  )
	$(Q)$(CC) $(CPPFLAGS) $(TOOL_FLAGS) $(CFLAGS) -DCAIRN_ONE_FILE='"$(DIST)"' -DCAIRN_TERMINALS='"$(DIST)/terminals.inc"' -c -o $@ $<

$(DIST)/entry.o: tool/base/entry.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(filter-out -g,$(TOOL_FLAGS)) -fno-stack-protector -DCAIRN_ONE_FILE -c -o $@ $<

$(DIST_LICENCES): THIRD_PARTY.md $(DIST_ZYDIS) dev/dist.mk
	@mkdir -p $(@D)
	$(Q){ cat LICENSE THIRD_PARTY.md; for package in $(DIST_PACKAGES); do \
		printf '\n==== %s ====\n' $$package; cat $(SYSROOT)/usr/share/doc/$$package/copyright || exit 1; done; \
		for file in $(DIST_ZYDIS:.a=.LICENSE); do printf '\n==== Zydis ====\n'; cat $$file || exit 1; done; } >$@

# By the name that tests call.
$(DIST)/bin/cairn: $(DIST_TOOL)
	@mkdir -p $(@D)
	$(Q)ln -sfn ../$(notdir $<) $@

# dlopen would load the system's libc beside the one in here.
$(DIST_TOOL): $(filter-out %/tool/base/one_file.o,$(TOOL_OBJECTS)) $(DIST)/one_file.o $(DIST)/entry.o $(DIST_ZYDIS) \
		dev/whole-segments.py | $(PLAIN_MICROHTTPD) $(DIST_LICENCES)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) -static -Wl,--wrap=dlopen -Wl,--gc-sections -Wl,-e,entry_begin -o $@.new $(filter %.o,$^) $(STATIC_TOOL_LIBS)
	$(Q)$(STRIP) $@.new
	$(Q)dev/whole-segments.py $@.new
	$(Q)mv -f $@.new $@
	$(Q)dev/checksums.sh $(@D)

# In a build of its own, where debug information names no directory of this machine. aarch64's file is in the packages if
# it was made before (make RELEASE=1 BUILD=build/release/aarch64 ARCH=aarch64 dist).
RELEASE_BUILD := $(BUILD)/release
.PHONY: release release-files
ifeq ($(RELEASE),)
release:
	$(Q)$(MAKE) --no-print-directory RELEASE=1 BUILD=$(RELEASE_BUILD) release-files
else
release: release-files
endif
release-files: dist tarball deb $(BUILD)/libcairn_embed.a
	$(Q)$(MAKE) --no-print-directory BUILT=1 packed
FILES_PACKED = $(wildcard $(BUILD)/aarch64/dist/cairn-$(TOOL_VERSION)-linux-aarch64) $(DIST_TOOL)
.PHONY: packed
packed:
	$(Q)for script in packages image distributions; do dev/$$script.py $(DIST) $(FILES_PACKED) || exit 1; done
	$(Q)dev/crates.py $(DIST) $(BUILD)/libcairn_embed.a
	$(Q)dev/checksums.sh $(DIST)

# The one-file tools on other systems: chroots of Debian's suites, aarch64 emulated; writes docs/reference/systems.md.
.PHONY: everywhere
everywhere: all
	@dev/deps.sh everywhere
	$(Q)$(MAKE) --no-print-directory dist
	$(Q)$(MAKE) --no-print-directory ARCH=aarch64 dist
	dev/everywhere.py --build-dir $(BUILD) --out docs/reference/systems.md

# Tests on a machine with another processor, emulated whole: a kernel with ptrace, signals and processes of its own.
ARM := $(BUILD)/aarch64-machine
ARM_TESTS := $(patsubst tests/tools/%.c,$(ARM)/tests/%.so,$(wildcard tests/tools/*_preload.c))
.PHONY: check-aarch64
check-aarch64:
	@dev/deps.sh machine
	$(Q)$(MAKE) --no-print-directory ARCH=aarch64 BUILD=$(ARM) CPPFLAGS=-DCAIRN_EMULATED dist
	$(Q)$(MAKE) --no-print-directory ARCH=aarch64 BUILD=$(ARM) CPPFLAGS=-DCAIRN_EMULATED runtime check-runtime programs $(ARM_TESTS)
	dev/check-machine.sh $(ARM) $(TESTS)

# Tests of control groups where only version 2 has memory; this machine may have version 1.
.PHONY: check-cgroup2
check-cgroup2: tools runtime programs
	@dev/deps.sh cgroup2
	dev/check-cgroup2.sh $(BUILD) $(TESTS)
