/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts for C++ (cairn/cairn.h, cairn_context): labels that travel with the work. C++17; the part for
 * coroutines C++20. As there, nothing is linked, and without cairn each call is a load and a test.
 *
 *     cairn::entered labels{{"tenant", "7"}, {"endpoint", "/search"}};   // until the end of the block
 *     cairn::thread worker(work, argument);      // begins in the context of the thread that makes it
 *     auto answer = cairn::async(look_up, key);
 *     pool.submit(cairn::carried([=] { work(); }));
 *
 * Executors of Asio: cairn/asio.hpp.
 */
#ifndef CAIRN_CONTEXT_HPP
#define CAIRN_CONTEXT_HPP

#include <cairn/cairn.h>

#include <functional>
#include <future>
#include <initializer_list>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#if __cplusplus >= 202002L && __has_include(<coroutine>)
#include <coroutine>
#endif

namespace cairn {

struct label {
    const char *key, *value;
};

/* Labels, or a context that was taken elsewhere, until the end of the block, on this thread. */
class entered {
  public:
    entered(std::initializer_list<label> labels) {
        cairn_context context = cairn_context_current();
        for (const label &one : labels) context = cairn_context_with(context, one.key, one.value);
        cairn_context_enter(context);
    }
    explicit entered(cairn_context context) { cairn_context_enter(context); }
    entered(const entered &) = delete;
    entered &operator=(const entered &) = delete;
    ~entered() { cairn_context_leave(); }
};

/* A function that runs in the context in which it was wrapped, wherever it is called: for executors and
 * queues. */
template <class Function> auto carried(Function &&function) {
    return [context = cairn_context_current(), function = std::decay_t<Function>(
                std::forward<Function>(function))](auto &&...arguments) mutable -> decltype(auto) {
        entered within(context);
        return std::invoke(function, std::forward<decltype(arguments)>(arguments)...);
    };
}

/* std::thread and std::async, in the context of the thread that calls. */
template <class Function, class... Arguments>
std::thread thread(Function &&function, Arguments &&...arguments) {
    return std::thread(carried(std::forward<Function>(function)),
                       std::forward<Arguments>(arguments)...);
}
template <class Function, class... Arguments>
auto async(std::launch policy, Function &&function, Arguments &&...arguments) {
    return std::async(policy, carried(std::forward<Function>(function)),
                      std::forward<Arguments>(arguments)...);
}
template <class Function, class... Arguments,
          class = std::enable_if_t<!std::is_same_v<std::decay_t<Function>, std::launch>>>
auto async(Function &&function, Arguments &&...arguments) {
    return std::async(carried(std::forward<Function>(function)),
                      std::forward<Arguments>(arguments)...);
}

#if defined(__cpp_impl_coroutine)
/* A base of a coroutine's promise: the coroutine runs in the context in which it was called, whichever
 * thread resumes it, and leaves it wherever it is suspended. What it enters itself it has to leave before
 * it awaits. A promise with an await_transform of its own returns travel(awaitable) from it; one that
 * suspends at its start, or whose final_suspend is reached, uses starting() and ending() there:
 *
 *     struct promise_type : cairn::context_promise {
 *         auto initial_suspend() { return starting(std::suspend_always()); }
 *         auto final_suspend() noexcept { return ending(std::suspend_always()); }
 *
 * Where a task keeps who awaits it, it says so to its promise: then stacks of what it allocates have the
 * awaiting coroutines too, whoever resumes it (cairn run --frames=async), each with its line:
 *
 *     auto await_suspend(std::coroutine_handle<Promise> awaiting) {
 *         task.promise().continuation = awaiting;
 *         task.promise().awaited_by(awaiting);
 */
class context_promise {
    cairn_context context_ = cairn_context_current();
    cairn_awaiters awaiters_ = 0;   /* who awaits this coroutine */
    const void *place_ = nullptr;   /* where it awaits itself */

    /* Where it is called: in a coroutine's own function, into which its callers are inlined. The compiler
     * is not to take two calls for one. */
    __attribute__((noinline)) static const void *here() {
        __asm__ volatile("");
        return __builtin_return_address(0);
    }

    template <class Awaitable> static decltype(auto) awaiter_of(Awaitable &&awaitable) {
        if constexpr (requires { std::forward<Awaitable>(awaitable).operator co_await(); })
            return std::forward<Awaitable>(awaitable).operator co_await();
        else if constexpr (requires { operator co_await(std::forward<Awaitable>(awaitable)); })
            return operator co_await(std::forward<Awaitable>(awaitable));
        else
            return std::forward<Awaitable>(awaitable);
    }

    /* `is_inside`: the coroutine is in its context as it comes here; `is_going_on`: as it goes on. */
    template <class Awaiter, bool is_inside, bool is_going_on> struct travelling {
        Awaiter awaiter;
        context_promise *promise;
        bool has_left = !is_inside;

        bool await_ready() noexcept(noexcept(awaiter.await_ready())) {
            bool is_ready = awaiter.await_ready();
            if (!is_ready) leave();
            return is_ready;
        }
        template <class Promise>
        auto await_suspend(std::coroutine_handle<Promise> handle) noexcept(
            noexcept(awaiter.await_suspend(handle))) {
            return awaiter.await_suspend(handle);
        }
        __attribute__((always_inline)) decltype(auto)
        await_resume() noexcept(noexcept(awaiter.await_resume())) {
            if (has_left && is_going_on) promise->enter();
            return awaiter.await_resume();
        }

      private:
        /* Before it is suspended: afterwards another thread may have it. */
        void leave() noexcept {
            if (!has_left) promise->leave();
            has_left = true;
        }
    };

    template <bool is_inside, bool is_going_on, class Awaitable> auto wrap(Awaitable &&awaitable) {
        using awaiter = decltype(awaiter_of(std::forward<Awaitable>(awaitable)));
        return travelling<awaiter, is_inside, is_going_on>{
            awaiter_of(std::forward<Awaitable>(awaitable)), this};
    }

    /* Called by the coroutine's own function, whose frame begins where this one ends. (A
     * coroutine's own frame address differs from one resumption to the next; compilers take it for a
     * constant.) */
    __attribute__((noinline)) void enter() noexcept {
        cairn_context_enter(context_);
        cairn_resumed(awaiters_, __builtin_dwarf_cfa());
    }
    void leave() noexcept {
        cairn_suspended();
        cairn_context_leave();
    }

  public:
    template <class Awaitable>
    __attribute__((always_inline)) auto travel(Awaitable &&awaitable) {
        place_ = here();
        return wrap<true, true>(std::forward<Awaitable>(awaitable));
    }
    template <class Awaitable>
    __attribute__((always_inline)) auto await_transform(Awaitable &&awaitable) {
        return travel(std::forward<Awaitable>(awaitable));
    }
    /* The coroutine of that handle awaits this one: before it is resumed the next time. */
    template <class Promise> void awaited_by(std::coroutine_handle<Promise> awaiting) noexcept {
        if constexpr (std::is_base_of_v<context_promise, Promise>) {
            const context_promise &outer = awaiting.promise();
            awaiters_ = cairn_awaited_at(outer.awaiters_, outer.place_);
        }
    }
    /* What initial_suspend returns. co_yield: yield_value returns travel(awaitable). */
    template <class Awaitable> auto starting(Awaitable &&awaitable) {
        return wrap<false, true>(std::forward<Awaitable>(awaitable));
    }
    template <class Awaitable> auto ending(Awaitable &&awaitable) noexcept {
        leave();
        return std::forward<Awaitable>(awaitable);
    }
};
#endif

} // namespace cairn

#endif
