# SPDX-License-Identifier: Apache-2.0
# alone
needs php8.2 || return
sed -n '/^    <?php/,/^    echo/s/^    //p' "$SOURCE_DIR/docs/howto/php.md" >rows.php && cp rows.php app.php || return
php8.2 -r 'sleep(600);' &
DOC_PID=$!
until grep -q locale-archive "/proc/$DOC_PID/maps" || grep -q opcache "/proc/$DOC_PID/maps" || grep -q "sockets.so" "/proc/$DOC_PID/maps"; do sleep 0.05; done
