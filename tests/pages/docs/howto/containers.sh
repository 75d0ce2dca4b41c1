# SPDX-License-Identifier: Apache-2.0
server_here wordcount && cp "$SOURCE_DIR/README.md" book.txt && mkdir .bin data && cp server .bin/app && running owners &&
    recorded run.cairn && stands /data/app.cairn data/app.cairn && stands /path/to/root / && DOC_RECORDING=run.cairn
