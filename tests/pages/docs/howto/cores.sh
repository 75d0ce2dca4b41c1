# SPDX-License-Identifier: Apache-2.0
server_here && running_recorded owners && gcore -o core "$DOC_PID" >/dev/null && mv "core.$DOC_PID" core.4242 && DOC_CORE=core.4242 &&
    stands '4242 ' "$DOC_PID " &&
    DOC_ADDRESS=$(cairn core "$DOC_PID" list used 2>/dev/null | grep -o 'at [0-9a-f]*' | cut -c4- | head -1)
