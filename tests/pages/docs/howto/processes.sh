# SPDX-License-Identifier: Apache-2.0
printf 'all: one two\none:\n\tg++ -c one.cc\ntwo:\n\tgcc -c two.c\n' >Makefile
echo 'int one() { return 1; }' >one.cc && echo 'int two(void) { return 2; }' >two.c
echo 'int main(void) { return 0; }' >static.c && gcc -static -o static static.c
