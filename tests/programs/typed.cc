// SPDX-License-Identifier: Apache-2.0
// Objects whose types and ways from variables are known: the program prints, as "WAY ADDRESS SIZE
// TYPE", some blocks with what `cairn core PID explain` is to say of them, and sums by type and of
// containers. Then it waits for its input to end.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

enum { COUNT = 20, TEXT = 40, LONG = 60, LINKS = 400 };

struct Item {
    int id;
    char *text;
    std::string name;
};

struct Base {
    virtual ~Base() {}
    Item *item = nullptr;
};

struct Derived : Base {
    std::vector<int> numbers;
    std::unique_ptr<Item> one;
};

struct Table {  // as programs in C have them
    struct Entry {
        struct Entry *next;
        void *value;
    } * *buckets;
    union {
        char *as_text;
        long as_number;
    } either;
};

struct Registry {
    std::map<int, Item *> by_id;
    std::set<Item *> all;
    std::list<Item> items;
    std::forward_list<Item *> forward;
    std::unordered_map<std::string, std::unique_ptr<Item>> by_name;
    std::unordered_set<Item *> set;
    std::vector<Base *> bases;
    std::deque<Item> deque;
    std::optional<Item> maybe;
    std::optional<Item> nothing;
    std::variant<int, Item, std::vector<Item>> choice;
    std::shared_ptr<Item> shared;
    std::shared_ptr<Derived> made;
    Table table;
};

struct Link {
    Link *next;
    char *text;
};

static Link *links;
static Registry registry;
static Registry *made;
static thread_local Item *of_thread;

// Every item is in one place only.
static Item item_of(int number) {
    return Item{number, static_cast<char *>(malloc(TEXT)), std::string(LONG, 'x')};
}

static Item *new_item(int number) {
    return new Item(item_of(number));
}

static void show(const char *way, const void *block, const char *type) {
    printf("%s\t%" PRIxPTR "\t%s\n", way, reinterpret_cast<uintptr_t>(block), type);
}

static void fill(Registry &into) {
    for (int i = 0; i < COUNT; i++) {
        into.by_id[i] = new_item(i);
        into.all.insert(new_item(i));
        into.items.push_back(item_of(i));
        into.forward.push_front(new_item(i));
        into.by_name[std::to_string(i)] = std::unique_ptr<Item>(new_item(i));
        into.set.insert(new_item(i));
        auto *derived = new Derived;
        derived->item = new_item(i);
        derived->numbers.resize(100);
        derived->one.reset(new_item(i));
        into.bases.push_back(derived);
        into.deque.push_back(item_of(i));
    }
    into.maybe = item_of(COUNT);
    into.choice = std::vector<Item>();
    std::get<2>(into.choice).reserve(5);
    for (int i = 0; i < 5; i++) std::get<2>(into.choice).push_back(item_of(i));
    into.shared.reset(new_item(COUNT));
    into.made = std::make_shared<Derived>();
    into.made->item = new_item(COUNT);
    into.table.buckets = static_cast<Table::Entry **>(calloc(8, sizeof(Table::Entry *)));
    for (int i = 0; i < 16; i++) {
        auto *entry = static_cast<Table::Entry *>(malloc(sizeof(Table::Entry)));
        *entry = {into.table.buckets[i / 2], malloc(100)};
        into.table.buckets[i / 2] = entry;
    }
    into.table.either.as_text = static_cast<char *>(malloc(TEXT));
}

static void show_all(const char *name, const char *arrow, Registry &of) {
    auto way = [&](const char *rest) {
        static char text[256];
        snprintf(text, sizeof text, "%s%s%s", name, arrow, rest);
        return text;
    };
    show(way("by_id[*].second"), of.by_id[7], "Item");
    show(way("by_id[*].second->text"), of.by_id[7]->text, "char[]");
    show(way("by_id[*].second->name"), of.by_id[7]->name.data(), "char[]");
    show(way("all[*]->text"), (*of.all.begin())->text, "char[]");
    show(way("items[*].text"), of.items.back().text, "char[]");
    show(way("forward[*]->text"), of.forward.front()->text, "char[]");
    show(way("by_name[*].second->text"), of.by_name["13"]->text, "char[]");
    show(way("set[*]->text"), (*of.set.begin())->text, "char[]");
    show(way("bases[11]"), of.bases[11], "Derived");
    show(way("bases[11]->item->text"), of.bases[11]->item->text, "char[]");
    show(way("bases[3]->numbers"), static_cast<Derived *>(of.bases[3])->numbers.data(), "int[]");
    show(way("bases[3]->one->text"), static_cast<Derived *>(of.bases[3])->one->text, "char[]");
    show(way("maybe.text"), of.maybe->text, "char[]");
    show(way("choice[4].text"), std::get<2>(of.choice)[4].text, "char[]");
    show(way("shared->text"), of.shared->text, "char[]");
    show(way("made->item->text"), of.made->item->text, "char[]");
    show(way("table.buckets[3]"), of.table.buckets[3], "Table::Entry");
    show(way("table.buckets[3]->next"), of.table.buckets[3]->next, "Table::Entry");
    show(way("table.buckets[3]->next->value"), of.table.buckets[3]->next->value, "");
    show(way("table.either.as_text"), of.table.either.as_text, "char[]");
}

int main() {
    static char long_way[64];
    static Registry inner;
    Item *volatile local = new_item(1);
    made = new Registry;
    of_thread = new_item(2);
    fill(registry);
    fill(*made);
    fill(inner);
    show_all("registry", ".", registry);
    show_all("made", "->", *made);
    show_all("main::inner", ".", inner);
    for (int i = 0; i < LINKS; i++) links = new Link{links, nullptr};
    Link *last = links;
    while (last->next) last = last->next;
    last->text = static_cast<char *>(malloc(TEXT));
    snprintf(long_way, sizeof long_way, "links->next{x%d}->text", LINKS - 1);
    show(long_way, last->text, "char[]");
    show("made", made, "Registry");
    show("of_thread", of_thread, "Item");
    show("local", local, "Item");
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return local->id == 1 ? 3 : 1;
}
