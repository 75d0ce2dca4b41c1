# SPDX-License-Identifier: Apache-2.0
server_here && cp "$SOURCE_DIR/examples/regions.c" program.c && cp server.cc program.cc &&
    make -s -C "$SOURCE_DIR" BUILT=1 BUILD="$BUILD_DIR" DESTDIR="$PWD/.api" install-api >/dev/null &&
    export PKG_CONFIG_PATH=$PWD/.api/usr/local/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$PWD/.api || return
cairn run -q -o contexts.cairn "$BUILD_DIR/tests/programs/contexts" >/dev/null && stands '--view contexts' '--view contexts contexts.cairn' &&
    ln -s "$SOURCE_DIR/include" include && export LD_LIBRARY_PATH=$BUILD_DIR && cat >configure.c <<'END'
#include <cairn/cairn.h>
static void __attribute__((constructor)) configure(void) { cairn_set_thresholds(64, 1 << 20); }
END
