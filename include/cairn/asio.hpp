/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts (cairn/context.hpp) for Asio 1.18 and later: an executor that runs each function in a context,
 * that of the thread that made it unless one is given. Everything that goes by it is in that context, on
 * whichever thread: handlers, timers and sockets of that executor, and coroutines.
 *
 *     asio::co_spawn(cairn::in_context(io.get_executor()), session(std::move(socket)), asio::detached);
 *     asio::post(cairn::in_context(pool.get_executor()), work);
 *     socket.async_read_some(buffer, asio::bind_executor(cairn::in_context(executor), handler));
 *
 * With CAIRN_BOOST_ASIO defined it is for Boost.Asio.
 */
#ifndef CAIRN_ASIO_HPP
#define CAIRN_ASIO_HPP

#include <cairn/context.hpp>

#if defined(CAIRN_BOOST_ASIO)
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>
#if __has_include(<boost/asio/execution/execute.hpp>)
#include <boost/asio/execution/execute.hpp>
#define CAIRN_ASIO_HAS_EXECUTE_
#endif
namespace cairn {
namespace asio_ = ::boost::asio;
}
#else
#include <asio/prefer.hpp>
#include <asio/query.hpp>
#include <asio/require.hpp>
#if __has_include(<asio/execution/execute.hpp>)
#include <asio/execution/execute.hpp>
#define CAIRN_ASIO_HAS_EXECUTE_
#endif
namespace cairn {
namespace asio_ = ::asio;
}
#endif

namespace cairn {

/* Executors of earlier versions have an execute() that only Asio itself may call. */
template <class Executor, class Function>
auto asio_execute_(const Executor &executor, Function &&function, int)
    -> decltype(executor.execute(std::forward<Function>(function))) {
    executor.execute(std::forward<Function>(function));
}
#if defined(CAIRN_ASIO_HAS_EXECUTE_)
template <class Executor, class Function>
void asio_execute_(const Executor &executor, Function &&function, long) {
    asio_::execution::execute(executor, std::forward<Function>(function));
}
#endif

/* Asio's questions and demands go to the executor within. */
template <class Executor> class in_context {
    Executor executor_;
    cairn_context context_;

    template <class Other> in_context<std::decay_t<Other>> with(Other &&other) const {
        return in_context<std::decay_t<Other>>(std::forward<Other>(other), context_);
    }

  public:
    explicit in_context(Executor executor, cairn_context context = cairn_context_current()) noexcept
        : executor_(std::move(executor)), context_(context) {}

    template <class Function> void execute(Function &&function) const {
        auto carried = [context = context_, function = std::decay_t<Function>(
                            std::forward<Function>(function))]() mutable {
            entered within(context);
            std::move(function)();
        };
        asio_execute_(executor_, std::move(carried), 0);
    }
    template <class Property>
    auto query(const Property &property) const
        noexcept(asio_::is_nothrow_query<const Executor &, const Property &>::value)
            -> decltype(asio_::query(std::declval<const Executor &>(), property)) {
        return asio_::query(executor_, property);
    }
    template <class Property>
    auto require(const Property &property) const -> in_context<
        std::decay_t<decltype(asio_::require(std::declval<const Executor &>(), property))>> {
        return with(asio_::require(executor_, property));
    }
    template <class Property>
    auto prefer(const Property &property) const -> in_context<
        std::decay_t<decltype(asio_::prefer(std::declval<const Executor &>(), property))>> {
        return with(asio_::prefer(executor_, property));
    }
    friend bool operator==(const in_context &one, const in_context &other) noexcept {
        return one.context_ == other.context_ && one.executor_ == other.executor_;
    }
    friend bool operator!=(const in_context &one, const in_context &other) noexcept {
        return !(one == other);
    }
};

} // namespace cairn

#endif
