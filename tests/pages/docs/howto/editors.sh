# SPDX-License-Identifier: Apache-2.0
server_here && recorded server.cairn && cp -r "$SOURCE_DIR/dev" "$SOURCE_DIR/editors" "$SOURCE_DIR/LICENSE" .
