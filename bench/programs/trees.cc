// SPDX-License-Identifier: Apache-2.0
// trees TREES: builds and frees syntax trees of random expressions by recursive descent, as a
// parser does. Functions call each other from many places, so that a hundred thousand trees have
// more than a million different stacks, and most come back. Prints the number of nodes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

struct Node {
    std::string text;
    std::vector<std::unique_ptr<Node>> parts;
    explicit Node(const char *name) : text(name) {}
};
using Tree = std::unique_ptr<Node>;

// Deeper expressions are leaves, and less deep ones never.
enum { DEPTH_LEAST = 3, DEPTH_MOST = 6 };

class Builder {
  public:
    explicit Builder(uint64_t seed) : state(seed) {}
    long nodes = 0;

    __attribute__((noinline)) Tree expression(int depth) {
        if (depth > DEPTH_MOST || (depth > DEPTH_LEAST && chance(5) == 0)) return leaf();
        switch (chance(5)) {
        case 0:
            return binary(depth);
        case 1:
            return call(depth);
        case 2:
            return choice(depth);
        case 3:
            return index(depth);
        default:
            return negation(depth);
        }
    }

  private:
    uint64_t state;

    unsigned chance(unsigned of) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return static_cast<unsigned>(state >> 33) % of;
    }
    Tree make(const char *name) {
        nodes++;
        return std::make_unique<Node>(name);
    }
    __attribute__((noinline)) Tree leaf() {
        // Longer than a std::string holds inside itself: a block more.
        return chance(2) ? make("x") : make("a rather long identifier");
    }
    __attribute__((noinline)) Tree binary(int depth) {
        Tree node = make("+");
        node->parts.push_back(expression(depth + 1));
        node->parts.push_back(expression(depth + 1));
        return node;
    }
    __attribute__((noinline)) Tree call(int depth) {
        Tree node = make("call of a function");
        for (unsigned left = chance(3); left; left--) node->parts.push_back(expression(depth + 1));
        return node;
    }
    __attribute__((noinline)) Tree choice(int depth) {
        Tree node = make("?");
        node->parts.push_back(negation(depth + 1));
        node->parts.push_back(expression(depth + 1));
        return node;
    }
    __attribute__((noinline)) Tree index(int depth) {
        Tree node = make("[]");
        node->parts.push_back(leaf());
        node->parts.push_back(expression(depth + 1));
        return node;
    }
    __attribute__((noinline)) Tree negation(int depth) {
        Tree node = make("-");
        node->parts.push_back(expression(depth + 1));
        return node;
    }
};

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: trees TREES\n");
        return 2;
    }
    Builder builder(88172645463325252u);
    for (int i = 0; i < atoi(argv[1]); i++) builder.expression(0);
    printf("%ld\n", builder.nodes);
}
