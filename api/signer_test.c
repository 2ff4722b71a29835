/* Sessions are kept by listener, and used for the node that has proven itself there. */
#include "api/signer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#define ORIGIN "http://h:1"

static void keep(struct signer *s, const char *node)
{
    struct signer_session *x = signer_session_new(ORIGIN);
    snprintf(x->node, sizeof x->node, "%s", node);
    x->unsigned_calls = node[0] == '\0';
    signer_keep(s, x);
}

static void a_session_is_used_for_its_node_alone(void **unused)
{
    (void)unused;
    struct signer *s = signer_new("");
    struct signer_pen pen = {0};
    assert_false(signer_take(s, ORIGIN, "t1", &pen));
    keep(s, "t1");
    assert_true(signer_take(s, ORIGIN, "t1", &pen));
    assert_true(signer_take(s, ORIGIN, NULL, &pen));
    assert_false(signer_take(s, ORIGIN, "t2", &pen));
    keep(s, "t2"); /* in its place */
    assert_true(signer_take(s, ORIGIN, "t2", &pen));
    assert_false(signer_take(s, ORIGIN, "t1", &pen));
    keep(s, ""); /* a node without a key proves nothing */
    assert_true(signer_take(s, ORIGIN, "t1", &pen));
    signer_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_session_is_used_for_its_node_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
