# SPDX-License-Identifier: Apache-2.0
cp "$SOURCE_DIR/examples/regions.c" program.c && export PKG_CONFIG_PATH=$PWD &&
    printf 'Name: cairn\nDescription: cairn\nVersion: 0\nCflags: -I%s\n' "$SOURCE_DIR/include" >cairn.pc
