# SPDX-License-Identifier: Apache-2.0
server_here && cp "$SOURCE_DIR/examples/regions.c" program.c && export PKG_CONFIG_PATH=$PWD &&
    printf 'Name: cairn\nDescription: cairn\nVersion: 0\nCflags: -I%s\n' "$SOURCE_DIR/include" >cairn.pc
cairn run -q -o contexts.cairn "$BUILD_DIR/tests/programs/contexts" >/dev/null && stands '--view contexts' '--view contexts contexts.cairn' &&
    ln -s "$SOURCE_DIR/include" include && export LD_LIBRARY_PATH=$BUILD_DIR && cat >configure.c <<'END'
#include <cairn/cairn.h>
static void __attribute__((constructor)) configure(void) { cairn_set_thresholds(64, 1 << 20); }
END
