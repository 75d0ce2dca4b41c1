# SPDX-License-Identifier: Apache-2.0
# alone
loopback debuginfod.debian.net && server_here && recorded run.cairn && mkdir symbols more &&
    mount -t tmpfs none /mnt && mkdir /mnt/image && mount --bind / /mnt/image
