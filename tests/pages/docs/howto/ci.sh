# SPDX-License-Identifier: Apache-2.0
needs cmake ctest && server_here && cp /bin/true test && echo 'max-calls = 5_000_000' >cairn-budgets.toml &&
    printf 'cmake_minimum_required(VERSION 3.10)\nproject(p C)\nenable_testing()\nadd_test(NAME a COMMAND ls)\n' >CMakeLists.txt &&
    cmake . >/dev/null 2>&1 && running owners || return
cc -g -O1 -fno-builtin -o fixed "$SOURCE_DIR/tests/programs/fixed.c" && cairn run -q -o before.cairn ./fixed temporary leak &&
    cairn run -q -o after.cairn ./fixed leak
