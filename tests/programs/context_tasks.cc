// SPDX-License-Identifier: Apache-2.0
// Contexts of C++ tasks: coroutines that other threads resume, std::thread, std::async, functions
// for queues.
#include <cairn/context.hpp>
#include <cstdio>
#include <cstdlib>
#include <vector>
struct task {
    struct promise_type : cairn::context_promise {
        task get_return_object() {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        auto initial_suspend() {
            return starting(std::suspend_always());
        }
        auto final_suspend() noexcept {
            return ending(std::suspend_always());
        }
        void return_void() {}
        void unhandled_exception() {
            std::terminate();
        }
    };
    std::coroutine_handle<promise_type> handle;
};
void *kept[64];
int count;
__attribute__((noinline)) void take(size_t size) {
    kept[count++] = malloc(size);
}
task serve(size_t size) {
    take(size);
    co_await std::suspend_always();
    take(size + 1);
    co_await std::suspend_never();
    take(size + 2);
}
int main() {
    task one, two;
    {
        cairn::entered in{{"tenant", "one"}};
        one = serve(1000);
    }
    {
        cairn::entered in{{"tenant", "two"}};
        two = serve(2000);
    }
    one.handle.resume();
    two.handle.resume();
    take(100000);
    std::thread([&] {
        one.handle.resume();
        take(100001);
    }).join();
    two.handle.resume();
    {
        cairn::entered in{{"tenant", "three"}, {"endpoint", "/x"}};
        cairn::thread(take, 3000).join();
        cairn::async(
            std::launch::async,
            [](size_t size) {
                take(size);
                return 1;
            },
            3001)
            .get();
        cairn::async([] { take(3002); }).get();
        auto job = cairn::carried([](size_t size) {
            take(size);
            return 7;
        });
        cairn::entered other{{"tenant", "four"}};
        if (job(3003) != 7) return 1;
        take(4000);
    }
    take(100002);
    if (cairn_context_leave()) return 2;
    one.handle.destroy();
    two.handle.destroy();
    puts("done");
}
