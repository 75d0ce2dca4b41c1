// SPDX-License-Identifier: Apache-2.0
// Contexts on executors of Asio: posted work, a strand, a timer, coroutines that wait and go on in
// another thread. Sizes of blocks tell the tenant. Built by tests/e2e/asio.py.
#include <asio.hpp>
#include <cairn/asio.hpp>
#include <cstdio>
#include <cstdlib>
#include <vector>

static std::mutex lock;
static std::vector<void *> kept;

static __attribute__((noinline)) void take(size_t size) {
    void *block = malloc(size);
    std::lock_guard<std::mutex> guard(lock);
    kept.push_back(block);
}

static asio::awaitable<void> inner(size_t size) {
    asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::milliseconds(1));
    co_await timer.async_wait(asio::use_awaitable);
    take(size + 2);
}

static asio::awaitable<void> session(size_t size) {
    take(size);
    co_await asio::post(asio::use_awaitable);
    take(size + 1);
    co_await inner(size);
    take(size + 3);
}

static void plain(asio::thread_pool &pool) {
    cairn::entered labels{{"tenant", "posted"}};
    auto executor = cairn::in_context(pool.get_executor());
    asio::post(executor, [] { take(3000); });
    auto strand = asio::make_strand(executor);
    asio::dispatch(strand, [] { take(3001); });
    asio::any_io_executor any = executor;
    asio::post(asio::require(any, asio::execution::blocking.never), [] { take(3002); });
    auto timer =
        std::make_shared<asio::steady_timer>(pool.get_executor(), std::chrono::milliseconds(1));
    timer->async_wait(asio::bind_executor(executor, [timer](auto) { take(3003); }));
    if (executor != cairn::in_context(pool.get_executor())) abort();
    if (executor == cairn::in_context(pool.get_executor(), 0) && cairn_is_loaded()) abort();
}

int main() {
    asio::thread_pool pool(3);
    for (int i = 1; i <= 2; i++) {
        char name[8];
        snprintf(name, sizeof name, "%d", i);
        cairn::entered labels{{"tenant", name}};
        asio::co_spawn(cairn::in_context(pool.get_executor()),
                       session(1000 * static_cast<size_t>(i)), asio::detached);
    }
    plain(pool);
    asio::post(pool, [] { take(100000); });
    pool.join();
    take(100001);
    if (cairn_context_current() != 0) return 1;
    puts("done");
}
