# SPDX-License-Identifier: Apache-2.0
# alone
loopback && needs redis-server && server_here && mkdir other && lasting other/server &&
    begun 'cairn run -q -o other.cairn other/server' 'cairn ctl server status'
