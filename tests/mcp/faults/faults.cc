// SPDX-License-Identifier: Apache-2.0
// Five faults beside honest work: faults NAME. The line to be found has its name behind it.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

struct Row {
    std::string name;
    long value;
};

static std::vector<Row> read_table(int count) {
    std::vector<Row> rows;
    rows.reserve(count);
    for (int i = 0; i < count; i++)
        rows.push_back({"row with a longer name " + std::to_string(i), i});
    return rows;
}

struct Session {
    std::shared_ptr<Session> peer;
    char state[400];
};

static void answer(int number) {
    std::string reply(300, 'x');
    reply[number % 300] = 'y';
    if (reply.size() == 7) puts(reply.c_str());
}

static void sessions(int count) {
    for (int i = 0; i < count; i++) {
        auto one = std::make_shared<Session>();  // leak
        one->peer = i % 5 ? nullptr : one;
        answer(i);
    }
}

class Cache {
    std::map<int, std::vector<char>> entries;

  public:
    size_t find(int key) {
        auto &entry = entries[key];
        if (entry.empty()) entry.assign(1500, 'c');  // cache
        return entry.size();
    }
};

static void look_ups(int count) {
    Cache cache;
    for (int i = 0; i < count; i++) {
        cache.find(i);
        answer(i);
    }
}

static size_t sort_table(const std::vector<Row> &rows) {
    std::vector<double> keys(rows.size() * 300);  // peak
    for (size_t i = 0; i < keys.size(); i++) keys[i] = double(i);
    return keys.size();
}

static size_t shorten(std::string text) {
    return text.find(' ');
}

static size_t parse(const std::vector<Row> &rows) {
    size_t sum = 0;
    for (int turn = 0; turn < 100; turn++)
        for (const Row &row : rows) sum += shorten(row.name);  // churn
    return sum;
}

static size_t join(int count) {
    std::vector<long> all;
    for (int i = 0; i < count; i++) {
        std::vector<long> more(all.size() + 4);  // grown
        std::copy(all.begin(), all.end(), more.begin());
        all.swap(more);
    }
    return all.size();
}

int main(int count, char **words) {
    std::string name = count > 1 ? words[1] : "";
    auto rows = read_table(2000);
    if (name == "leak") sessions(20000);
    if (name == "cache") look_ups(5000);
    if (name == "peak") printf("%zu\n", sort_table(rows));
    if (name == "churn") printf("%zu\n", parse(rows));
    if (name == "grown") printf("%zu\n", join(700));
    return 0;
}
