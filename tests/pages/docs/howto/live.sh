# SPDX-License-Identifier: Apache-2.0
# alone
loopback && server_here PROGRAM program app test && recorded server.cairn run.cairn && redis_recorded || return
# a program with tenants
mkfifo .asked && exec 9<>.asked && cp "$BUILD_DIR/tests/programs/commands" search &&
    begun 'cairn run -q -o search.cairn ./search <.asked' 'cairn ctl search status' &&
    printf '%s\n' 'early 1000' 'enter tenant=7' 'early 20000' 'late 30000' leave 'enter tenant=8' 'early 5000' leave >&9
until cairn top --once --interval 100ms --context tenant search | grep -q ' 8$'; do sleep 0.05; done
