/* A sort's output is compared with its input: what is right is found right, and what is wrong is
 * named. */
#include "sort/local/verify.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/mem.h"
#include "io/file.h"
#include "sort/local/dirs.h"
#include "sort/testing/fixture.h"
#include "sort/local/local.h"
#include "sort/testing/world.h"

/* --- shards as files -------------------------------------------------------------------------- */

static bool owns_all(void *owner, const char *name)
{
    (void)owner;
    (void)name;
    return true;
}

static int source_list(void *ctx, const struct sort_spec *spec,
                       int (*each)(void *arg, const struct sort_shard_info *info,
                                   struct error *err),
                       void *arg, struct error *err)
{
    const struct world *w = ctx;
    struct dirs *d = NULL;
    int rc = dirs_open(w->in, w->out, NULL, &d, err);
    if (rc == 0)
        rc = dirs_list(d, spec, owns_all, NULL, each, arg, err);
    dirs_close(d);
    return rc;
}

static int source_fetch(void *ctx, bool output, const char *name, int fd, struct error *err)
{
    const struct world *w = ctx;
    _cleanup_free_ char *path = xprintf("%s/%s", output ? w->out : w->in, name);
    struct buf text = BUF_INIT;
    int rc = file_read_all(path, 64 << 20, &text, err);
    if (rc == E_NOT_FOUND)
        rc = error_set(err, E_OBJECT_NOT_FOUND, "there is no '%s'", name);
    if (rc == 0)
        rc = file_write_all(fd, text.data, text.len, err);
    buf_done(&text);
    return rc;
}

static int source_list_outputs(void *ctx, const char *prefix,
                               int (*each)(void *arg, const char *name, struct error *err),
                               void *arg, struct error *err)
{
    const struct world *w = ctx;
    DIR *dir = opendir(w->out);
    assert_non_null(dir);
    int rc = 0;
    for (const struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL;) {
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0)
            rc = each(arg, e->d_name, err);
    }
    closedir(dir);
    return rc;
}

static int source_key_map(void *ctx, const struct sort_spec *spec,
                          int (*feed)(void *arg, const void *data, size_t len, struct error *err),
                          void *arg, struct error *err)
{
    static const char map[] = "^d[01]\to-%04d\n^d2\tp-%04d\n";
    (void)ctx;
    (void)spec;
    return feed(arg, map, sizeof map - 1, err);
}

/* --- sorting and comparing -------------------------------------------------------------------- */

static struct sort_spec *make_output(struct world *w, const char *more)
{
    _cleanup_free_ char *key_map = xprintf("%s/keys", w->in);
    struct buf text = BUF_INIT;
    buf_puts(&text, "^d[01]\to-%04d\n^d2\tp-%04d\n");
    world_write(w->in, "keys", &text);
    buf_done(&text);
    struct error err = ERROR_INIT;
    _cleanup_free_ char *fields = xprintf("%s%s", WORLD_PREFIX, more);
    struct sort_spec *spec = world_spec(fields);
    const struct sort_local_config config = {.spec = spec,
                                             .in = w->in,
                                             .out = w->out,
                                             .key_map = key_map,
                                             .memory_bytes = 4 << 20,
                                             .key_map_bytes = 1 << 20,
                                             .threads = 2};
    struct sort_local *s = NULL;
    assert_int_equal(sort_local_new(&config, &s, &err), 0);
    assert_int_equal(sort_local_start(s, &err), 0);
    if (sort_local_end(s, &err) != 0)
        fail_msg("%s: %s", more, err.message);
    sort_local_free(s);
    return spec;
}

static int verify(struct world *w, struct sort_spec *spec, struct verify_result *result)
{
    const struct verify_source source = {.ctx = w,
                                         .list = source_list,
                                         .fetch = source_fetch,
                                         .list_outputs = source_list_outputs,
                                         .read_key_map = source_key_map};
    const struct verify_config config = {.spec = spec,
                                         .source = &source,
                                         .work_dir = w->dir,
                                         .memory_bytes = 1 << 20,
                                         .key_map_bytes = 1 << 20};
    struct error err = ERROR_INIT;
    int rc = verify_run(&config, result, &err);
    if (rc != 0)
        print_message("%s\n", err.message);
    return rc;
}

static void test_finds_right_what_is_right(void **state)
{
    static const char *const requests[] = {
        "",
        ", \"algorithm\": {\"kind\": \"shuffle\", \"seed\": \"7\"}",
        ", \"algorithm\": {\"kind\": \"md5\", \"decreasing\": true}, \"output_extension\": "
        "\".tar.gz\"",
        ", \"algorithm\": {\"kind\": \"none\"}, \"output_extension\": \".zip\"",
        ", \"output_extension\": \".msgpack\"",
        ", \"output_extension\": \".tfrecord\"",
        ", \"ekm_file\": \"dfc://b/keys\"",
        ", \"algorithm\": {\"kind\": \"content\", \"extension\": \".cls\", \"content_key_type\": "
        "\"int\"}, \"missing_keys\": \"ignore\", \"allow_empty\": true",
    };
    struct world *w = *state;
    world_make_dataset(w, 21);
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct verify_result result;
        struct sort_spec *spec = make_output(w, requests[i]);
        assert_int_equal(verify(w, spec, &result), 0);
        if (!result.same_order || !result.same_records)
            fail_msg("%s: %s", requests[i], result.difference);
        if (result.compared != result.records || result.strays != 0)
            fail_msg("%s: %llu of %llu compared, %llu strays, such as '%s'", requests[i],
                     (unsigned long long)result.compared, (unsigned long long)result.records,
                     (unsigned long long)result.strays, result.stray);
        world_clear_output(w);
        sort_spec_free(spec);
    }
}

