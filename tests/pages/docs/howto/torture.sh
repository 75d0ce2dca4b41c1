# SPDX-License-Identifier: Apache-2.0
cp "$BUILD_DIR/tests/programs/torture" torture && printf '#!/bin/sh\nexec ./torture right\n' >test && chmod +x test
