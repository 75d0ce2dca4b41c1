# SPDX-License-Identifier: Apache-2.0
needs jq && cp "$SOURCE_DIR/examples/documents.c" .
