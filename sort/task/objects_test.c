/* Sorts of inputs that are no archives: each becomes one member, whoever has it and whoever builds
 * the archive; what is damaged is found. */
#include "sort/task/task.h"

#include <stdio.h>
#include <string.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "io/file.h"
#include "sort/shard/tar_header.h"
#include "sort/shard/tar_make.h"
#include "sort/testing/world.h"

#define END_BYTES 1024

/* More than what a builder writes at once, and what needs padding or does not. */
static const size_t sizes[] = {0, 1, 511, 512, 513, 700000, 262144, 10240};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void name_of(unsigned number, char out[static 32])
{
    snprintf(out, 32, "o-%05u.tar", number); /* whatever it is called, it is no archive */
}

static void contents_of(unsigned number, struct buf *out)
{
    size_t size = number < SIZES ? sizes[number] : number % 900;
    for (size_t i = 0; i < size; i++)
        buf_putc(out, (char)(i * 31 + number + i / 4096));
}

static void make_objects(const struct world *w, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char name[32];
        struct buf bytes = BUF_INIT;
        name_of(i, name);
        contents_of(i, &bytes);
        world_write(w->in, name, &bytes);
        buf_done(&bytes);
    }
}

/* The last object first. */
static struct sort_spec *spec_of(unsigned count, const char *more)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    buf_puts(&text, ", \"input_format\": {\"objnames\": [");
    for (unsigned i = count; i-- > 0;) {
        char name[32];
        name_of(i, name);
        buf_printf(&text, "\"%s\"%s", name, i > 0 ? ", " : "");
    }
    buf_printf(&text, "]}, \"algorithm\": {\"kind\": \"none\"}%s", more);
    struct sort_spec *s = world_spec(buf_str(&text));
    s->plain_objects = true;
    return s;
}

static void put_member(unsigned number, struct buf *tar)
{
    static const char zeros[TAR_BLOCK];
    char name[32];
    struct buf bytes = BUF_INIT;
    name_of(number, name);
    contents_of(number, &bytes);
    const struct tar_made made = {.path = name,
                                  .path_len = strlen(name),
                                  .type = '0',
                                  .size = bytes.len,
                                  .mode = 0644,
                                  .mtime = SIM_MODIFIED_S};
    tar_make_headers(tar, &made);
    buf_append(tar, buf_str(&bytes), bytes.len);
    buf_append(tar, zeros, (size_t)(tar_padded(bytes.len) - bytes.len));
    buf_done(&bytes);
}

static void expect_file(const struct world *w, unsigned number, struct buf *wanted)
{
    static const char zeros[END_BYTES];
    buf_append(wanted, zeros, sizeof zeros);
    _cleanup_free_ char *path = xprintf("%s/o-%04u.tar", w->out, number);
    struct buf got = BUF_INIT;
    assert_int_equal(file_read_all(path, 1 << 28, &got, NULL), 0);
    assert_int_equal(got.len, wanted->len);
    assert_memory_equal(got.data, wanted->data, got.len);
    buf_done(&got);
    buf_clear(wanted);
}

static void expect_archives(const struct world *w, unsigned count, uint64_t limit)
{
    struct buf tar = BUF_INIT;
    unsigned files = 0;
    for (unsigned i = count; i-- > 0;) {
        put_member(i, &tar);
        if (tar.len >= limit || i == 0)
            expect_file(w, files++, &tar);
    }
    assert_int_equal(world_count(w->out), files);
    buf_done(&tar);
}

static void run_well(const struct sim_config *config)
{
    struct error err = ERROR_INIT;
    if (world_run(config, &err) != 0)
        fail_msg("%u targets: %s", config->targets, err.message);
}

static void test_objects_become_members(void **state)
{
    struct world *w = *state;
    enum { OBJECTS = 60, LIMIT = 20000 };
    make_objects(w, OBJECTS);
    struct sort_spec *spec = spec_of(OBJECTS, ", \"output_shard_size\": 20000");
    for (unsigned targets = 1; targets <= 5; targets++) {
        const struct sim_config config = world_config(w, spec, targets);
        run_well(&config);
        expect_archives(w, OBJECTS, LIMIT);
        world_clear_output(w);
    }
    sort_spec_free(spec);
}

