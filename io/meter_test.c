/* What a disk's meter says of what it was told. */
#include "io/meter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/metrics.h"

static void test_one_table(void **state)
{
    (void)state;
    struct meter *m = meter_new("mountpath=\"/table\"");
    meter_enter(m);
    meter_enter(m);
    meter_count(m, METER_WRITE, clock_us(), 5000);
    meter_leave(m);
    meter_count(m, METER_SYNC, clock_us(), 0);
    meter_sent(m, 77);
    static const char *const lines[] = {
        "dfc_mountpath_io_seconds_count{mountpath=\"/table\",op=\"write\"} 1\n",
        "dfc_mountpath_io_seconds_count{mountpath=\"/table\",op=\"sync\"} 1\n",
        "dfc_mountpath_io_seconds_count{mountpath=\"/table\",op=\"read\"} 0\n",
        "dfc_mountpath_io_bytes_sum{mountpath=\"/table\",op=\"write\"} 5000\n",
        "dfc_mountpath_queue_depth_bucket{mountpath=\"/table\",le=\"1\"} 1\n",
        "dfc_mountpath_queue_depth_bucket{mountpath=\"/table\",le=\"2\"} 2\n",
        "dfc_mountpath_queue{mountpath=\"/table\"} 1\n",
        "dfc_mountpath_sent_bytes_total{mountpath=\"/table\"} 77\n",
    };
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    metrics_text(&text);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (strstr(buf_str(&text), lines[i]) == NULL)
            fail_msg("not shown: %s", lines[i]);
    }
    assert_null(strstr(buf_str(&text), "io_bytes_sum{mountpath=\"/table\",op=\"sync\"}"));
    meter_leave(m);
    meter_unref(m);
}

/* The window is what was between the last look but one and now. */
static void test_the_last_minute(void **state)
{
    (void)state;
    struct meter *m = meter_new("mountpath=\"/minute\"");
    struct meter_load load;
    uint64_t at = clock_ms();
    meter_count(m, METER_READ, clock_us(), 1000);
    meter_sent(m, 10);
    meter_load(m, at + 500, &load);
    assert_int_equal(load.ops[METER_READ].count, 1);
    assert_int_equal(load.ops[METER_READ].bytes, 1000);
    assert_int_equal(load.sent_bytes, 10);
    assert_true(load.ops[METER_READ].p99_us > 0);
    assert_int_equal(load.ops[METER_WRITE].p99_us, 0);
    meter_look(m, at + METER_WINDOW_MS + 1000); /* the first is still in the window */
    meter_load(m, at + METER_WINDOW_MS + 2000, &load);
    assert_int_equal(load.ops[METER_READ].count, 1);
    meter_count(m, METER_READ, clock_us(), 500);
    meter_look(m, at + METER_WINDOW_MS + 3000); /* too soon: nothing */
    meter_look(m, at + 2 * METER_WINDOW_MS + 2000);
    meter_load(m, at + 2 * METER_WINDOW_MS + 3000, &load);
    assert_int_equal(load.ops[METER_READ].count, 1); /* the second alone */
    assert_int_equal(load.ops[METER_READ].bytes, 500);
    assert_int_equal(load.window_ms, METER_WINDOW_MS + 2000);
    meter_unref(m);
}

static void test_no_meter(void **state)
{
    (void)state;
    meter_enter(NULL);
    meter_count(NULL, METER_READ, 0, 1);
    meter_sent(NULL, 1);
    meter_leave(NULL);
    assert_null(meter_ref(NULL));
    meter_unref(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_table),
        cmocka_unit_test(test_the_last_minute),
        cmocka_unit_test(test_no_meter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
