// SPDX-License-Identifier: Apache-2.0
// Listeners of events in a map. Planted: what tells them must not throw, and allocates.
#include <cstdio>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <vector>

#ifdef RIGHT
#define PROMISED
#else
#define PROMISED noexcept
#endif

class Events {
  public:
    void listen(const std::string &name, std::function<void(const std::string &)> listener) {
        listeners[name].push_back(std::move(listener));
    }
    void tell(const std::string &name, int count) PROMISED {
        std::string text =
            "an event of the name " + name + " came " + std::to_string(count) + " times";
        for (const auto &listener : listeners[name]) listener(text);
    }

  private:
    std::map<std::string, std::vector<std::function<void(const std::string &)>>> listeners;
};

int main() {
    try {
        Events events;
        events.listen("saved", [](const std::string &text) { std::puts(text.c_str()); });
        events.tell("saved", 3);
    } catch (const std::bad_alloc &) {
        std::fputs("no memory\n", stderr);
        return 1;
    }
    return 0;
}
