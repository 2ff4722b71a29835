#include "proxy/watch/stat_samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/jsonx.h"

static const struct stat_samples_config config = {.interval_ms = 1000, .late_ms = 200, .keep = 4};

static void hear(struct stat_samples *r, const char *id, const char *boot, uint64_t reads,
                 uint64_t p99_us, uint64_t now_ms)
{
    struct node_stats s = {0};
    s.values[STAT_reads] = reads;
    s.values[STAT_memory_bytes] = 100;
    s.values[STAT_read_p99_us] = p99_us;
    stat_samples_hear(r, id, boot, &s, now_ms);
}

/* `wanted`: "[1, null]" of the cluster, or of a node. */
static void shows(struct stat_samples *r, const char *node, const char *stat, size_t samples,
                  uint64_t now_ms, const char *wanted)
{
    const struct stat_samples_question q = {.samples = samples, .nodes = true, .wall_ms = 1000000};
    _cleanup_json_ json_t *doc = stat_samples_show(r, &q, now_ms);
    const json_t *from = node != NULL ? json_object_get(json_object_get(doc, "nodes"), node)
                                      : json_object_get(doc, "cluster");
    const json_t *list = json_object_get(from, stat);
    _cleanup_free_ char *text = list != NULL ? json_dumps(list, 0) : NULL;
    assert_string_equal(text != NULL ? text : "", wanted);
}

static void counters_become_differences(void **state)
{
    (void)state;
    _cleanup_(stat_samples_freep)
    struct stat_samples *r = stat_samples_new(&config);
    shows(r, NULL, "reads", 4, 100, "[]");
    hear(r, "t1", "b", 10, 7, 10000);
    hear(r, "t1", "b", 12, 8, 10500);
    shows(r, NULL, "reads", 1, 10900, "[null]");
    hear(r, "t1", "b", 15, 9, 11000); /* ends the interval 10 to 11 s */
    hear(r, "t1", "b", 15, 9, 12050);
    shows(r, NULL, "reads", 2, 12300, "[5, 0]");
    shows(r, "t1", "reads", 2, 12300, "[5, 0]");
    shows(r, NULL, "read_p99_us", 2, 12300, "[9, 9]");
    shows(r, NULL, "reads", 2, 12100, "[null, 5]"); /* others may report still */
}

static void the_cluster_has_the_sum_or_the_greatest(void **state)
{
    (void)state;
    _cleanup_(stat_samples_freep)
    struct stat_samples *r = stat_samples_new(&config);
    hear(r, "t1", "b", 0, 30, 10000);
    hear(r, "t2", "b", 0, 40, 10000);
    hear(r, "t1", "b", 2, 30, 11000);
    hear(r, "t2", "b", 3, 20, 11000);
    shows(r, NULL, "reads", 1, 11300, "[5]");
    shows(r, NULL, "memory_bytes", 1, 11300, "[200]");
    shows(r, NULL, "read_p99_us", 1, 11300, "[30]");
}

static void a_restart_or_a_pause_has_no_sample(void **state)
{
    (void)state;
    _cleanup_(stat_samples_freep)
    struct stat_samples *r = stat_samples_new(&config);
    hear(r, "t1", "b", 50, 0, 10000);
    hear(r, "t1", "c", 60, 0, 11000); /* another run, that has counted more already */
    hear(r, "t1", "c", 61, 0, 12000);
    hear(r, "t1", "c", 99, 0, 14500); /* silent for two seconds */
    hear(r, "t1", "c", 100, 0, 15000);
    shows(r, "t1", "reads", 4, 15300, "[1, null, null, 1]");
}

static void old_samples_and_silent_targets_make_room(void **state)
{
    (void)state;
    _cleanup_(stat_samples_freep)
    struct stat_samples *r = stat_samples_new(&config);
    for (uint64_t i = 0; i < 10; i++)
        hear(r, "t1", "b", i * i, 0, 10000 + i * 1000);
    shows(r, "t1", "reads", 100, 19300, "[11, 13, 15, 17]");
    hear(r, "t2", "b", 0, 0, 40000);
    shows(r, "t1", "reads", 4, 40300, "");
    shows(r, "t2", "reads", 1, 40300, "[null]");
}

static void the_last_sample_has_its_time(void **state)
{
    (void)state;
    _cleanup_(stat_samples_freep)
    struct stat_samples *r = stat_samples_new(&config);
    const struct stat_samples_question q = {.samples = 3, .wall_ms = 1000000};
    _cleanup_json_ json_t *doc = stat_samples_show(r, &q, 10700);
    assert_int_equal(json_integer_value(json_object_get(doc, "end_ms")), 1000000 - 700);
    assert_int_equal(json_integer_value(json_object_get(doc, "samples")), 3);
    assert_null(json_object_get(doc, "nodes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_become_differences),
        cmocka_unit_test(the_cluster_has_the_sum_or_the_greatest),
        cmocka_unit_test(a_restart_or_a_pause_has_no_sample),
        cmocka_unit_test(old_samples_and_silent_targets_make_room),
        cmocka_unit_test(the_last_sample_has_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
