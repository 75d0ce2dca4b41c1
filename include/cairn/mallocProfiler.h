// SPDX-License-Identifier: Apache-2.0
//
// mallocProfiler.h: the names of MallocProfiler's interface on top of cairn.h, so that C++17 code
// which was instrumented for it compiles and runs, without cairn too. What differs:
//   - nothing is printed at the end or in between unless it is asked for: the recording has it all.
//     So noFinalDump() and setVerbose() have nothing to do.
//   - every stack is recorded, whatever the threshold: that only leaves out of dump() stacks whose
//     mean size is below it (`reverse`: above).
//   - in dump() the maximum of a stack is the larger one of what it held at the heap's peak and
//   now.
//   - clear() sets summary() back; dump() goes on to show all of the recording.
//   - histograms are by the number of bits of the size; of live blocks only those are in it whose
//     stack allocates blocks of one size.
//   - settings of dump() (threshold, remangler, ...) are those of the executable or library that
//   calls
//     it: what a preloaded library sets holds for its own dumps.
// To start switched off: cairn run --off, or CAIRN_OFF=1 beside LD_PRELOAD.
#ifndef CAIRN_MALLOCPROFILER_H
#define CAIRN_MALLOCPROFILER_H

#include <cairn/cairn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

namespace mallocProfiler {

enum class SortBy { none, tot, live, max, ncalls };

struct Stat {
    double mtot = 0;     // bytes allocated
    uint64_t mlive = 0;  // bytes live
    uint64_t mmax = 0;   // most bytes live
    uint64_t ntot = 0;   // calls
};

// May change a symbol's name; true: cut the stack there.
using remangleType = bool (*)(std::string &name);

constexpr bool allThreads = true;
constexpr bool currentThread = false;

namespace detail {

struct Settings {
    std::atomic<std::size_t> threshold{0};
    std::atomic<bool> isReverse{false}, isWithoutZeroLive{false}, isDumping{false};
    std::atomic<remangleType> remangler{nullptr};
    std::atomic<long> summarySeconds{0}, dumpSeconds{0};
    cairn_stats processBase{};
};
inline Settings settings;
inline thread_local cairn_stats threadBase{};

inline cairn_stats statsOf(bool isAll) {
    cairn_stats stats;
    cairn_stats_of(isAll ? CAIRN_PROCESS : CAIRN_THREAD, &stats);
    return stats;
}

inline const char *rename(const char *name, void *context) {
    std::string &text = *static_cast<std::string *>(context);
    text = name;
    return settings.remangler.load()(text) ? nullptr : text.c_str();
}

// A report as text. What making it allocates here is not recorded.
inline std::string reportText(std::string form, bool isAll, bool isRenamed) {
    if (!isAll) form += " --thread " + std::to_string(syscall(SYS_gettid));
    std::string name, text;
    int file = memfd_create("report", MFD_CLOEXEC);
    bool mayRename = isRenamed && settings.remangler.load();
    int problem = cairn_report(file, form.c_str(), mayRename ? rename : nullptr, &name);
    off_t length = problem || file < 0 ? 0 : lseek(file, 0, SEEK_END);
    text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    for (std::size_t at = 0; at < text.size();) {
        ssize_t got = pread(file, &text[at], text.size() - at, static_cast<off_t>(at));
        if (got <= 0) text.resize(at);
        if (got > 0) at += static_cast<std::size_t>(got);
    }
    if (file >= 0) close(file);
    return text;
}

// A line "_mpTrace_;outer;...;inner $calls$total$live$max".
struct Line {
    std::string stack;
    long long values[4];  // calls, total, live, max
};

inline bool readLine(const std::string &line, Line &read) {
    std::size_t at = line.rfind(" $");
    if (line.compare(0, 10, "_mpTrace_;") != 0 || at == std::string::npos) return false;
    read.stack = line.substr(0, at);
    for (long long &value : read.values) {
        at = line.find('$', at);
        if (at == std::string::npos) return false;
        value = std::strtoll(line.c_str() + ++at, nullptr, 10);
    }
    return true;
}

inline bool isWanted(const Line &line) {
    if (settings.isWithoutZeroLive && line.values[2] <= 0) return false;
    long long calls = std::max(line.values[0], 1LL), mean = line.values[1] / calls;
    auto threshold = static_cast<long long>(settings.threshold.load());
    return !threshold || (settings.isReverse ? mean <= threshold : mean >= threshold);
}

inline std::vector<Line> readLines(const std::string &text) {
    std::vector<Line> lines;
    for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
        Line line;
        if (readLine(text.substr(at, end - at), line) && isWanted(line)) lines.push_back(line);
    }
    return lines;
}

// Switches the calling thread off as long as it lives.
struct Pause {
    bool was = cairn_is_enabled(CAIRN_THREAD) != 0;
    Pause() {
        cairn_disable(CAIRN_THREAD);
    }
    ~Pause() {
        if (was) cairn_enable(CAIRN_THREAD);
    }
    Pause(const Pause &) = delete;
    Pause &operator=(const Pause &) = delete;
};

}  // namespace detail

inline bool loaded() {
    return cairn_is_loaded() != 0;
}

// The whole profiler. A thread records if it is enabled and the thread is active.
inline void enable() {
    cairn_enable(CAIRN_PROCESS);
}
inline void disable() {
    cairn_disable(CAIRN_PROCESS);
}
inline bool enabled() {
    return cairn_is_enabled(CAIRN_PROCESS) != 0;
}

