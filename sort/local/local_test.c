/* A sort over files alone: its output is that of a cluster of one, stays where it belongs and is
 * durable, and a failure leaves none. */
#include "sort/local/local.h"

#include <sys/stat.h>
#include <unistd.h>

#include "common/fault.h"
#include "common/mem.h"
#include "io/file.h"
#include "sort/local/dirs_parts.h"
#include "sort/testing/world.h"

static struct sort_local_config local_config(struct world *w, const struct sort_spec *spec)
{
    return (struct sort_local_config){.spec = spec,
                                      .in = w->in,
                                      .out = w->out,
                                      .memory_bytes = 4 << 20,
                                      .key_map_bytes = 1 << 20,
                                      .threads = 2};
}

static int local_run(const struct sort_local_config *config, struct error *err)
{
    _cleanup_(sort_local_freep)
    struct sort_local *s = NULL;
    int rc = sort_local_new(config, &s, err);
    if (rc == 0)
        rc = sort_local_start(s, err);
    return rc != 0 ? rc : sort_local_end(s, err);
}

/* All output shards, one behind the other. */
static void read_output(struct world *w, struct buf *out)
{
    for (unsigned i = 0;; i++) {
        _cleanup_free_ char *path = xprintf("%s/o-%04u.tar", w->out, i);
        struct buf one = BUF_INIT;
        int rc = file_read_all(path, 64 << 20, &one, NULL);
        buf_printf(out, "shard %u: %zu bytes\n", i, one.len);
        buf_append(out, one.data, one.len);
        buf_done(&one);
        if (rc != 0)
            return;
    }
}

static void test_same_bytes_as_a_cluster(void **state)
{
    static const char *const orders[] = {"alphanumeric", "md5", "natural", "none"};
    struct world *w = *state;
    world_make_dataset(w, 7);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        struct error err = ERROR_INIT;
        struct buf cluster = BUF_INIT;
        struct buf local = BUF_INIT;
        _cleanup_free_ char *more =
            xprintf("%s, \"algorithm\": {\"kind\": \"%s\"}", WORLD_PREFIX, orders[i]);
        struct sort_spec *spec = world_spec(more);
        struct sim_config sim = world_config(w, spec, 3);
        assert_int_equal(world_run(&sim, &err), 0);
        read_output(w, &cluster);
        world_clear_output(w);
        struct sort_local_config config = local_config(w, spec);
        assert_int_equal(local_run(&config, &err), 0);
        read_output(w, &local);
        assert_true(local.len > 1024);
        assert_int_equal(local.len, cluster.len);
        assert_memory_equal(local.data, cluster.data, local.len);
        world_clear_output(w);
        buf_done(&cluster);
        buf_done(&local);
        sort_spec_free(spec);
    }
}

static void test_fails_without_a_trace(void **state)
{
    struct world *w = *state;
    struct error err = ERROR_INIT;
    struct buf bad = BUF_INIT;
    world_make_dataset(w, 8);
    buf_puts(&bad, "this is no tar");
    world_write(w->in, "s-zzz.tar", &bad);
    buf_done(&bad);
    struct sort_spec *spec = world_spec(WORLD_PREFIX);
    struct sort_local_config config = local_config(w, spec);
    assert_int_equal(local_run(&config, &err), E_SHARD_CORRUPT);
    assert_int_equal(world_count(w->out), 0);
    /* Directories that were made go again. */
    _cleanup_free_ char *out = xprintf("%s/new/deep/er", w->out);
    config.out = out;
    assert_int_equal(local_run(&config, &err), E_SHARD_CORRUPT);
    assert_int_equal(world_count(w->out), 0);
    sort_spec_free(spec);
}

static void test_refuses_names_that_are_taken(void **state)
{
    struct world *w = *state;
    struct error err = ERROR_INIT;
    struct buf text = BUF_INIT;
    world_make_dataset(w, 9);
    world_write(w->out, "o-0123.tar", &text);
    struct sort_spec *spec = world_spec(WORLD_PREFIX);
    struct sort_local_config config = local_config(w, spec);
    assert_int_equal(local_run(&config, &err), E_OBJECT_EXISTS);
    assert_int_equal(world_count(w->out), 1);
    sort_spec_free(spec);
    buf_done(&text);
}

static void test_stops(void **state)
{
    struct world *w = *state;
    struct error err = ERROR_INIT;
    world_make_dataset(w, 10);
    struct sort_spec *spec = world_spec(WORLD_PREFIX);
    struct sort_local_config config = local_config(w, spec);
    struct sort_local *s = NULL;
    assert_int_equal(sort_local_new(&config, &s, &err), 0);
    sort_local_stop(s);
    assert_int_equal(sort_local_start(s, &err), 0);
    assert_int_equal(sort_local_end(s, &err), E_ABORTED);
    sort_local_free(s);
    assert_int_equal(world_count(w->out), 0);
    sort_spec_free(spec);
}

/* What a killed sort has left is neither input nor in the way. */
static void test_passes_over_what_was_left_behind(void **state)
{
    struct world *w = *state;
    struct error err = ERROR_INIT;
    struct buf bad = BUF_INIT;
    world_make_dataset(w, 11);
    _cleanup_free_ char *left = xprintf("%s/.dfc-sort-abcdef", w->in);
    assert_int_equal(mkdir(left, 0700), 0);
    buf_puts(&bad, "half");
    world_write(left, "s-1.tar", &bad);
    buf_done(&bad);
    struct sort_spec *spec = world_spec(", \"input_format\": {\"prefix\": \"\"}, "
                                        "\"output_shard_size\": 9000");
    struct sort_local_config config = local_config(w, spec);
    config.out = w->in;
    assert_int_equal(local_run(&config, &err), 0);
    sort_spec_free(spec);
}

