/* Sorts that are disturbed anywhere and begin again: with all targets' memory, without that of
 * one which has restarted, or without one altogether.  The output is that of a sort that nothing
 * disturbs, to the byte. */
#include "sort/task/task.h"

#include <dirent.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "common/tsan.h"
#include "io/file.h"
#include "sort/testing/world.h"

static int no_dots(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

/* Of all names and contents. */
static uint64_t digest_of(const char *dir)
{
    struct dirent **list;
    uint64_t digest = 0;
    int count = scandir(dir, &list, no_dots, alphasort);
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        _cleanup_free_ char *path = xprintf("%s/%s", dir, list[i]->d_name);
        struct buf text = BUF_INIT;
        assert_int_equal(file_read_all(path, 1 << 28, &text, NULL), 0);
        digest = XXH3_64bits_withSeed(list[i]->d_name, strlen(list[i]->d_name), digest);
        digest = XXH3_64bits_withSeed(text.data, text.len, digest);
        buf_done(&text);
        free(list[i]);
    }
    free(list);
    return digest;
}

struct again {
    struct world *w;
    struct sort_spec *spec;
    uint64_t plain;      /* what nothing disturbs */
    json_int_t owned[4]; /* output shards that each target then builds */
};

static json_int_t shards_of(const json_t *status, unsigned target, const char *phase,
                            const char *what)
{
    char id[16];
    snprintf(id, sizeof id, "t%u", target);
    const json_t *all = json_object_get(json_object_get(status, id), phase);
    return json_integer_value(json_object_get(json_object_get(all, "shards"), what));
}

static void again_setup(struct again *a, struct world *w, const char *spec)
{
    *a = (struct again){.w = w, .spec = world_spec(spec)};
    struct sim_config config = world_config(w, a->spec, 4);
    struct error err = ERROR_INIT;
    struct sim *s = sim_new(&config);
    if (sim_run(s, &err) != 0)
        fail_msg("%s", err.message);
    _cleanup_json_ json_t *status = sim_status(s);
    for (unsigned i = 0; i < 4; i++)
        a->owned[i] = shards_of(status, i + 1, "create", "done");
    sim_free(s);
    a->plain = digest_of(w->out);
    world_clear_output(w);
}

static json_int_t redone(const json_t *status, unsigned target, const char *what)
{
    char id[16];
    snprintf(id, sizeof id, "t%u", target);
    const json_t *all = json_object_get(json_object_get(status, id), "redone");
    return json_integer_value(json_object_get(all, what));
}

/* What a target keeps, or finds again, is not built again; what one that has left had is, by
 * whoever has its place.
 */
static void check_redone(const struct again *a, const struct sim_config *config,
                         const json_t *status)
{
    json_int_t shards = 0;
    for (unsigned i = 1; i <= config->targets; i++)
        shards += redone(status, i, "shards");
    if (config->leaves == 0)
        assert_int_equal(shards, 0);
    else
        assert_true(shards <= a->owned[config->leaves - 1]);
}

/* One run; false where the trip was not reached. */
static bool run_again(struct again *a, const struct sim_config *config)
{
    struct error err = ERROR_INIT;
    struct sim *s = sim_new(config);
    if (sim_run(s, &err) != 0)
        fail_msg("point %d, call %llu: %s", (int)config->trip.point,
                 (unsigned long long)config->trip.nth, err.message);
    bool tripped = err.code != 0;
    _cleanup_json_ json_t *status = sim_status(s);
    sim_free(s);
    assert_int_equal(digest_of(a->w->out), a->plain);
    world_clear_output(a->w);
    assert_int_equal(world_count("/proc/self/fd"), a->w->descriptors);
    if (tripped)
        check_redone(a, config, status);
    return tripped;
}

static void sweep(struct again *a, enum sim_point point, bool stop, unsigned restarts,
                  uint64_t step)
{
    struct sim_config config = world_config(a->w, a->spec, 4);
    config.attempts = 2;
    config.restarts = restarts;
    config.trip = (struct sim_trip){.point = point, .nth = 1, .stop = stop};
    while (run_again(a, &config))
        config.trip.nth += step * TSAN_STRIDE;
    assert_true(config.trip.nth > 1);
}

