# SPDX-License-Identifier: Apache-2.0
server_here PROGRAM test && recorded server.15423.cairn
