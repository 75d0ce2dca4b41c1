# SPDX-License-Identifier: Apache-2.0
server_here && cairn run -q --events -o py.1.cairn ./server >/dev/null && DOC_NAME=py DOC_PID=1
