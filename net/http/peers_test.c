#include "net/http/peers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static struct sockaddr_storage address(const char *text)
{
    struct sockaddr_storage a = {0};
    struct sockaddr_in *in = (struct sockaddr_in *)&a;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&a;
    in->sin_family = AF_INET;
    if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
        return a;
    in6->sin6_family = AF_INET6;
    assert_int_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
    return a;
}

static bool enter(struct peers *p, const char *text)
{
    struct sockaddr_storage a = address(text);
    return peers_enter(p, (const struct sockaddr *)&a);
}

static void leave(struct peers *p, const char *text)
{
    struct sockaddr_storage a = address(text);
    peers_leave(p, (const struct sockaddr *)&a);
}

static void one_address_has_its_share(void **state)
{
    (void)state;
    struct peers *p = peers_new(2);
    assert_true(enter(p, "10.0.0.1"));
    assert_true(enter(p, "10.0.0.1"));
    assert_false(enter(p, "10.0.0.1"));
    assert_false(enter(p, "::ffff:10.0.0.1")); /* the same one */
    assert_true(enter(p, "10.0.0.2"));
    leave(p, "10.0.0.1");
    assert_true(enter(p, "::ffff:10.0.0.1"));
    leave(p, "10.0.0.1");
    leave(p, "10.0.0.1");
    leave(p, "10.0.0.2");
    peers_free(p);
}

static void a_network_of_ipv6_is_one(void **state)
{
    (void)state;
    struct peers *p = peers_new(2);
    assert_true(enter(p, "2001:db8:1:2::1"));
    assert_true(enter(p, "2001:db8:1:2:ffff::9"));
    assert_false(enter(p, "2001:db8:1:2::7"));
    assert_true(enter(p, "2001:db8:1:3::1"));
    assert_true(enter(p, "2001:db8::1")); /* whose first bytes are no IPv4 address */
    assert_true(enter(p, "2001:db8::1"));
    assert_true(enter(p, "184.13.1.32"));
    assert_true(enter(p, "32.1.13.184"));
    leave(p, "2001:db8::1");
    leave(p, "2001:db8::1");
    leave(p, "184.13.1.32");
    leave(p, "32.1.13.184");
    leave(p, "2001:db8:1:2::1");
    leave(p, "2001:db8:1:2::1");
    leave(p, "2001:db8:1:3::1");
    peers_free(p);
}

static void many_addresses(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    struct peers *p = peers_new(1);
    char text[32];
    for (int pass = 0; pass < 3; pass++) {
        for (unsigned i = 0; i < MANY; i++) {
            snprintf(text, sizeof text, "10.1.%u.%u", i / 250, i % 250);
            if (pass == 2)
                leave(p, text);
            else
                assert_int_equal(enter(p, text), pass == 0);
        }
    }
    peers_free(p);
}

static unsigned count(struct peers *p, const char *text)
{
    struct sockaddr_storage a = address(text);
    return peers_count(p, (const struct sockaddr *)&a);
}

static void the_count_of_an_address(void **state)
{
    (void)state;
    struct peers *p = peers_new(2);
    assert_int_equal(count(p, "10.0.0.1"), 0);
    assert_true(enter(p, "10.0.0.1"));
    assert_true(enter(p, "::ffff:10.0.0.1")); /* the same one */
    assert_true(enter(p, "2001:db8:1:2::1"));
    assert_int_equal(count(p, "10.0.0.1"), 2);
    assert_int_equal(count(p, "10.0.0.2"), 0);
    assert_int_equal(count(p, "2001:db8:1:2::9"), 1); /* the same network */
    assert_false(enter(p, "10.0.0.1"));
    assert_int_equal(count(p, "10.0.0.1"), 2);
    leave(p, "10.0.0.1");
    assert_int_equal(count(p, "10.0.0.1"), 1);
    leave(p, "10.0.0.1");
    leave(p, "2001:db8:1:2::1");
    assert_int_equal(count(p, "10.0.0.1"), 0);
    peers_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_address_has_its_share),
        cmocka_unit_test(a_network_of_ipv6_is_one),
        cmocka_unit_test(many_addresses),
        cmocka_unit_test(the_count_of_an_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
