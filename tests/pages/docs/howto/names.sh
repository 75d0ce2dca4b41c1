# SPDX-License-Identifier: Apache-2.0
server_here && recorded run.cairn && mkdir symbols more
