// SPDX-License-Identifier: Apache-2.0
// A program that has blocks of known kinds and sizes before anybody looks: `before`. It says
// "ready" and then does what it is told on stdin, a line each, answering "done":
//   free N      frees N of its shapes, N of its texts and N of its large blocks
//   grow N      reallocs N of its texts to twice their size
//   point N     makes N blocks that each begin with the address of another constant, then a Late
//   end         ends
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <vector>

namespace drawing {
struct Shape {
    virtual ~Shape() = default;
    double x = 1, y = 2;
};
struct Circle : Shape {
    double radius = 3;
};
struct Square : Shape {
    double side = 4;
    char name[80] = "square";
};
struct Late : Shape {
    double late = 5;
};
extern const char marks[4096];
const char marks[4096] = "";
}  // namespace drawing

namespace {
enum {
    CIRCLES = 300,
    SQUARES = 200,
    TEXTS = 1000,
    TEXT_BYTES = 100,
    LARGE = 5,
    LARGE_BYTES = 1 << 20
};

std::vector<drawing::Shape *> circles, squares;
std::vector<char *> texts;
std::vector<void *> large;
std::vector<const char **> pointers;

void make() {
    for (int i = 0; i < CIRCLES; i++) circles.push_back(new drawing::Circle);
    for (int i = 0; i < SQUARES; i++) squares.push_back(new drawing::Square);
    for (int i = 0; i < TEXTS; i++) {
        texts.push_back(static_cast<char *>(malloc(TEXT_BYTES)));
        memset(texts.back(), 'x', TEXT_BYTES);
    }
    for (int i = 0; i < LARGE; i++) large.push_back(calloc(1, LARGE_BYTES));
}

template <typename Item, typename Free>
void drop(std::vector<Item> &items, size_t count, Free free_one) {
    for (; count && !items.empty(); count--) {
        free_one(items.back());
        items.pop_back();
    }
}

void obey(const char *line) {
    size_t count = 0;
    if (sscanf(line, "free %zu", &count) == 1) {
        drop(circles, count, [](drawing::Shape *shape) { delete shape; });
        drop(squares, count, [](drawing::Shape *shape) { delete shape; });
        drop(texts, count, [](char *text) { free(text); });
        drop(large, count, [](void *block) { free(block); });
    } else if (sscanf(line, "grow %zu", &count) == 1) {
        for (size_t i = 0; i < count && i < texts.size(); i++)
            texts[i] = static_cast<char *>(realloc(texts[i], 2 * TEXT_BYTES));
    } else if (sscanf(line, "point %zu", &count) == 1) {
        for (size_t i = 0; i < count && i < sizeof drawing::marks; i++) {
            pointers.push_back(static_cast<const char **>(malloc(sizeof(char *))));
            *pointers.back() = &drawing::marks[i];
        }
        circles.push_back(new drawing::Late);
    }
}
}  // namespace

int main() {
    static char in[4096], out[4096];  // stdio's own would be allocated
    char line[256];
    setvbuf(stdin, in, _IOLBF, sizeof in);
    setvbuf(stdout, out, _IOLBF, sizeof out);
    make();
    puts("ready");
    while (fgets(line, sizeof line, stdin) && strncmp(line, "end", 3) != 0) {
        obey(line);
        puts("done");
    }
    return 0;
}
