#include "common/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "common/mem.h"

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

static bool is_inner(const char *text)
{
    const struct sockaddr_storage s = at(text, 80);
    return address_is_inner((const struct sockaddr *)&s);
}

static const char *const inner[] = {
    "127.0.0.1",
    "127.255.255.255",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.0",
    "100.127.255.255",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "224.0.0.1",
    "239.255.255.250",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "2002:7f00:1::1",
    "2001::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "ff02::1",
};

static const char *const of_the_internet[] = {
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "192.169.0.0",
    "223.255.255.255",
    "::ffff:1.1.1.1",
    "64:ff9b::101:101",
    "2001:4860:4860::8888",
    "2003::1",
    "2a00:1450::1",
    "fbff::1",
};

static void test_inner(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++) {
        if (!is_inner(inner[i]))
            fail_msg("%s is taken for one of the Internet", inner[i]);
    }
    for (size_t i = 0; i < sizeof of_the_internet / sizeof of_the_internet[0]; i++) {
        if (is_inner(of_the_internet[i]))
            fail_msg("%s is refused", of_the_internet[i]);
    }
    const struct sockaddr other = {.sa_family = AF_UNIX};
    assert_true(address_is_inner(&other));
    assert_int_equal(address_port(&other), 0);
}

static bool takes(const char *list, const char *text)
{
    struct address_list *l;
    struct error err = ERROR_INIT;
    const struct sockaddr_storage s = at(text, 80);
    if (address_list_new(list, &l, &err) != 0)
        fail_msg("%s: %s", list, err.message);
    bool refused = address_is_refused(l, (const struct sockaddr *)&s);
    address_list_free(l);
    return !refused;
}

static void test_lists(void **state)
{
    (void)state;
    static const struct {
        const char *list, *address;
        bool taken;
    } rows[] = {
        {"", "127.0.0.1", false},
        {"", "1.1.1.1", true},
        {"10.0.0.0/8", "1.1.1.1", true},
        {"10.0.0.0/8", "10.9.8.7", true},
        {"10.0.0.0/8", "192.168.0.1", false},
        {"127.0.0.0/8,::1/128", "127.1.2.3", true},
        {"127.0.0.0/8,::1/128", "::ffff:127.0.0.1", true},
        {"127.0.0.0/8,::1/128", "::1", true},
        {"127.0.0.0/8,::1/128", "fe80::1", false},
        {"127.0.0.1", "127.0.0.1", true},
        {"127.0.0.1", "127.0.0.2", false},
        {"::1", "::1", true},
        {"fd00:1::/32", "fd00:1:2::3", true},
        {"fd00:1::/32", "fd00:2::3", false},
        {"::ffff:10.0.0.0/104", "10.1.2.3", true},
        {"::ffff:10.0.0.0/104", "11.1.2.3", true},
        {"::ffff:10.0.0.0/104", "127.0.0.1", false},
        {"0.0.0.0/0", "169.254.169.254", true},
        {"0.0.0.0/0", "::1", false},
        {"::/0", "::1", true},
        {"::/0", "127.0.0.1", false}, /* IPv4 is listed as such */
        {"100.64.0.0/10", "100.127.0.1", true},
        {"172.16.0.0/13", "172.24.0.1", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (takes(rows[i].list, rows[i].address) != rows[i].taken)
            fail_msg("'%s' and %s", rows[i].list, rows[i].address);
    }
}

static void test_lists_that_are_none(void **state)
{
    (void)state;
    static const char *const rows[] = {
        ",",
        "10.0.0.0/8,",
        ",10.0.0.0/8",
        "10.0.0.0/33",
        "10.0.0.0/",
        "10.0.0.0/-1",
        "10.0.0.0/08x",
        "10.0.0.1/8",
        "fd00::1/8",
        "::1/129",
        "localhost",
        "10.0.0",
        "10.0.0.0 /8",
        " 10.0.0.0/8",
        "10.0.0.0/8 ",
        "10.0.0.0/8;11.0.0.0/8",
        "::ffff:10.0.0.0/95",
        "/8",
        "10.0.0.0/1/2",
        "10.0.0.0/0000",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct address_list *l = NULL;
        struct error err = ERROR_INIT;
        if (address_list_new(rows[i], &l, &err) != E_INVALID)
            fail_msg("'%s' was taken", rows[i]);
        assert_null(l);
        assert_true(err.message[0] != '\0');
    }
    char many[4096];
    size_t len = 0;
    while (len + 16 < sizeof many)
        len += (size_t)snprintf(many + len, sizeof many - len, "%s1.1.1.1", len > 0 ? "," : "");
    struct address_list *l = NULL;
    assert_int_equal(address_list_new(many, &l, NULL), E_INVALID);
}

static void test_hosts(void **state)
{
    (void)state;
    const struct sockaddr_storage v4 = at("10.1.2.3", 8081), v6 = at("fd00::1", 9),
                                  mapped = at("::ffff:10.1.2.3", 7);
    const struct sockaddr *a = (const struct sockaddr *)&v4, *b = (const struct sockaddr *)&v6;
    assert_int_equal(address_port(a), 8081);
    assert_int_equal(address_port(b), 9);
    assert_true(address_is_host(a, "10.1.2.3:80", 8));
    assert_true(address_is_host((const struct sockaddr *)&mapped, "10.1.2.3", 8));
    assert_false(address_is_host(a, "10.1.2.30", 9));
    assert_false(address_is_host(a, "node-1", 6));
    assert_true(address_is_host(b, "[fd00::1]", 9));
    assert_true(address_is_host(b, "fd00:0::1", 9));
    assert_true(address_is_literal("[::1]", 5));
    assert_false(address_is_literal("t1.example", 10));
    assert_false(address_is_literal("", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inner),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_lists_that_are_none),
        cmocka_unit_test(test_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
