#include "common/metrics.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <cmocka.h>

#include "common/cleanup.h"

static void assert_shown(const char *line, bool shown)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    metrics_text(&text);
    const char *at = strstr(buf_str(&text), line);
    if ((at != NULL) != shown)
        fail_msg("'%s' is %s in:\n%s", line, shown ? "missing" : "shown", buf_str(&text));
}

static void counters_count(void **state)
{
    (void)state;
    metric_t *m = metric_get(M_object_put_total, NULL);
    uint64_t before = metric_value(m);
    metric_add(m, 1);
    metric_add(m, 41);
    assert_int_equal(metric_value(m) - before, 42);
}

static void label_sets_are_told_apart(void **state)
{
    (void)state;
    metric_t *get = metric_get(M_http_requests_total, "route=\"get\",code=\"200\"");
    metric_t *put = metric_get(M_http_requests_total, "route=\"put\",code=\"200\"");
    assert_ptr_not_equal(get, put);
    assert_ptr_equal(get, metric_get(M_http_requests_total, "route=\"get\",code=\"200\""));
    assert_ptr_equal(metric_get(M_object_get_total, NULL), metric_get(M_object_get_total, ""));
    metric_add(get, 3);
    metric_add(put, 4);
    assert_shown("# HELP dfc_http_requests_total ", true);
    assert_shown("# TYPE dfc_http_requests_total counter\n"
                 "dfc_http_requests_total{route=\"get\",code=\"200\"} 3\n"
                 "dfc_http_requests_total{route=\"put\",code=\"200\"} 4\n",
                 true);
}

static void sums_are_over_label_sets(void **state)
{
    (void)state;
    metric_add(metric_get(M_cold_fetch_total, "outcome=\"stored\""), 3);
    metric_add(metric_get(M_cold_fetch_total, "outcome=\"failed\""), 4);
    assert_int_equal(metric_sum(M_cold_fetch_total, ""), 7);
    assert_int_equal(metric_sum(M_cold_fetch_total, "\"failed\""), 4);
    assert_int_equal(metric_sum(M_cold_fetch_total, "\"other\""), 0);
}

static void a_gauge_forgets_its_label_sets(void **state)
{
    (void)state;
    metric_set(metric_get(M_bucket_bytes, "bucket=\"a\""), 7);
    assert_shown("dfc_bucket_bytes{bucket=\"a\"} 7\n", true);
    metric_forget(M_bucket_bytes);
    assert_shown("dfc_bucket_bytes{bucket=", false);
    metric_set(metric_get(M_bucket_bytes, "bucket=\"b\""), 8);
    assert_shown("dfc_bucket_bytes{bucket=\"b\"} 8\n", true);
    metric_forget(M_bucket_bytes);
}

static void gauges_go_both_ways(void **state)
{
    (void)state;
    metric_t *m = metric_get(M_http_connections, "listener=\"public\"");
    metric_set(m, 5);
    metric_gauge_add(m, -7);
    assert_shown("# TYPE dfc_http_connections gauge\n"
                 "dfc_http_connections{listener=\"public\"} -2\n",
                 true);
    metric_gauge_add(m, 3);
    assert_shown("dfc_http_connections{listener=\"public\"} 1\n", true);
    metric_set(metric_get(M_http_connections, "listener=\"data\""), 9);
    metric_zero(M_http_connections);
    assert_shown("dfc_http_connections{listener=\"public\"} 0\n"
                 "dfc_http_connections{listener=\"data\"} 0\n",
                 true);
}

static void nothing_counted_is_described_but_not_shown(void **state)
{
    (void)state;
    assert_shown("# TYPE dfc_checksum_errors_total counter\n", true);
    assert_shown("\ndfc_checksum_errors_total", false);
}

static void histograms_put_each_duration_at_its_bound(void **state)
{
    (void)state;
    metric_t *m = metric_get(M_http_request_seconds, "route=\"get\"");
    static const uint64_t us[] = {0, 64, 65, 128, 129, 1000000, 67108864, 67108865, 1ull << 40};
    for (size_t i = 0; i < sizeof us / sizeof us[0]; i++)
        metric_observe_us(m, us[i]);
    assert_shown("# TYPE dfc_http_request_seconds histogram\n"
                 "dfc_http_request_seconds_bucket{route=\"get\",le=\"0.000064\"} 2\n"
                 "dfc_http_request_seconds_bucket{route=\"get\",le=\"0.000128\"} 4\n"
                 "dfc_http_request_seconds_bucket{route=\"get\",le=\"0.000256\"} 5\n",
                 true);
    assert_shown("le=\"0.524288\"} 5\n", true);
    assert_shown("le=\"1.048576\"} 6\n", true);
    assert_shown("le=\"33.554432\"} 6\n", true);
    assert_shown("le=\"67.108864\"} 7\n"
                 "dfc_http_request_seconds_bucket{route=\"get\",le=\"+Inf\"} 9\n"
                 "dfc_http_request_seconds_sum{route=\"get\"} 1099646.845891\n"
                 "dfc_http_request_seconds_count{route=\"get\"} 9\n",
                 true);
}