static void sweep_from(struct again *a, enum sim_point first)
{
    for (int p = (int)first; p <= SIM_OUTPUT_FINISH; p++) {
        uint64_t step = p >= SIM_FETCH ? 97 : 4;
        unsigned restarts = (unsigned)p % 2 == 0 ? 0 : 1 + (unsigned)p % 4;
        sweep(a, (enum sim_point)p, false, restarts, step);
        if (p < SIM_OUTPUT_FINISH) /* after which there may be nothing left to stop */
            sweep(a, (enum sim_point)p, true, 0, step);
    }
}

static void test_tars(void **state)
{
    struct again a;
    world_make_dataset(*state, 5);
    again_setup(&a, *state, WORLD_PREFIX WORLD_INDEXES);
    sweep_from(&a, SIM_PIN);
    sort_spec_free(a.spec);
}

static void test_shuffled_into_compressed_ones(void **state)
{
    struct again a;
    world_make_dataset(*state, 6);
    again_setup(&a, *state,
                WORLD_PREFIX ", \"output_extension\": \".tar.gz\", "
                             "\"algorithm\": {\"kind\": \"shuffle\", \"seed\": \"3\"}");
    sweep_from(&a, SIM_FETCH);
    sort_spec_free(a.spec);
}

static void sweep_leaving(struct again *a, enum sim_point point, unsigned leaves, uint64_t step)
{
    struct sim_config config = world_config(a->w, a->spec, 4);
    config.attempts = 2;
    config.leaves = leaves;
    config.trip = (struct sim_trip){.point = point, .nth = 1};
    while (run_again(a, &config))
        config.trip.nth += step * TSAN_STRIDE;
    assert_true(config.trip.nth > 1);
}

/* In every phase, for each target; ties between equal names are in the order of the shards. */
static void test_without_one(void **state)
{
    static const char *const orders[] = {
        "", ", \"algorithm\": {\"kind\": \"none\"}",
        ", \"algorithm\": {\"kind\": \"shuffle\", \"seed\": \"3\"}"};
    struct again a;
    world_make_dataset(*state, 8);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        _cleanup_free_ char *spec =
            xprintf("%s%s%s", WORLD_PREFIX, orders[i], i == 0 ? WORLD_INDEXES : "");
        again_setup(&a, *state, spec);
        for (int p = SIM_PIN; p <= SIM_OUTPUT_FINISH; p++)
            sweep_leaving(&a, (enum sim_point)p, 1 + ((unsigned)p + (unsigned)i) % 4,
                          p >= SIM_FETCH ? 241 : 7);
        sort_spec_free(a.spec);
    }
}

static void test_without_one_of_compressed_shards(void **state)
{
    struct again a;
    world_make_dataset(*state, 9);
    again_setup(&a, *state, WORLD_PREFIX ", \"output_extension\": \".tar.gz\"");
    for (unsigned leaves = 2; leaves <= 4; leaves += 2)
        sweep_leaving(&a, SIM_OUTPUT_FINISH, leaves, 31);
    sort_spec_free(a.spec);
}

/* Runs that were spilled are opened once more. */
static void test_little_memory(void **state)
{
    struct again a;
    world_make_dataset(*state, 7);
    again_setup(&a, *state, WORLD_PREFIX WORLD_INDEXES ", \"max_mem_usage\": \"1MiB\"");
    sweep(&a, SIM_SEND_ORDERS, false, 0, 1);
    sweep(&a, SIM_OUTPUT_WRITE, false, 2, 31);
    sweep_leaving(&a, SIM_OUTPUT_WRITE, 3, 31);
    sort_spec_free(a.spec);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_tars),
        TEST(test_shuffled_into_compressed_ones),
        TEST(test_little_memory),
        TEST(test_without_one),
        TEST(test_without_one_of_compressed_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