inline void activate(bool isAll = allThreads) {
    cairn_enable(isAll ? CAIRN_PROCESS : CAIRN_THREAD);
}
inline void deactivate(bool isAll = allThreads) {
    cairn_disable(isAll ? CAIRN_PROCESS : CAIRN_THREAD);
}
inline bool active(bool isAll = allThreads) {
    return cairn_is_enabled(isAll ? CAIRN_PROCESS : CAIRN_THREAD) != 0;
}

// Figures since the start, or the last clear().
inline Stat summary(bool isAll = allThreads) {
    const cairn_stats now = detail::statsOf(isAll);
    const cairn_stats &base = isAll ? detail::settings.processBase : detail::threadBase;
    auto positive = [](int64_t bytes) { return static_cast<uint64_t>(bytes > 0 ? bytes : 0); };
    return {static_cast<double>(now.allocated_bytes - base.allocated_bytes),
            positive(now.live_bytes - base.live_bytes), positive(now.peak_bytes - base.live_bytes),
            now.allocations - base.allocations};
}
inline void clear(bool isAll = allThreads) {
    (isAll ? detail::settings.processBase : detail::threadBase) = detail::statsOf(isAll);
}

using Hist = std::array<uint64_t, CAIRN_HISTOGRAM_ENTRIES>;
inline Hist memTotHistogram() {
    cairn_histogram found;
    Hist result;
    cairn_histogram_of(&found);
    std::copy(std::begin(found.allocations), std::end(found.allocations), result.begin());
    return result;
}
inline Hist memLiveHistogram() {
    cairn_histogram found;
    Hist result;
    cairn_histogram_of(&found);
    std::copy(std::begin(found.live), std::end(found.live), result.begin());
    return result;
}

inline void setThreshold(std::size_t value, bool reverse = false) {
    detail::settings.threshold = value;
    detail::settings.isReverse = reverse;
}
inline std::size_t getThreshold() {
    return detail::settings.threshold;
}
inline void noZeroLiveDump(bool no) {
    detail::settings.isWithoutZeroLive = no;
}
inline void noFinalDump() {}
inline void setVerbose(bool) {}

inline void setRemangler(remangleType remangler) {
    detail::settings.remangler = remangler;
}
inline remangleType getCurrentRemangler() {
    return detail::settings.remangler;
}
inline remangleType getDefaultRemangler() {
    return nullptr;
}

// A line a stack: calls, bytes in total, live, and most, behind separators.
inline std::ostream &dump(std::ostream &out, char separator = '$', SortBy mode = SortBy::none,
                          bool isAll = allThreads) {
    if (!loaded()) return out;
    detail::Pause pause;
    std::vector<detail::Line> lines = detail::readLines(detail::reportText("mptrace", isAll, true));
    const int columns[] = {-1, 1, 2, 3, 0};  // by SortBy
    const int column = columns[static_cast<int>(mode)];
    if (column >= 0)
        std::stable_sort(lines.begin(), lines.end(), [column](const auto &a, const auto &b) {
            return a.values[column] > b.values[column];
        });
    for (const detail::Line &line : lines) {
        out << line.stack << ' ';
        for (long long value : line.values) out << separator << value;
        out << '\n';
    }
    return out.flush();
}

// The stacks with a line a frame, file and line beside it, outwards until the first name that has
// `from` in it; "": until the calling function.
inline std::ostream &dumpDetails(std::ostream &out, const std::string &from = "",
                                 bool isAll = allThreads,
                                 const char *caller = __builtin_FUNCTION()) {
    if (!loaded()) return out;
    detail::Pause pause;
    const std::string text = detail::reportText("stacks --top 0 --depth 0", isAll, false);
    const std::string last = from.empty() ? caller : from;
    bool isCut = false;
    for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
        const std::string line = text.substr(at, end - at);
        const bool isFrame = line.compare(0, 10, "          ") == 0;
        if (!isFrame) isCut = false;
        if (!isCut) out << line << '\n';
        if (isFrame && line.find(last) != std::string::npos) isCut = true;
    }
    return out.flush();
}

// From now on, in a thread of its own: a line of figures for the process into memstat_PID.dat every
// `summaryLap`, a dump into memdump_PID_N.mdr every `dumpLap`; 0: none.
inline void setDumpingInterval(const std::chrono::seconds &summaryLap,
                               const std::chrono::seconds &dumpLap) {
    detail::settings.summarySeconds = static_cast<long>(summaryLap.count());
    detail::settings.dumpSeconds = static_cast<long>(dumpLap.count());
    if (!loaded() || detail::settings.isDumping.exchange(true)) return;
    std::thread([] {
        cairn_disable(CAIRN_THREAD);
        const std::string pid = std::to_string(getpid());
        std::ofstream figures("memstat_" + pid + ".dat");
        for (long second = 1, number = 0;; second++) {
            std::this_thread::sleep_for(std::chrono::seconds(1));
            long summaryEvery = detail::settings.summarySeconds,
                 dumpEvery = detail::settings.dumpSeconds;
            if (summaryEvery && second % summaryEvery == 0) {
                const Stat now = summary();
                figures << second << ' ' << now.ntot << ' ' << now.mtot << ' ' << now.mlive << ' '
                        << now.mmax << std::endl;
            }
            if (dumpEvery && second % dumpEvery == 0) {
                std::ofstream file("memdump_" + pid + '_' + std::to_string(number++) + ".mdr");
                dump(file);
            }
        }
    }).detach();
}

}  // namespace mallocProfiler

#endif
