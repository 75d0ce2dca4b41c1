# SPDX-License-Identifier: Apache-2.0
needs heaptrack valgrind && server_here
