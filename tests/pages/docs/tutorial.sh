# SPDX-License-Identifier: Apache-2.0
mkdir examples && cp "$SOURCE_DIR/examples/server.cc" examples