static void a_histogram_without_labels(void **state)
{
    (void)state;
    metric_observe_us(metric_get(M_http_request_seconds, NULL), 100);
    assert_shown("dfc_http_request_seconds_bucket{le=\"0.000064\"} 0\n", true);
    assert_shown("dfc_http_request_seconds_bucket{le=\"0.000128\"} 1\n", true);
    assert_shown("dfc_http_request_seconds_sum 0.000100\n"
                 "dfc_http_request_seconds_count 1\n",
                 true);
}

static void sizes_and_depths_have_their_own_bounds(void **state)
{
    (void)state;
    metric_t *sizes = metric_get(M_mountpath_io_bytes, "mountpath=\"/a\"");
    metric_t *depths = metric_get(M_mountpath_queue_depth, "mountpath=\"/a\"");
    metric_observe(sizes, 1024);
    metric_observe(sizes, 1025);
    metric_observe(sizes, UINT64_C(1) << 30);
    metric_observe(depths, 1);
    metric_observe(depths, 5000);
    assert_shown("dfc_mountpath_io_bytes_bucket{mountpath=\"/a\",le=\"1024\"} 1\n", true);
    assert_shown("dfc_mountpath_io_bytes_bucket{mountpath=\"/a\",le=\"4096\"} 2\n", true);
    assert_shown("dfc_mountpath_io_bytes_bucket{mountpath=\"/a\",le=\"268435456\"} 2\n", true);
    assert_shown("dfc_mountpath_io_bytes_bucket{mountpath=\"/a\",le=\"+Inf\"} 3\n", true);
    assert_shown("dfc_mountpath_io_bytes_sum{mountpath=\"/a\"} 1073743873\n", true);
    assert_shown("dfc_mountpath_queue_depth_bucket{mountpath=\"/a\",le=\"1\"} 1\n", true);
    assert_shown("dfc_mountpath_queue_depth_bucket{mountpath=\"/a\",le=\"1024\"} 1\n", true);
    assert_shown("# TYPE dfc_mountpath_io_bytes histogram\n", true);
}

static void seconds_are_set_and_processes_have_names_of_their_own(void **state)
{
    (void)state;
    metric_t *m = metric_get(M_process_cpu_seconds_total, NULL);
    metric_set(m, 1500000);
    assert_shown("# TYPE process_cpu_seconds_total counter\n"
                 "process_cpu_seconds_total 1.500000\n",
                 true);
    metric_set(m, 1);
    assert_shown("\nprocess_cpu_seconds_total 0.000001\n", true);
    metric_set(metric_get(M_build_info, "version=\"1\""), 1);
    assert_shown("\ndfc_build_info{version=\"1\"} 1\n", true);
}

/* Each value goes to the bucket whose bound is the first that is not below it. */
static void quantiles_lie_in_the_right_bucket(void **state)
{
    (void)state;
    metric_t *m = metric_get(M_mountpath_io_seconds, "mountpath=\"/q\"");
    struct metric_reading before, after;
    metric_observe_us(m, 60000000);
    metric_read(m, &before);
    assert_int_equal(metric_quantile(m, &before, &before, 0.5), 0);
    for (int i = 0; i < 98; i++)
        metric_observe_us(m, 100); /* 64 to 128 us */
    metric_observe_us(m, 5000);    /* 4096 to 8192 us */
    metric_observe_us(m, 5000);
    metric_read(m, &after);
    assert_int_equal(after.count - before.count, 100);
    assert_int_equal(after.sum - before.sum, 98 * 100 + 2 * 5000);
    assert_in_range(metric_quantile(m, &before, &after, 0.5), 64, 128);
    assert_in_range(metric_quantile(m, &before, &after, 0.99), 4096, 8192);
    assert_int_equal(metric_quantile(m, &before, &after, 1), 8192);
    metric_observe_us(m, UINT64_C(1) << 40);
    metric_read(m, &after);
    assert_int_equal(metric_quantile(m, &before, &after, 1), 1 << 26);
}

