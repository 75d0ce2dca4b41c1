# SPDX-License-Identifier: Apache-2.0
server_here && recorded api-1.cairn api-2.cairn && mkdir recordings && cp api-1.cairn recordings &&
    CAIRN=cairn python3 "$SOURCE_DIR/tests/tools/fleet.py" fleet 30 >/dev/null || return
for release in 1.2 1.3; do grep "version=$release$" fleet/list | cut -f1 >release-$release; done
