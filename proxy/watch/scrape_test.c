#include "proxy/watch/scrape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "common/cleanup.h"
#include "common/jsonx.h"

static void nodes_in_the_form_of_prometheus(void **unused)
{
    (void)unused;
    struct node nodes[] = {
        {.id = "p1", .role = NODE_PROXY, .public_url = "http://10.0.0.1:8080"},
        {.id = "t1", .role = NODE_TARGET, .public_url = "https://[::1]:8081"},
        {.id = "t2", .role = NODE_TARGET, .public_url = ""},
    };
    char id[] = "c-1";
    const struct cluster_state s = {.cluster_id = id, .smap = {.count = 3, .nodes = nodes}};
    _cleanup_json_ json_t *doc = scrape_view(&s);
    _cleanup_free_ char *text = json_dumps(doc, JSON_COMPACT);
    assert_string_equal(text,
                        "[{\"targets\":[\"10.0.0.1:8080\"],\"labels\":{\"__scheme__\":\"http\","
                        "\"cluster\":\"c-1\",\"node\":\"p1\",\"node_role\":\"proxy\"}},"
                        "{\"targets\":[\"[::1]:8081\"],\"labels\":{\"__scheme__\":\"https\","
                        "\"cluster\":\"c-1\",\"node\":\"t1\",\"node_role\":\"target\"}}]");
}

static void an_empty_map(void **unused)
{
    (void)unused;
    char id[] = "c";
    const struct cluster_state s = {.cluster_id = id};
    _cleanup_json_ json_t *doc = scrape_view(&s);
    assert_int_equal(json_array_size(doc), 0);
    assert_true(json_is_array(doc));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_in_the_form_of_prometheus),
        cmocka_unit_test(an_empty_map),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
