# SPDX-License-Identifier: Apache-2.0
# Of a page without a file of its own.
server_here PROGRAM program app test && recorded server.cairn run.cairn
