# SPDX-License-Identifier: Apache-2.0
needs jq ms_print callgrind_annotate heaptrack_print go && server_here && recorded run.cairn before.cairn after.cairn &&
    cairn export -o before.pb.gz before.cairn && cairn export -o after.pb.gz after.cairn && mkdir recordings .bin &&
    cp run.cairn recordings && printf 'run.cairn\n' >list && cairn export -o FILE --format massif run.cairn && cairn import FILE &&
    for tool in flamegraph.pl speedscope; do printf '#!/bin/sh\n' >".bin/$tool" && chmod +x ".bin/$tool"; done
