# SPDX-License-Identifier: Apache-2.0
cairn run -q -o rows.cairn "$BUILD_DIR/tests/programs/findings" alike
