# SPDX-License-Identifier: Apache-2.0
# a small program: each allocator and setting replays its log several times
cairn run -q --events -o py.1.cairn git --version >/dev/null && DOC_NAME=py DOC_PID=1
