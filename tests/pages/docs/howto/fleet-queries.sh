# SPDX-License-Identifier: Apache-2.0
server_here && recorded one.cairn two.cairn && printf 'one.cairn\ntwo.cairn\n' >list
