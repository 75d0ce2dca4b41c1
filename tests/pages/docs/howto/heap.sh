# SPDX-License-Identifier: Apache-2.0
running_recorded owners || return
first=$DOC_PID
running_recorded fragmented && stands 4242 "$DOC_PID" && DOC_PID=$first
