# SPDX-License-Identifier: Apache-2.0
# `make` made what is tested, which is installed below the page's directory; the release is the tested tool.
name=cairn-0.2.0-linux-x86_64
make() { [ $# = 0 ] || command make -s -C "$SOURCE_DIR" BUILT=1 BUILD="$BUILD_DIR" DESTDIR="$PWD/root" "$@"; }
cp "$(command -v cairn)" $name && sha256sum $name >SHA256SUMS && stands 'sudo make' make
