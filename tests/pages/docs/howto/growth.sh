# SPDX-License-Identifier: Apache-2.0
# alone
needs redis-server && loopback && server_here program && stands 4242 redis-server && stands '-10m' '-1ms' && stands 10s,exit 1ms,now
