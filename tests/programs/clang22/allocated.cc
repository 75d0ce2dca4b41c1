// SPDX-License-Identifier: Apache-2.0
// Objects to which only a void pointer leads: what they are, calls of operator new say
// (DW_AT_LLVM_alloc_type). allocated.s is made of it by clang 22, since few machines have that:
//     clang++-22 --target=x86_64-linux-gnu -O1 -g -fno-ident -fno-addrsig -fdebug-compilation-dir=.
//     \
//         -fPIC -S allocated.cc
extern "C" int puts(const char *text);
extern "C" int getchar();
extern "C" int fflush(void *file);

struct Item {
    long numbers[6];
    Item *next;
};

struct Row {
    char text[40];
    Item *item;
};

struct Counted {
    ~Counted();
    Item *item;
};
Counted::~Counted() {
    delete item;
}

enum { ITEMS = 5, ROWS = 7 };
void *kept[4];

__attribute__((noinline)) static Item *make_item(Item *next) {
    return new Item{{}, next};
}

int main() {
    Item *items = nullptr;
    for (int i = 0; i < ITEMS; i++) items = make_item(items);
    kept[0] = items;
    Row *rows = new Row[ROWS]();
    rows[ROWS - 1].item = new Item();
    kept[1] = rows;
    Counted *counted = new Counted[3]();
    counted[2].item = new Item();
    kept[2] = counted;
    puts("ready");
    fflush(nullptr);
    return getchar() == 'x';
}
