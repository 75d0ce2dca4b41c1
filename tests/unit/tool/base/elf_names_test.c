// SPDX-License-Identifier: Apache-2.0
// Names of this test's own symbol table: all that are wanted are found, by the table as libelf
// reads it; of others only those that begin alike; none in a table that is cut off or is no table.
#include "tool/base/elf_names.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

void elf_names_sought_one(void);
void elf_names_sought_two(void);
void elf_names_sought_one(void) {}
void elf_names_sought_two(void) {}

static Elf *own;
static int file;

static int open_own(void **state) {
    (void)state;
    elf_version(EV_CURRENT);
    file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    own = elf_begin(file, ELF_C_READ_MMAP, NULL);
    return own ? 0 : 1;
}

static int close_own(void **state) {
    (void)state;
    elf_end(own);
    close(file);
    return 0;
}

static Elf_Data *symbols(GElf_Shdr *header, Elf_Scn **section) {
    *section = NULL;
    while ((*section = elf_nextscn(own, *section)))
        if (gelf_getshdr(*section, header) && header->sh_type == SHT_SYMTAB)
            return elf_getdata(*section, NULL);
    return NULL;
}

static void test_names_of_a_table(void **state) {
    (void)state;
    static struct elf_names names;
    GElf_Shdr header;
    Elf_Scn *section;
    Elf_Data *data = symbols(&header, &section);
    unsigned wanted = 0, others = 0;
    assert_non_null(data);
    elf_names_want(&names, "elf_names_sought_one");
    elf_names_want(&names, "mainly");  // as "main" begins
    elf_names_open(&names, own, header.sh_link);
    for (size_t i = 0; i < data->d_size / header.sh_entsize; i++) {
        GElf_Sym symbol;
        assert_non_null(gelf_getsym(data, (int)i, &symbol));
        const char *all = elf_strptr(own, header.sh_link, symbol.st_name);
        const char *found = elf_names_at(&names, symbol.st_name);
        if (found) assert_string_equal(found, all);
        bool is_wanted = !strncmp(all, "elf", 3) || !strncmp(all, "mai", 3);
        if (is_wanted) assert_non_null(found);
        wanted += is_wanted;
        others += !found;
    }
    assert_true(wanted >= 3);  // the two above, and main
    assert_true(others > wanted);
}

static void test_no_table(void **state) {
    (void)state;
    static struct elf_names names;
    GElf_Shdr header;
    Elf_Scn *section;
    assert_non_null(symbols(&header, &section));
    elf_names_want(&names, "main");
    elf_names_open(&names, own, elf_ndxscn(section));  // symbols are no strings
    assert_null(elf_names_at(&names, 0));
    elf_names_open(&names, own, SIZE_MAX);
    assert_null(elf_names_at(&names, 0));
    elf_names_open(&names, own, header.sh_link);
    assert_null(elf_names_at(&names, names.bytes));
    assert_null(elf_names_at(&names, UINT64_MAX));
}

// A table that is cut off within "main": nothing may be read behind it.
static void test_cut_table(void **state) {
    (void)state;
    static struct elf_names names;
    static char text[] = "\0main\0mai";
    Elf_Data data = {.d_buf = text, .d_size = sizeof text - 1};
    elf_names_want(&names, "main");
    elf_names_take(&names, &data);
    assert_string_equal(elf_names_at(&names, 1), "main");
    assert_null(elf_names_at(&names, 6));
    data.d_size = 4;
    elf_names_take(&names, &data);
    assert_null(elf_names_at(&names, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names_of_a_table, open_own, close_own),
        cmocka_unit_test_setup_teardown(test_no_table, open_own, close_own),
        cmocka_unit_test(test_cut_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
