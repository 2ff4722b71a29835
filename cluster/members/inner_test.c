#include "cluster/members/inner.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "cluster/documents/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct sockaddr_storage at(const char *text, uint16_t port)
{
    struct sockaddr_storage s = {.ss_family = AF_INET};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&s;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&s;
    v4->sin_port = htons(port);
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1)
        return s;
    v6->sin6_family = AF_INET6;
    assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
    return s;
}

static void test_ports_of_nodes(void **state)
{
    (void)state;
    struct node nodes[] = {
        {.control_url = "http://10.0.0.1:9081", .data_url = "http://10.0.0.1:9082"},
        {.control_url = "http://[fd00::2]:9181", .data_url = "http://[fd00::2]:9182"},
        {.control_url = "http://p-0.dfc.svc:9281", .data_url = ""},
        {.control_url = "http://198.51.100.7:9381", .data_url = "http://198.51.100.7"},
        {.control_url = NULL, .data_url = NULL},
    };
    const struct smap map = {.nodes = nodes, .count = sizeof nodes / sizeof nodes[0]};
    static const struct {
        const char *address;
        uint16_t port;
        bool inside;
    } rows[] = {
        {"10.0.0.1", 9081, true},
        {"10.0.0.1", 9082, true},
        {"10.0.0.1", 9080, false},
        {"127.0.0.1", 9081, true}, /* the node may listen at all of its addresses */
        {"::1", 9082, true},
        {"192.168.7.7", 9081, true},
        {"198.51.100.8", 9081, false}, /* a server of the Internet that has the port, too */
        {"::ffff:10.0.0.1", 9081, true},
        {"fd00::2", 9181, true},
        {"2a00::1", 9181, false},
        {"198.51.100.8", 9281, true}, /* the name may lead anywhere */
        {"198.51.100.7", 9381, true},
        {"198.51.100.8", 9381, false},
        {"198.51.100.7", 80, false},
        {"127.0.0.1", 80, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct sockaddr_storage s = at(rows[i].address, rows[i].port);
        if (inner_has(&map, (const struct sockaddr *)&s) != rows[i].inside)
            fail_msg("%s:%u", rows[i].address, rows[i].port);
    }
    const struct smap empty = {.count = 0};
    const struct sockaddr_storage s = at("127.0.0.1", 9081);
    assert_false(inner_has(&empty, (const struct sockaddr *)&s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ports_of_nodes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
