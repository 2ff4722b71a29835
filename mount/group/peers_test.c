#include "mount/group/peers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static char id[] = "m", url[] = "http://127.0.0.1:1"; /* where nobody listens */
static const struct group_member nobody = {.id = id, .url = url};
static const struct group_request request = {
    .scope = "1/2",
    .bucket = "b",
    .object = "o",
    .etag = "\"e\"",
    .checksum = "",
    .size = 10,
    .length = 10,
    .how = GROUP_CACHED,
};

/* Also one whose failure the caller does not ask the words of. */
static void a_member_that_fails_rests(void **state)
{
    const struct group_peers_options options = {.connect_ms = 1000, .wait_ms = 1000};
    _cleanup_(group_peers_freep)
    struct group_peers *p = NULL;
    _cleanup_(buf_done)
    struct buf out = BUF_INIT;
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(group_peers_new(&options, &p, NULL), 0);
    int rc = group_peers_ask(p, &nobody, &request, &out, NULL);
    assert_int_not_equal(rc, 0);
    assert_int_not_equal(rc, E_NOT_READY);
    assert_int_equal(group_peers_ask(p, &nobody, &request, &out, &err), E_NOT_READY);
    assert_int_equal(group_peers_ask(p, &nobody, &request, &out, NULL), E_NOT_READY);
    assert_int_equal(out.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_member_that_fails_rests)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