static void test_which_names_are_files(void **state)
{
    static const struct {
        const char *name;
        const char *flaw; /* NULL: none */
    } rows[] = {
        {"a.tar", NULL},
        {"a/b/c.tar", NULL},
        {"..a/b../...", NULL},
        {".dfc", NULL},
        {"x.dfc-sort-1", NULL},
        {"", "empty"},
        {"/etc/x.tar", "empty"},
        {"a//b", "empty"},
        {"a/", "empty"},
        {".", "'.'"},
        {"a/./b", "'.'"},
        {"../../x-000000.tar", "'..'"},
        {"a/..", "'..'"},
        {".dfc-sort-x/a.tar", "'.dfc-sort-'"},
        {"a/.dfc-sort-", "'.dfc-sort-'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = ERROR_INIT;
        int rc = dirs_check_name("a test", rows[i].name, &err);
        assert_int_equal(rc, rows[i].flaw == NULL ? 0 : E_INVALID);
        if (rc != 0)
            assert_non_null(strstr(err.message, rows[i].flaw));
    }
}

static void assert_refused(struct world *w, struct sort_spec *spec, const char *key_map,
                           const char *field)
{
    struct error err = ERROR_INIT;
    struct sort_local_config config = local_config(w, spec);
    _cleanup_free_ char *out = xprintf("%s/below", w->out);
    config.out = out;
    config.key_map = key_map;
    if (local_run(&config, &err) != E_INVALID || strstr(err.message, field) == NULL)
        fail_msg("not refused for %s: %s", field, err.message);
    assert_int_equal(world_count(w->out), 0);
    sort_spec_free(spec);
}

/* Neither reads beside the input's directory nor writes beside the output's. */
static void test_stays_within_its_directories(void **state)
{
    struct world *w = *state;
    world_make_dataset(w, 12);
    _cleanup_free_ char *map = xprintf("%s/map", w->dir);
    struct buf lines = BUF_INIT;
    buf_puts(&lines, "^d\t../x-%d.tar\n");
    world_write(w->dir, "map", &lines);
    buf_done(&lines);
    assert_refused(w, world_spec_to("../x-%06d.tar", WORLD_PREFIX), NULL, "output_format");
    assert_refused(w, world_spec(WORLD_PREFIX ", \"ekm_file\": \"dfc://b/m\""), map,
                   "output_format");
    assert_refused(w, world_spec(WORLD_PREFIX ", \"ekm_file\": \"dfc://b/../map\""), NULL,
                   "ekm_file");
    assert_refused(w,
                   world_spec(", \"input_format\": {\"template\": \"../in/s-{000..000}.tar\"}, "
                              "\"output_shard_size\": 9000"),
                   NULL, "input_format");
    assert_refused(w,
                   world_spec(", \"input_format\": {\"objnames\": [\"../in/s-000.tar\"]}, "
                              "\"output_shard_size\": 9000"),
                   NULL, "input_format");
}

/* One output's name is another's directory: that shows when some have their names already. */
static void test_takes_back_what_it_showed(void **state)
{
    struct world *w = *state;
    struct error err = ERROR_INIT;
    world_make_dataset(w, 12);
    _cleanup_free_ char *map = xprintf("%s/map", w->dir);
    struct buf lines = BUF_INIT;
    buf_puts(&lines, "^d0/\tx-%d.tar\n^d1/\tx-0.tar/y-%d.tar\n^d2/\tdeep/er/z-%d.tar\n");
    world_write(w->dir, "map", &lines);
    buf_done(&lines);
    struct sort_spec *spec = world_spec(WORLD_PREFIX ", \"ekm_file\": \"dfc://b/m\"");
    struct sort_local_config config = local_config(w, spec);
    config.key_map = map;
    assert_int_not_equal(local_run(&config, &err), 0);
    assert_non_null(strstr(err.message, "x-0.tar"));
    assert_int_equal(world_count(w->out), 0);
    sort_spec_free(spec);
}

/* What cannot be made durable is no success: files, and the directories of their names. */
static void test_is_durable_or_fails(void **state)
{
    struct world *w = *state;
    world_make_dataset(w, 13);
    _cleanup_free_ char *out = xprintf("%s/new", w->out);
    struct sort_spec *spec = world_spec(WORLD_PREFIX);
    struct sort_local_config config = local_config(w, spec);
    config.out = out;
    int rc = E_IO;
    int syncs = 0;
    for (; rc != 0; syncs++) {
        struct error err = ERROR_INIT;
        _cleanup_free_ char *fault = xprintf("disk.sync=EIO@%d", syncs + 1);
        assert_int_equal(fault_configure(fault, NULL), 0);
        rc = local_run(&config, &err);
        if (rc != 0)
            assert_int_equal(rc, E_IO);
        assert_int_equal(world_count(w->out), rc == 0);
    }
    fault_configure(NULL, NULL);
    /* The directory's parent, each file, the directory; and once nothing failed. */
    assert_int_equal(syncs, 1 + world_count(out) + 1 + 1);
    sort_spec_free(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same_bytes_as_a_cluster, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_fails_without_a_trace, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_refuses_names_that_are_taken, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_stops, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_passes_over_what_was_left_behind, world_setup,
                                        world_teardown),
        cmocka_unit_test(test_which_names_are_files),
        cmocka_unit_test_setup_teardown(test_stays_within_its_directories, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_takes_back_what_it_showed, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_is_durable_or_fails, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
