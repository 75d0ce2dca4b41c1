# SPDX-License-Identifier: Apache-2.0
running waste && gcore -o core "$DOC_PID" >/dev/null && mv "core.$DOC_PID" core.4242
