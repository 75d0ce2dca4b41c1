# SPDX-License-Identifier: Apache-2.0
# alone
printf 'all: one two\none:\n\tg++ -c one.cc\ntwo:\n\tgcc -c two.c\n' >Makefile
echo 'int one() { return 1; }' >one.cc && echo 'int two(void) { return 2; }' >two.c
echo 'int main(void) { return 0; }' >static.c && gcc -static -s -o static static.c
# REDIS_WITH_JEMALLOC: the directory of a redis-server that has jemalloc inside, and of its client and benchmark
loopback || return
redis=$REDIS_WITH_JEMALLOC/redis-server
if [ -x "$redis" ] && ! ldd "$redis" | grep -q jemalloc; then
    redis_with_jemalloc_inside() { :; }
    stands 'redis-server --port' "$redis --port"
fi
served_by_redis() {
    set -- -p 7391
    "$REDIS_WITH_JEMALLOC/redis-cli" "$@" ping | grep -q PONG &&
        "$REDIS_WITH_JEMALLOC/redis-benchmark" "$@" -q -n 20000 -r 5000 -d 200 -t set,lpush,hset >/dev/null &&
        "$REDIS_WITH_JEMALLOC/redis-cli" "$@" shutdown
}
