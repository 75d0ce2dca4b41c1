# SPDX-License-Identifier: Apache-2.0
mkdir web && for file in procs events current stat; do : >"web/memory.$file"; done && mv web/memory.procs web/cgroup.procs
echo 4096 >web/memory.current && echo anon 4096 >web/memory.stat && stands system.slice/web.service ./web
running_recorded owners || return
first=$DOC_PID
running_recorded fragmented && stands 4242 "$DOC_PID" && DOC_PID=$first
