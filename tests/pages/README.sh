# SPDX-License-Identifier: Apache-2.0
server_here app && cp "$SOURCE_DIR/tests/pages/cairn.sh" cairn-0.2.0-linux-x86_64
