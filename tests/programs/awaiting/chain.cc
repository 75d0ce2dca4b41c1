// SPDX-License-Identifier: Apache-2.0
// Coroutines that await each other and are resumed by a scheduler, in another thread, by symmetric
// transfer or directly. Each allocation prints who is to be in its stack: size, functions from the
// inside out. Built by tests/e2e/awaiting.py.
#include <cairn/context.hpp>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <thread>
#include <vector>

static std::deque<std::coroutine_handle<>> ready;  // the scheduler's
static std::vector<void *> kept;

static __attribute__((noinline)) void take(size_t size) {
    kept.push_back(malloc(size));
}

struct scheduled {  // co_await scheduled(): a scheduler goes on with it
    bool await_ready() const noexcept {
        return false;
    }
    void await_suspend(std::coroutine_handle<> handle) const {
        ready.push_back(handle);
    }
    void await_resume() const noexcept {}
};

enum class how { transfer, directly };

template <how how> struct task {
    struct promise_type : cairn::context_promise {
        std::coroutine_handle<> continuation;
        task get_return_object() {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        auto initial_suspend() {
            return starting(std::suspend_always());
        }
        struct last {
            bool await_ready() const noexcept {
                return false;
            }
            std::coroutine_handle<>
            await_suspend(std::coroutine_handle<promise_type> handle) const noexcept {
                auto next = handle.promise().continuation;
                return next ? next : std::noop_coroutine();
            }
            void await_resume() const noexcept {}
        };
        auto final_suspend() noexcept {
            return ending(last());
        }
        void return_void() {}
        void unhandled_exception() {
            std::terminate();
        }
    };
    std::coroutine_handle<promise_type> handle;
    struct awaiter {
        std::coroutine_handle<promise_type> handle;
        bool await_ready() const noexcept {
            return false;
        }
        template <class Promise> auto await_suspend(std::coroutine_handle<Promise> awaiting) const {
            handle.promise().continuation = awaiting;
            handle.promise().awaited_by(awaiting);
            if constexpr (how == how::directly)
                handle.resume();
            else
                return std::coroutine_handle<>(handle);
        }
        void await_resume() const noexcept {}
    };
    awaiter operator co_await() const {
        return {handle};
    }
};

template <how how> task<how> leaf(size_t size) {
    take(size);  // the first time it runs
    co_await scheduled();
    take(size + 1);  // by the scheduler
}
template <how how> task<how> middle(size_t size) {
    take(size + 2);
    co_await leaf<how>(size);
    take(size + 3);  // by the leaf's end
    co_await leaf<how>(size + 10);
}
template <how how> task<how> outer(size_t size) {
    co_await scheduled();
    co_await middle<how>(size);
    take(size + 4);
}
// Nobody awaits it.
template <how how> task<how> detached(size_t size) {
    co_await scheduled();
    take(size);
}

static __attribute__((noinline)) void run_all() {
    while (!ready.empty()) {
        auto next = ready.front();
        ready.pop_front();
        next.resume();
    }
}

int main() {
    auto first = outer<how::transfer>(1000);
    auto second = outer<how::directly>(2000);
    auto third = detached<how::transfer>(3000);
    first.handle.resume();
    second.handle.resume();
    third.handle.resume();
    std::thread(run_all).join();
    take(4000);
    puts("done");
}
