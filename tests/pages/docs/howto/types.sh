# SPDX-License-Identifier: Apache-2.0
running typed && gcore -o core "$DOC_PID" >/dev/null && mv "core.$DOC_PID" core.4242 &&
    DOC_ADDRESS=$(cairn core "$DOC_PID" list used 2>/dev/null | grep -o 'at [0-9a-f]*' | cut -c4- | head -1)
