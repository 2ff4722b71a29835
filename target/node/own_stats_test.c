#include "target/node/own_stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/metrics.h"

static void it_tells_what_the_metrics_have(void **state)
{
    (void)state;
    struct node_stats out;
    struct own_stats *s = own_stats_new();
    metric_add(metric_get(M_object_put_total, NULL), 3);
    metric_add(metric_get(M_http_requests_total, "route=\"a\",code=\"5xx\""), 2);
    metric_add(metric_get(M_http_requests_total, "route=\"b\",code=\"5xx\""), 5);
    metric_add(metric_get(M_http_requests_total, "route=\"b\",code=\"2xx\""), 9);
    metric_set(metric_get(M_http_connections, "listener=\"public\""), 4);
    metric_set(metric_get(M_http_connections, "listener=\"data\""), 1);
    own_stats_read(s, 1000, &out);
    assert_int_equal(out.values[STAT_writes], 3);
    assert_int_equal(out.values[STAT_errors], 7);
    assert_int_equal(out.values[STAT_connections], 5);
    assert_true(out.values[STAT_memory_bytes] > 4096);
    own_stats_free(s);
}

static void latencies_are_of_the_last_window(void **state)
{
    (void)state;
    struct node_stats out;
    struct own_stats *s = own_stats_new();
    metric_t *get = metric_get(M_http_request_seconds, "route=\"object_get\"");
    own_stats_read(s, 1000, &out);
    assert_int_equal(out.values[STAT_read_p99_us], 0);
    for (int i = 0; i < 1000; i++)
        metric_observe_us(get, 200);
    own_stats_read(s, 5999, &out);
    assert_int_equal(out.values[STAT_read_p99_us], 0);
    own_stats_read(s, 6000, &out);
    assert_in_range(out.values[STAT_read_p99_us], 128, 256);
    assert_int_equal(out.values[STAT_write_p99_us], 0);
    own_stats_read(s, 8000, &out);
    assert_in_range(out.values[STAT_read_p99_us], 128, 256);
    own_stats_read(s, 11000, &out); /* a window without requests */
    assert_int_equal(out.values[STAT_read_p99_us], 0);
    own_stats_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_tells_what_the_metrics_have),
        cmocka_unit_test(latencies_are_of_the_last_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
