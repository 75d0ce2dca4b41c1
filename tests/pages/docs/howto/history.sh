# SPDX-License-Identifier: Apache-2.0
git init -q . && mkdir src
commit() { git add -A . && git -c user.name=a -c user.email=a@b commit -qm "$1" --allow-empty; }
build() {
    printf '#include <stdlib.h>\n\n\nvoid parse(void) { for (int i = 0; i < %s; i++) free(malloc(64)); }\n' "$1" >src/parse.c
    printf '#include <stdlib.h>\nstatic void *volatile kept;\nvoid fill_map(void) {\n    for (int i = 0; i < %s; i++) kept = malloc(1000);\n}\n' "$2" >src/map.c
    printf 'void parse(void);\nvoid fill_map(void);\nint main(void) { parse(); fill_map(); return 0; }\n' >src/main.c
    printf 'all:\n\tgcc -g -O0 -o test_parser src/*.c\n' >Makefile
    printf 'test_parser\nmemory.db*\n.*\n' >.gitignore
    make -s && commit "$3" && cairn check --series memory.db -- ./test_parser >/dev/null
}
build 100 10 start && build 100 10 'say more' && build 101 10 'parse one more' && build 101 10 'words' || return 1
printf '#include <stdlib.h>\nstatic void *volatile kept;\nvoid fill_map(void) {\n    for (int i = 0; i < 30; i++) kept = malloc(1000);\n}\n' >src/map.c
make -s && commit 'make the map larger'