static void the_table_has_every_metric(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf table = BUF_INIT;
    metrics_markdown(&table);
    assert_non_null(
        strstr(buf_str(&table), "\n| `dfc_object_put_total` | counter | objects stored |\n"));
    assert_non_null(strstr(buf_str(&table), "\n| `process_open_fds` | gauge | "));
    assert_non_null(strstr(buf_str(&table), "\n| `dfc_mountpath_io_bytes` | histogram | "));
    int lines = 0;
    for (const char *at = buf_str(&table); (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    assert_int_equal(lines, M_COUNT_ + 2);
}

static void every_metric_is_described_once(void **state)
{
    (void)state;
    static const char *const names[] = {
#define COUNTER(name, help) #name,
#define GAUGE(name, help) #name,
#define HISTOGRAM(name, help) #name,
#define SIZES(name, help) #name,
#define DEPTHS(name, help) #name,
#define SECONDS(name, help) #name,
#include "common/metrics.def"
#undef COUNTER
#undef GAUGE
#undef HISTOGRAM
#undef SIZES
#undef DEPTHS
#undef SECONDS
    };
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    metrics_text(&text);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char line[200];
        bool shared = strncmp(names[i], "process_", 8) == 0;
        snprintf(line, sizeof line, "# TYPE %s%s ", shared ? "" : "dfc_", names[i]);
        const char *at = strstr(buf_str(&text), line);
        assert_non_null(at);
        assert_null(strstr(at + 1, line));
    }
}

enum { THREADS = 4, ROUNDS = 20000 };

static void *count_often(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        metric_add(metric_get(M_sort_records_total, i % 2 ? "phase=\"a\"" : "phase=\"b\""), 1);
        metric_gauge_add(metric_get(M_jobs_running, "kind=\"x\""), i % 2 ? 1 : -1);
        metric_observe_us(metric_get(M_http_request_seconds, "route=\"threads\""), 100);
    }
    return unused;
}

static void what_is_not_used_may_be_left_out(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    metric_add(metric_get(M_mount_read_bytes_total, "tier=\"used\""), 7);
    metrics_text_used(&text);
    assert_non_null(strstr(buf_str(&text), "# TYPE dfc_mount_read_bytes_total counter\n"));
    assert_non_null(strstr(buf_str(&text), "dfc_mount_read_bytes_total{tier=\"used\"} 7\n"));
    assert_null(strstr(buf_str(&text), "dfc_sort_bytes_total")); /* no test has used it */
}

static void threads_lose_no_count(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_often, NULL), 0);
    for (int i = 0; i < 50; i++) {
        _cleanup_(buf_done)
        struct buf text = BUF_INIT;
        metrics_text(&text);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(metric_value(metric_get(M_sort_records_total, "phase=\"a\"")),
                     THREADS * ROUNDS / 2);
    assert_int_equal(metric_value(metric_get(M_sort_records_total, "phase=\"b\"")),
                     THREADS * ROUNDS / 2);
    assert_int_equal(metric_value(metric_get(M_jobs_running, "kind=\"x\"")), 0);
    assert_shown("dfc_http_request_seconds_count{route=\"threads\"} 80000\n", true);
    assert_shown("dfc_http_request_seconds_sum{route=\"threads\"} 8.000000\n", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_count),
        cmocka_unit_test(label_sets_are_told_apart),
        cmocka_unit_test(sums_are_over_label_sets),
        cmocka_unit_test(a_gauge_forgets_its_label_sets),
        cmocka_unit_test(gauges_go_both_ways),
        cmocka_unit_test(nothing_counted_is_described_but_not_shown),
        cmocka_unit_test(histograms_put_each_duration_at_its_bound),
        cmocka_unit_test(a_histogram_without_labels),
        cmocka_unit_test(sizes_and_depths_have_their_own_bounds),
        cmocka_unit_test(seconds_are_set_and_processes_have_names_of_their_own),
        cmocka_unit_test(quantiles_lie_in_the_right_bucket),
        cmocka_unit_test(every_metric_is_described_once),
        cmocka_unit_test(the_table_has_every_metric),
        cmocka_unit_test(what_is_not_used_may_be_left_out),
        cmocka_unit_test(threads_lose_no_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
