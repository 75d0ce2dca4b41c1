# SPDX-License-Identifier: Apache-2.0
# Builds that find what the usual one does not, for releases (CONTRIBUTING.md). The Makefile includes this.
#   make check-clang   everything built by clang, with its tests: unit/runtime promises/ e2e/ (TESTS='...')
#   make check-asan    the tool with address and undefined sanitizers, in the tests with programs
#   make coverage      lines and branches that tests reach, by room (dev/coverage.py)
#   make check-thin    make check in a bare Debian that has only what `make deps` installs, as root

.PHONY: check-clang clang-tests check-asan check-thin coverage counted

# Unit tests of the tool are clang's in every build.
CLANG_BUILD := $(BUILD)/clang
clang-tests: all check-runtime programs bench-programs $(TEST_TOOL_PROGRAMS) $(filter $(BUILD)/tests/unit/runtime/%,$(UNIT_TESTS))
check-clang:
	@dev/deps.sh check
	@$(MAKE) --no-print-directory -s -j$$(nproc) BUILD=$(CLANG_BUILD) CC='$(CLANG)' CXX='$(CLANG)++' clang-tests
	@$(PYTHON) dev/run-tests.py --no-build --build-dir $(CLANG_BUILD) $(or $(TESTS),unit/runtime promises/ e2e/)

# Of the objects that unit tests are made of, which have the sanitizers already. Libraries are the usual ones: they live
# in other programs.
ASAN := $(BUILD)/asan
ASAN_LIBRARIES := $(addprefix $(ASAN)/,libcairn.so libcairn-cxx.so libcairn-musl.so libcairn-torture.so cairn-replay) $(BARE_LIBRARY:$(BUILD)/%=$(ASAN)/%)
$(ASAN_LIBRARIES): $(ASAN)/%: $(BUILD)/%
	@mkdir -p $(@D)
	$(Q)ln -sfn ../$(@F) $@
$(ASAN)/options.o: tests/asan/options.c Makefile dev/checks.mk
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CLANG) $(UNIT_TEST_FLAGS) -DCAIRN_REPORTS='"$(abspath $(ASAN))/reports/report"' -c -o $@ $<
$(ASAN)/cairn: $(BUILD)/fuzz/tool/main.o $(BUILD)/obj/tool/base/version.o $(ASAN)/options.o $(UNTESTED_OBJECTS) $(BUILD)/fuzz/libtool.a \
		$(ASAN_LIBRARIES) | $(PLAIN_MICROHTTPD)
	$(call say,LINK)
	$(Q)$(CLANG) $(SANITIZE) -fuse-ld=lld -o $@.new $(filter %.o %.a,$^) $(TOOL_LIBS)
	$(Q)mv -f $@.new $@
check-asan:
	@dev/deps.sh check
	@$(MAKE) --no-print-directory -s -j$$(nproc) all programs $(TEST_TOOL_PROGRAMS) bench-programs $(ASAN)/cairn
	@dev/check-asan.sh $(BUILD) $(TESTS)

check-thin:
	@dev/deps.sh deb-chroots
	@dev/check-thin.sh $(TESTS)

# The tool of the unit tests' objects and the runtime's libraries have counters; programs are the usual ones.
COVERAGE_BUILD := $(BUILD)/coverage
coverage:
	@dev/deps.sh coverage
	@$(MAKE) --no-print-directory -s -j$$(nproc) all check-runtime programs bench-programs $(TEST_TOOL_PROGRAMS)
	@$(MAKE) --no-print-directory -s -j$$(nproc) BUILD=$(COVERAGE_BUILD) CC='$(CLANG)' CXX='$(CLANG)++' COVERAGE=1 counted
	@$(PYTHON) dev/coverage.py measure $(BUILD) $(TESTS)

ifneq ($(COVERAGE),)
counted: $(BUILD)/counted/cairn $(UNIT_TESTS)
COUNTED_LIBRARIES := libcairn libcairn-cxx libcairn-torture
$(patsubst %,$(BUILD)/counted/%.o,cairn $(COUNTED_LIBRARIES)): tests/coverage/counters.c Makefile dev/checks.mk
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(COMMON) -O2 -fPIC -DCAIRN_COUNTERS='"$(abspath $(@:.o=.counts))"' -c -o $@ $<
define count_in_library
$(BUILD)/$(1).so: private LDFLAGS += $(BUILD)/counted/$(1).o
$(BUILD)/$(1).so: $(BUILD)/counted/$(1).o
$(BUILD)/counted/$(1).so: $(BUILD)/$(1).so
	$$(Q)ln -sfn ../$$(@F) $$@
endef
$(foreach library,$(COUNTED_LIBRARIES),$(eval $(call count_in_library,$(library))))
$(BUILD)/counted/cairn: $(BUILD)/fuzz/tool/main.o $(BUILD)/obj/tool/base/version.o $(BUILD)/counted/cairn.o $(UNTESTED_OBJECTS) $(BUILD)/fuzz/libtool.a \
		$(COUNTED_LIBRARIES:%=$(BUILD)/counted/%.so) | $(PLAIN_MICROHTTPD)
	$(call say,LINK)
	$(Q)$(CC) $(COUNTED) -fuse-ld=lld -o $@.new $(filter %.o %.a,$^) $(TOOL_LIBS)
	$(Q)mv -f $@.new $@
endif
