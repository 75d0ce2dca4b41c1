# SPDX-License-Identifier: Apache-2.0
# alone
loopback && server_here PROGRAM program app test && recorded server.cairn run.cairn && redis_recorded
