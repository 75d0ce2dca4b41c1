# SPDX-License-Identifier: Apache-2.0
server_here program && cp "$BUILD_DIR/libcairn.so" . && DOC_COPY=/
