# SPDX-License-Identifier: Apache-2.0
# alone
loopback && lasting indexer && { ./indexer & } && mkdir .nginx && cat >.nginx/conf <<'END'
daemon off; master_process on; worker_processes 2; pid nginx.pid; error_log error.log;
events {}
http { access_log off; server { listen 127.0.0.1:8080; } }
END
export PATH=$PATH:/usr/sbin && needs nginx || return
nginx -p "$PWD/.nginx/" -c conf -e error.log >/dev/null 2>&1 &
until [ "$(pgrep -cx nginx)" = 3 ]; do sleep 0.1; done
