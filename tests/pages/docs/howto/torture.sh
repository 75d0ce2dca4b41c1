# SPDX-License-Identifier: Apache-2.0
cp "$BUILD_DIR/tests/programs/torture" torture && printf '#!/bin/sh\nexec ./torture right\n' >test && chmod +x test
# a part of the day's work
stands '--jobs 2 --allow-in' '--jobs 2 --budget 5s --allow-in' && stands tests/programs/torture/ "$SOURCE_DIR/tests/programs/torture/"
