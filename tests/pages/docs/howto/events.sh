# SPDX-License-Identifier: Apache-2.0
# alone
loopback && server_here && git init -q . && for i in 1 2 3 4 5; do
    date >"file$i" && git add file* && git -c user.name=a -c user.email=a@b commit -qm "one more"
done && redis_recorded
