# SPDX-License-Identifier: Apache-2.0
server_here PROGRAM && recorded server.15423.cairn BEFORE AFTER
