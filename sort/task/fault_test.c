/* Every way of going wrong that the simulation can bring about: the sort must end, with the right
 * error, and leave no file, no open descriptor and (under the sanitizers) no memory. */
#include "sort/task/task.h"

#include <stdio.h>
#include <unistd.h>

#include "common/fault.h"
#include "common/mem.h"
#include "common/tsan.h"
#include "io/file.h"
#include "sort/testing/world.h"

struct failing {
    struct world *w;
    struct sort_spec *spec;
    unsigned targets;
};

static void failing_setup(struct failing *f, struct world *w, unsigned targets)
{
    world_make_dataset(w, 2);
    *f = (struct failing){
        .w = w, .spec = world_spec(WORLD_PREFIX WORLD_INDEXES), .targets = targets};
}

/* Stop, or fail, at the n-th call of each function of the env, until there is no n-th call. */
static void sweep_trips(struct failing *f, enum sim_point point, bool stop, uint64_t step)
{
    for (uint64_t nth = 1;; nth += step * TSAN_STRIDE) {
        struct sim_config config = world_config(f->w, f->spec, f->targets);
        config.trip = (struct sim_trip){.point = point, .nth = nth, .stop = stop};
        struct error err = ERROR_INIT;
        int rc = world_run(&config, &err);
        if (rc == 0) {
            assert_true(nth > 1);
            world_clear_output(f->w);
            return;
        }
        if (rc != (stop ? E_ABORTED : E_IO))
            fail_msg("point %d, call %llu: %s: %s", (int)point, (unsigned long long)nth,
                     error_name(rc), err.message);
        assert_int_equal(world_count(f->w->out), 0);
        assert_int_equal(world_count("/proc/self/fd"), f->w->descriptors);
    }
}

static void test_stopped_anywhere(void **state)
{
    struct failing f;
    failing_setup(&f, *state, 4);
    for (int p = SIM_PIN; p < SIM_OUTPUT_FINISH; p++)
        sweep_trips(&f, (enum sim_point)p, true, p >= SIM_FETCH ? 7 : 1);
    sort_spec_free(f.spec);
}

static void test_failed_anywhere(void **state)
{
    struct failing f;
    failing_setup(&f, *state, 4);
    for (int p = SIM_PIN; p <= SIM_OUTPUT_FINISH; p++)
        sweep_trips(&f, (enum sim_point)p, false, p >= SIM_FETCH ? 7 : 1);
    sort_spec_free(f.spec);
}

static void sweep_cuts(struct failing *f, enum sim_point kind)
{
    struct sim_config config = world_config(f->w, f->spec, f->targets);
    struct sim *s = sim_new(&config);
    assert_int_equal(sim_run(s, NULL), 0);
    uint64_t streams = sim_streams(s, kind);
    uint64_t longest = sim_stream_bytes(s, kind);
    sim_free(s);
    world_clear_output(f->w);
    assert_true(streams > 1 && longest > 100);
    rng_seed(&f->w->rng, kind);
    for (int round = 0; round < 120; round++) {
        config.cut = kind;
        config.cut_stream = 1 + rng_below(&f->w->rng, streams);
        config.cut_bytes = round < 20 ? (uint64_t)round : rng_below(&f->w->rng, longest);
        struct error err = ERROR_INIT;
        int rc = world_run(&config, &err);
        /* A cut behind a shorter stream's end is none. */
        if (rc != 0 && rc != E_NET)
            fail_msg("stream %llu, byte %llu: %s: %s", (unsigned long long)config.cut_stream,
                     (unsigned long long)config.cut_bytes, error_name(rc), err.message);
        if (rc == 0)
            world_clear_output(f->w);
        assert_true(round >= 20 || rc != 0);
        assert_int_equal(world_count(f->w->out), 0);
    }
}

static void test_streams_cut_anywhere(void **state)
{
    struct failing f;
    failing_setup(&f, *state, 4);
    sweep_cuts(&f, SIM_SEND_MERGE);
    sweep_cuts(&f, SIM_SEND_ORDERS);
    sweep_cuts(&f, SIM_FETCH);
    sort_spec_free(f.spec);
}