/* Headers do not fit into the memory of the tables. */
static void test_many_objects_in_little_memory(void **state)
{
    struct world *w = *state;
    enum { OBJECTS = 3000 };
    make_objects(w, OBJECTS);
    struct sort_spec *spec = spec_of(OBJECTS, ", \"output_shard_size\": \"1GB\"");
    struct sim_config config = world_config(w, spec, 3);
    config.memory_bytes = SORT_MEMORY_MIN;
    config.pipe_bytes = 1 << 16;
    run_well(&config);
    expect_archives(w, OBJECTS, UINT64_MAX);
    sort_spec_free(spec);
}

/* Also where another target builds the archive, and all begin again. */
static void test_damage_is_found(void **state)
{
    struct world *w = *state;
    enum { OBJECTS = 20 };
    make_objects(w, OBJECTS);
    struct sort_spec *spec = spec_of(OBJECTS, ", \"output_shard_size\": \"1GB\"");
    static const unsigned damaged[] = {1, 5, 6, 19}; /* small ones, and some in several batches */
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        char name[32];
        name_of(damaged[i], name);
        for (unsigned targets = 1; targets <= 3; targets++) {
            struct sim_config config = world_config(w, spec, targets);
            struct error err = ERROR_INIT;
            config.damaged = name;
            config.attempts = 2;
            assert_int_equal(world_run(&config, &err), E_CHECKSUM);
            assert_non_null(strstr(err.message, "object 'b/"));
            assert_non_null(strstr(err.message, name));
            assert_int_equal(world_count(w->out), 0);
        }
    }
    sort_spec_free(spec);
}

static void test_what_is_missing_is_counted(void **state)
{
    struct world *w = *state;
    enum { OBJECTS = 9 };
    make_objects(w, OBJECTS);
    struct sort_spec *spec =
        spec_of(OBJECTS + 3, ", \"output_shard_size\": \"1GB\", \"missing_shards\": \"warn\"");
    const struct sim_config config = world_config(w, spec, 3);
    struct sim *s = sim_new(&config);
    assert_int_equal(sim_run(s, NULL), 0);
    _cleanup_json_ json_t *status = sim_status(s);
    json_int_t missing = 0;
    const char *id;
    json_t *one;
    json_object_foreach(status, id, one)
    {
        const json_t *shards = json_object_get(json_object_get(one, "extract"), "shards");
        missing += json_integer_value(json_object_get(shards, "missing"));
    }
    assert_int_equal(missing, 3);
    sim_free(s);
    expect_archives(w, OBJECTS, UINT64_MAX);
    sort_spec_free(spec);
}

static void test_no_objects(void **state)
{
    struct world *w = *state;
    struct buf tar = BUF_INIT;
    struct sort_spec *spec =
        spec_of(3, ", \"output_shard_size\": \"1GB\", \"missing_shards\": \"ignore\"");
    const struct sim_config config = world_config(w, spec, 3);
    run_well(&config);
    assert_int_equal(world_count(w->out), 0);
    spec->makes_empty = true;
    run_well(&config);
    expect_file(w, 0, &tar);
    buf_done(&tar);
    sort_spec_free(spec);
}

static void test_names_of_members(void **state)
{
    struct world *w = *state;
    make_objects(w, 4);
    struct sort_spec *spec = spec_of(4, ", \"output_shard_size\": \"1GB\"");
    spec->member_strip = xstrdup("o-");
    spec->member_prepend = xstrdup("new/");
    const struct sim_config config = world_config(w, spec, 2);
    run_well(&config);
    _cleanup_free_ char *path = xprintf("%s/o-0000.tar", w->out);
    struct buf got = BUF_INIT;
    assert_int_equal(file_read_all(path, 1 << 28, &got, NULL), 0);
    assert_string_equal(got.data, "new/00003.tar");
    buf_done(&got);
    world_clear_output(w);

    sort_spec_free(spec);
}

static void test_a_name_of_which_nothing_is_left(void **state)
{
    struct world *w = *state;
    make_objects(w, 1);
    struct sort_spec *spec = spec_of(1, ", \"output_shard_size\": \"1GB\"");
    spec->member_strip = xstrdup("o-00000.tar");
    const struct sim_config config = world_config(w, spec, 2);
    struct error err = ERROR_INIT;
    assert_int_equal(world_run(&config, &err), E_SPEC);
    assert_non_null(strstr(err.message, "o-00000.tar"));
    sort_spec_free(spec);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_objects_become_members),
        TEST(test_many_objects_in_little_memory),
        TEST(test_damage_is_found),
        TEST(test_what_is_missing_is_counted),
        TEST(test_no_objects),
        TEST(test_names_of_members),
        TEST(test_a_name_of_which_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
