# SPDX-License-Identifier: Apache-2.0
server_here program && recorded server.cairn before.cairn after.cairn
