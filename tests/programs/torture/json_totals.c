// SPDX-License-Identifier: Apache-2.0
// Adds up a JSON document with Jansson. Planted: a result is asked for its text unseen.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *total_of(const json_t *root) {
    json_int_t total = 0;
    size_t i;
    json_t *price;
    json_array_foreach(json_object_get(root, "prices"), i, price) total +=
        json_integer_value(price);
    return json_pack("{s:s, s:I}", "shop", json_string_value(json_object_get(root, "shop")),
                     "total", total);
}

static int print_total(const json_t *total) {
    char *text = json_dumps(total, JSON_COMPACT | JSON_SORT_KEYS);
#ifdef RIGHT
    if (!text) return 1;
#endif
    printf("%zu bytes: %s\n", strlen(text), text);
    free(text);
    return 0;
}

int main(void) {
    json_error_t error;
    json_t *root = json_loads("{\"shop\": \"north\", \"prices\": [3, 4, 5]}", 0, &error);
    json_t *total = root ? total_of(root) : NULL;
    int status = total ? print_total(total) : 1;
    json_decref(total);
    json_decref(root);
    return status;
}
