// SPDX-License-Identifier: Apache-2.0
// A program to try cairn on: it answers requests of its own making for some two seconds, and has
// two faults. Sessions and connections hold each other, so that none is ever freed; the cache of
// answers has no bound.
//     g++ -O2 -g -o server examples/server.cc && cairn run ./server
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

struct Connection;

struct Session {
    std::shared_ptr<Connection> connection;
    std::string user;
    std::vector<char> input;
};

struct Connection {
    std::shared_ptr<Session> session;  // and so neither goes
    int number = 0;
};

class SessionTable {
  public:
    void open(int number) {
        auto session = std::make_shared<Session>();
        auto connection = std::make_shared<Connection>();
        connection->session = session;
        connection->number = number;
        session->connection = connection;
        session->user = "somebody with a long name, number " + std::to_string(number);
        session->input.reserve(8192);
    }
};

class ResponseCache {
  public:
    const std::string &find(const std::string &page) {
        auto &response = responses[page];
        if (!response) response = std::make_shared<std::string>(600, 'x');
        return *response;
    }

  private:
    std::map<std::string, std::shared_ptr<std::string>> responses;
};

class Server {
  public:
    std::size_t handle(int number) {
        auto words =
            parse("GET /pages/of/the/library/" + std::to_string(number / 3) + ".html HTTP/1.1");
        if (number % 20 == 0) sessions.open(number);
        return cache.find(words[1]).size();
    }

  private:
    static std::vector<std::string> parse(const std::string &request) {
        std::vector<std::string> words;
        for (std::size_t at = 0, end; at < request.size(); at = end + 1) {
            end = request.find(' ', at);
            if (end == std::string::npos) end = request.size();
            words.push_back(request.substr(at, end - at));
        }
        return words;
    }

    SessionTable sessions;
    ResponseCache cache;
};

// The next requests are on their way.
void wait_for_more() {
    std::this_thread::sleep_for(std::chrono::milliseconds(22));
}

int main(int argc, char **argv) {
    Server server;
    std::size_t sent = 0;
    int requests = argc > 1 ? std::atoi(argv[1]) : 100000;
    for (int number = 0; number < requests; number++) {
        if (number % 1000 == 0) wait_for_more();
        sent += server.handle(number);
    }
    std::printf("%d requests, %zu bytes sent\n", requests, sent);
    return 0;
}
