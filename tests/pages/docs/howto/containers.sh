# SPDX-License-Identifier: Apache-2.0
server_here wordcount && cp "$SOURCE_DIR/README.md" book.txt
