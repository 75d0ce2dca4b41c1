// SPDX-License-Identifier: Apache-2.0
// Addresses to listen on, and which of them other machines can reach.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "tool/serve/listen.h"

static void check(const char *text, int family, unsigned port, bool is_local) {
    struct listen_address address;
    struct error error;
    assert_true(listen_address_parse(text, &address, &error));
    assert_int_equal(address.address.ss_family, family);
    assert_int_equal(address.is_local, is_local);
    if (family == AF_INET)
        assert_int_equal(ntohs(((struct sockaddr_in *)&address.address)->sin_port), port);
    if (family == AF_INET6)
        assert_int_equal(ntohs(((struct sockaddr_in6 *)&address.address)->sin6_port), port);
}

static void addresses(void **state) {
    (void)state;
    check("127.0.0.1:6060", AF_INET, 6060, true);
    check("127.9.8.7:1", AF_INET, 1, true);
    check("localhost:0", AF_INET, 0, true);
    check("6060", AF_INET, 6060, true);
    check("[::1]:65535", AF_INET6, 65535, true);
    check("0.0.0.0:80", AF_INET, 80, false);
    check(":80", AF_INET, 80, false);
    check("192.168.1.2:80", AF_INET, 80, false);
    check("[::]:80", AF_INET6, 80, false);
    check("[::ffff:127.0.0.1]:80", AF_INET6, 80, false);
    check("unix:/run/x.sock", AF_UNIX, 0, true);
}

static void refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"",
                                        ":",
                                        "x",
                                        "127.0.0.1",
                                        "127.0.0.1:",
                                        "127.0.0.1:x",
                                        "127.0.0.1:65536",
                                        "127.0.0.1:-1",
                                        "127.0.0.1:000006060",
                                        "::1:80",
                                        "[::1]",
                                        "[::1]80",
                                        "[]:80",
                                        "example.org:80",
                                        "1.2.3:80",
                                        "unix:",
                                        "unix:relative",
                                        "127.0.0.1 :80",
                                        "256.0.0.1:80"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct listen_address address;
        struct error error = {""};
        assert_false(listen_address_parse(wrong[i], &address, &error));
        assert_true(*error.text);
    }
    char path[300] = "unix:/";
    memset(path + strlen(path), 'x', sizeof path - strlen(path) - 1);
    path[sizeof path - 1] = 0;
    struct listen_address address;
    assert_false(listen_address_parse(path, &address, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(addresses), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