/* Three records, of one member each, in one shard. */
static struct sort_spec *three_records(struct world *w)
{
    struct buf tar = BUF_INIT;
    fixture_file(&tar, "c.txt", "third");
    fixture_file(&tar, "a.txt", "first");
    fixture_file(&tar, "b.txt", "second");
    fixture_end(&tar);
    world_write(w->in, "s-0.tar", &tar);
    buf_done(&tar);
    return make_output(w, "");
}

/* The only output shard becomes these members; the sort's first difference is told. */
static void expect(struct world *w, struct sort_spec *spec, const char *const members[][2],
                   size_t count, bool same_records, const char *difference)
{
    struct verify_result result;
    struct buf tar = BUF_INIT;
    for (size_t i = 0; i < count; i++)
        fixture_file(&tar, members[i][0], members[i][1]);
    fixture_end(&tar);
    world_write(w->out, "o-0000.tar", &tar);
    buf_done(&tar);
    assert_int_equal(verify(w, spec, &result), 0);
    assert_string_equal(result.difference, difference);
    assert_int_equal(result.same_order, difference[0] == '\0');
    assert_int_equal(result.same_records, same_records);
    assert_int_equal(result.records, 3);
}

static void test_names_the_first_difference(void **state)
{
    static const char *const right[][2] = {
        {"a.txt", "first"}, {"b.txt", "second"}, {"c.txt", "third"}, {"d.txt", "fourth"}};
    static const char *const order[][2] = {
        {"a.txt", "first"}, {"c.txt", "third"}, {"b.txt", "second"}};
    static const char *const changed[][2] = {
        {"a.txt", "first"}, {"b.txt", "SECOND"}, {"c.txt", "third"}};
    static const char *const twice[][2] = {
        {"a.txt", "first"}, {"a.txt", "first"}, {"c.txt", "third"}};
    struct world *w = *state;
    struct sort_spec *spec = three_records(w);
    expect(w, spec, right, 3, true, "");
    expect(w, spec, order, 3, true,
           "output shard 'o-0000.tar' has 'c.txt' where record 'b' belongs");
    expect(w, spec, changed, 3, false,
           "output shard 'o-0000.tar' has 'b.txt' where record 'b' belongs, with other members or "
           "contents");
    expect(w, spec, twice, 3, false,
           "output shard 'o-0000.tar' has 'a.txt' where record 'b' belongs");
    expect(w, spec, right, 2, false, "output shard 'o-0000.tar' ends before record 'c'");
    expect(w, spec, right, 4, false,
           "output shard 'o-0000.tar' has 'd.txt' behind its last record");
    sort_spec_free(spec);
}

static void test_names_shards_that_are_none(void **state)
{
    struct world *w = *state;
    struct verify_result result;
    struct buf text = BUF_INIT;
    struct sort_spec *spec = three_records(w);
    buf_puts(&text, "half");
    world_write(w->out, "o-0000.tar", &text);
    buf_done(&text);
    assert_int_equal(verify(w, spec, &result), 0);
    assert_string_equal(result.difference,
                        "output shard 'o-0000.tar': it does not end as a sort's output does");
    assert_false(result.same_records);
    world_clear_output(w);
    assert_int_equal(verify(w, spec, &result), 0);
    assert_string_equal(result.difference, "output shard 'o-0000.tar': there is no 'o-0000.tar'");
    assert_false(result.same_records);
    assert_int_equal(result.compared, 0);
    sort_spec_free(spec);
}

/* Each is a name of a template that was used; what no template makes is nobody's business. */
static void test_counts_shards_beside_the_output(void **state)
{
    static const char *const beside[] = {"o-0001.tar", "o-0002.tar", "o-1.tar", "o-0001.txt",
                                         "p-0000.tar"};
    struct world *w = *state;
    struct verify_result result;
    struct buf text = BUF_INIT;
    struct sort_spec *spec = three_records(w);
    buf_puts(&text, "of an earlier sort");
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        world_write(w->out, beside[i], &text);
    buf_done(&text);
    assert_int_equal(verify(w, spec, &result), 0);
    assert_true(result.same_order && result.same_records);
    assert_int_equal(result.compared, 3);
    assert_int_equal(result.strays, 2);
    assert_memory_equal(result.stray, "o-000", 5);
    sort_spec_free(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_finds_right_what_is_right, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_names_the_first_difference, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_counts_shards_beside_the_output, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_names_shards_that_are_none, world_setup,
                                        world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
