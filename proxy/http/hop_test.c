#include "proxy/http/hop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void what_describes_the_object_passes(void **unused)
{
    (void)unused;
    static const char *const names[] = {"Range",        "If-Match",        "If-None-Match",
                                        "Content-Type", "Dfc-Meta-Colour", "Dfc-Checksum-Value",
                                        "ETag",         "Last-Modified",   "Content-Range"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_true(hop_request_header_passes(names[i], NULL));
        assert_true(hop_reply_header_passes(names[i], NULL));
    }
    assert_true(hop_reply_header_passes("Retry-After", NULL));
}

static void who_asks_is_told_whatever_the_connection_says(void **unused)
{
    (void)unused;
    assert_true(hop_request_header_passes("authorization", "Authorization"));
    assert_true(hop_request_header_passes("Authorization", "close, Authorization"));
    assert_false(hop_request_header_passes("Range", "close, Range"));
}

static void what_belongs_to_a_connection_stays(void **unused)
{
    (void)unused;
    static const char *const names[] = {"connection", "TRANSFER-ENCODING", "te",
                                        "Upgrade",    "Keep-Alive",        "Content-Length"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_false(hop_request_header_passes(names[i], NULL));
        assert_false(hop_reply_header_passes(names[i], NULL));
    }
    assert_false(hop_request_header_passes("host", NULL));
    assert_false(hop_request_header_passes("Dfc-Redirect", NULL));
    assert_false(hop_request_header_passes("Dfc-Auth", NULL)); /* the proxy signs for itself */
    assert_false(hop_request_header_passes("Dfc-State", NULL));
    assert_false(hop_request_header_passes("Origin", NULL)); /* looked at by the proxy */
    assert_false(hop_request_header_passes("sec-fetch-site", NULL));
    assert_false(hop_request_header_passes("Dfc-User", NULL)); /* found out by the proxy */
    assert_false(hop_reply_header_passes("WWW-Authenticate", NULL));
    assert_false(hop_reply_header_passes("Dfc-Node", NULL));
}

static void what_the_connection_header_names_stays(void **unused)
{
    (void)unused;
    const char *connection = "close,\tX-One , x-two";
    assert_false(hop_request_header_passes("x-one", connection));
    assert_false(hop_reply_header_passes("X-Two", connection));
    assert_true(hop_request_header_passes("X-On", connection));
    assert_true(hop_request_header_passes("X-Twos", connection));
    assert_true(hop_request_header_passes("X-One", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_describes_the_object_passes),
        cmocka_unit_test(who_asks_is_told_whatever_the_connection_says),
        cmocka_unit_test(what_belongs_to_a_connection_stays),
        cmocka_unit_test(what_the_connection_header_names_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