static void test_fault_points(void **state)
{
    struct failing f;
    failing_setup(&f, *state, 3);
    static const char *const points[] = {"sort.extract=EIO@2", "sort.merge=EIO",
                                         "sort.plan=EIO",      "sort.create=EIO@3",
                                         "sort.finish=ENOSPC", "disk.write=ENOSPC@2"};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        assert_int_equal(fault_configure(points[i], NULL), 0);
        struct sim_config config = world_config(f.w, f.spec, f.targets);
        struct error err = ERROR_INIT;
        int rc = world_run(&config, &err);
        bool full = strstr(points[i], "ENOSPC") != NULL;
        if (rc != (full ? E_NO_SPACE : E_IO))
            fail_msg("%s: %s: %s", points[i], error_name(rc), err.message);
        assert_int_equal(world_count(f.w->out), 0);
        fault_configure(NULL, NULL);
    }
    sort_spec_free(f.spec);
}

/* --- compressed shards ------------------------------------------------------------------------ */

#define DECODED                                                                   \
    ", \"input_format\": {\"prefix\": \"o-\"}, \"input_extension\": \".tar.gz\"," \
    " \"output_extension\": \".zip\", \"output_shard_size\": 9000"

/* The world's tars, sorted into compressed ones, which become its input. */
static void compress_world(struct world *w)
{
    struct sort_spec *spec = world_spec(WORLD_PREFIX ", \"output_extension\": \".tar.gz\"");
    struct sim_config config = world_config(w, spec, 3);
    struct error err = ERROR_INIT;
    if (world_run(&config, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(file_remove_tree(w->in, NULL), 0);
    assert_int_equal(rename(w->out, w->in), 0);
    assert_int_equal(file_mkdirs(w->out, 0755, NULL), 0);
    sort_spec_free(spec);
}

static void test_decoding_and_encoding_fail_anywhere(void **state)
{
    struct failing f;
    failing_setup(&f, *state, 3);
    sort_spec_free(f.spec);
    compress_world(f.w);
    f.spec = world_spec(DECODED);
    sweep_trips(&f, SIM_OPEN_SHARD, false, 1);
    for (int p = SIM_OUTPUT_BEGIN; p < SIM_OUTPUT_FINISH; p++) {
        sweep_trips(&f, (enum sim_point)p, false, 7);
        sweep_trips(&f, (enum sim_point)p, true, 7);
    }
    sort_spec_free(f.spec);
}

static int run_decoded(struct world *w, const char *spec_text, struct error *err)
{
    struct sort_spec *spec = world_spec(spec_text);
    struct sim_config config = world_config(w, spec, 3);
    int rc = world_run(&config, err);
    sort_spec_free(spec);
    return rc;
}

/* One shard in the middle is cut short: it is named, or left out. */
static void test_a_damaged_shard(void **state)
{
    struct failing f;
    failing_setup(&f, *state, 3);
    sort_spec_free(f.spec);
    compress_world(f.w);
    _cleanup_free_ char *path = xprintf("%s/o-0001.tar.gz", f.w->in);
    assert_int_equal(truncate(path, 100), 0);
    struct error err = ERROR_INIT;
    assert_int_equal(run_decoded(f.w, DECODED, &err), E_SHARD_CORRUPT);
    assert_non_null(strstr(err.message, "shard 'o-0001.tar.gz', byte 100: "));
    assert_int_equal(world_count(f.w->out), 0);
    if (run_decoded(f.w, DECODED ", \"unreadable_shards\": \"warn\"", &err) != 0)
        fail_msg("%s", err.message);
    assert_true(world_count(f.w->out) > 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_stopped_anywhere),
        TEST(test_failed_anywhere),
        TEST(test_streams_cut_anywhere),
        TEST(test_fault_points),
        TEST(test_decoding_and_encoding_fail_anywhere),
        TEST(test_a_damaged_shard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
