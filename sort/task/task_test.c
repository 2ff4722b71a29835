/* Whole sorts with simulated targets: the result against a sort done plainly here, the status, and
 * what is refused. */
#include "sort/task/task.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "common/tsan.h"
#include "io/file.h"
#include "sort/testing/fixture.h"
#include "sort/spec/order.h"
#include "sort/shard/record.h"
#include "sort/shard/tar.h"
#include "sort/testing/world.h"

/* --- the plain sort --------------------------------------------------------------------------- */

struct plain {
    struct sort_row row; /* name owned */
    struct buf bytes;
};

static const struct sort_order *compared;

static int compare_plain(const void *a, const void *b)
{
    return order_compare(compared, &((const struct plain *)a)->row,
                         &((const struct plain *)b)->row);
}

/* Members one after the other, into the record of their key. */
static void read_shard(struct world *w, unsigned number, uint64_t seed, struct plain **all,
                       size_t *count)
{
    char name[32];
    snprintf(name, sizeof name, "s-%03u.tar", number);
    _cleanup_free_ char *path = xprintf("%s/%s", w->in, name);
    struct buf text = BUF_INIT;
    assert_int_equal(file_read_all(path, 1 << 28, &text, NULL), 0);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct tar_scan *scan = tar_scan_new(fd, text.len, name);
    struct tar_member m;
    size_t first = *count;
    while (tar_scan_next(scan, &m, NULL) > 0) {
        size_t len = record_key_len(m.path, m.path_len, SORT_KEY_FIRST_DOT);
        size_t i = first;
        while (i < *count &&
               order_compare_names((*all)[i].row.name, (*all)[i].row.name_len, m.path, len) != 0)
            i++;
        if (i == *count) {
            *all = xrealloc(*all, ++*count * sizeof **all);
            uint32_t position = (uint32_t)(i - first);
            (*all)[i] = (struct plain){.row = {.name = xstrndup(m.path, len),
                                               .name_len = (uint32_t)len,
                                               .shard = number,
                                               .position = position,
                                               .key = order_shuffle_key(seed, name, position)}};
        }
        for (unsigned p = 0; p < m.piece_count; p++) {
            const struct tar_piece *piece = &m.pieces[p];
            const char *from =
                piece->inline_data != NULL ? piece->inline_data : text.data + piece->offset;
            buf_append(&(*all)[i].bytes, from, piece->length);
        }
    }
    tar_scan_free(scan);
    close(fd);
    buf_done(&text);
}

static void expect_file(struct world *w, size_t number, struct buf *wanted)
{
    static const char zeros[1024];
    buf_append(wanted, zeros, sizeof zeros);
    _cleanup_free_ char *path = xprintf("%s/o-%04zu.tar", w->out, number);
    struct buf got = BUF_INIT;
    struct error err = ERROR_INIT;
    if (file_read_all(path, 1 << 28, &got, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(got.len, wanted->len);
    assert_memory_equal(got.data, wanted->data, got.len);
    buf_done(&got);
    buf_clear(wanted);
}

static void expect_sorted(struct world *w, const struct sort_order *o, uint64_t seed,
                          uint64_t limit)
{
    struct plain *all = NULL;
    size_t count = 0;
    for (unsigned i = 0; i < w->shards; i++)
        read_shard(w, i, seed, &all, &count);
    compared = o;
    if (count > 0)
        qsort(all, count, sizeof *all, compare_plain);
    struct buf shard = BUF_INIT;
    size_t files = 0;
    for (size_t i = 0; i < count; i++) {
        buf_append(&shard, all[i].bytes.data, all[i].bytes.len);
        if (shard.len >= limit || i == count - 1)
            expect_file(w, files++, &shard);
        buf_done(&all[i].bytes);
        free((char *)all[i].row.name);
    }
    assert_int_equal(world_count(w->out), files);
    free(all);
    buf_done(&shard);
}

static void test_any_number_of_targets(void **state)
{
    struct world *w = *state;
    static const char *const kinds[] = {"alphanumeric", "shuffle", "none"};
    for (uint64_t seed = 0; seed < 42; seed += TSAN_STRIDE) {
        world_make_dataset(w, seed);
        struct sort_order o = {(enum sort_algorithm)(seed % 3), seed % 3 != 2 && seed % 5 == 0};
        uint64_t limit = 1000 + seed * 1777;
        _cleanup_free_ char *more = xprintf(
            ", \"input_format\": \"s-{000..%03u}\", \"output_shard_size\": %llu, "
            "\"algorithm\": {\"kind\": \"%s\", \"decreasing\": %s%s}",
            w->shards - 1, (unsigned long long)limit, kinds[o.algorithm],
            o.decreasing ? "true" : "false", o.algorithm == SORT_SHUFFLE ? ", \"seed\": 9" : "");
        struct sort_spec *spec = world_spec(more);
        for (unsigned targets = 1; targets <= 7; targets += 1 + (unsigned)seed % 3) {
            struct sim_config config = world_config(w, spec, targets);
            config.salt = seed;
            struct error err = ERROR_INIT;
            if (world_run(&config, &err) != 0)
                fail_msg("seed %llu, %u targets: %s", (unsigned long long)seed, targets,
                         err.message);
            expect_sorted(w, &o, 9, limit);
            world_clear_output(w);
        }
        sort_spec_free(spec);
        file_remove_tree(w->in, NULL);
        file_mkdirs(w->in, 0755, NULL);
    }
}

/* A shard of more records than one request may name, in tables that do not fit into memory. */
static void test_spilling_and_long_shards(void **state)
{
    struct world *w = *state;
    rng_seed(&w->rng, 1);
    w->shards = 8;
    for (unsigned i = 0; i < w->shards; i++) {
        struct buf tar = BUF_INIT;
        for (unsigned r = 0; r < 9000; r++) {
            char path[64];
            snprintf(path, sizeof path, "%08x", r * 2654435761U + i);
            fixture_file(&tar, path, "x");
        }
        fixture_end(&tar);
        char name[32];
        snprintf(name, sizeof name, "s-%03u.tar", i);
        world_write(w->in, name, &tar);
        buf_done(&tar);
    }
    struct sort_spec *spec =
        world_spec(", \"input_format\": {\"prefix\": \"s-\"}, \"output_shard_size\": \"1GB\"");
    struct sim_config config = world_config(w, spec, 3);
    config.memory_bytes = SORT_MEMORY_MIN; /* too small for the members of any one shard, too */
    struct error err = ERROR_INIT;
    struct sim *s = sim_new(&config);
    if (sim_run(s, &err) != 0)
        fail_msg("%s", err.message);
    struct sort_order o = {SORT_ALPHANUMERIC, false};
    _cleanup_json_ json_t *status = sim_status(s);
    json_int_t spilled = 0;
    for (unsigned i = 1; i <= 3; i++) {
        char id[8];
        snprintf(id, sizeof id, "t%u", i);
        json_t *extract = json_object_get(json_object_get(status, id), "extract");
        spilled += json_integer_value(json_object_get(extract, "spilled_bytes"));
    }
    assert_true(spilled > 0);
    sim_free(s);
    _cleanup_free_ char *path = xprintf("%s/o-0000.tar", w->out);
    struct buf got = BUF_INIT;
    assert_int_equal(file_read_all(path, 1 << 28, &got, NULL), 0);
    assert_int_equal(got.len, 72000 * 1024 + 1024);
    for (size_t i = 1; i < 72000; i++)
        assert_true(strcmp(got.data + (i - 1) * 1024, got.data + i * 1024) < 0);
    buf_done(&got);
    (void)o;
    sort_spec_free(spec);
}

static json_t *run_for_status(const struct sim_config *config)
{
    struct sim *s = sim_new(config);
    struct error err = ERROR_INIT;
    if (sim_run(s, &err) != 0)
        fail_msg("%s", err.message);
    json_t *status = sim_status(s);
    sim_free(s);
    return status;
}

static json_int_t sum_of(json_t *status, const char *group, const char *field, const char *inner)
{
    json_int_t sum = 0;
    const char *id;
    json_t *one;
    json_object_foreach(status, id, one)
    {
        json_t *v = json_object_get(json_object_get(one, group), field);
        sum += json_integer_value(inner == NULL ? v : json_object_get(v, inner));
    }
    return sum;
}

static void test_status_adds_up(void **state)
{
    struct world *w = *state;
    world_make_dataset(w, 4);
    struct sort_spec *spec = world_spec(WORLD_PREFIX);
    struct sim_config config = world_config(w, spec, 4);
    _cleanup_json_ json_t *s = run_for_status(&config);
    json_int_t records = sum_of(s, "extract", "records", NULL);
    json_int_t bytes = sum_of(s, "extract", "bytes", NULL);
    json_int_t shards = sum_of(s, "create", "shards", "total");
    assert_true(records > 0 && shards > 1);
    assert_int_equal(sum_of(s, "extract", "shards", "done"), w->shards);
    assert_int_equal(sum_of(s, "create", "records", NULL), records);
    assert_int_equal(sum_of(s, "create", "shards", "done"), shards);
    assert_int_equal(sum_of(s, "create", "bytes", "done"), bytes + 1024 * shards);
    assert_int_equal(sum_of(s, "create", "bytes", "total"), bytes + 1024 * shards);
    assert_int_equal(sum_of(s, "create", "bytes", "local") + sum_of(s, "create", "bytes", "remote"),
                     bytes);
    assert_int_equal(sum_of(s, "plan", "records", NULL), records);
    assert_int_equal(sum_of(s, "plan", "bytes", NULL), bytes);
    assert_int_equal(sum_of(s, "plan", "shards", NULL), shards);
    /* What the plan says will move is what moved. */
    assert_int_equal(sum_of(s, "plan", "moved_bytes", NULL),
                     sum_of(s, "create", "bytes", "remote"));
    assert_true(sum_of(s, "plan", "moved_bytes", NULL) <=
                sum_of(s, "plan", "moved_bytes_hrw", NULL));
    sort_spec_free(spec);
}

/* A prefix that nothing has is most likely a mistake. */
static void test_no_input_is_said(void **state)
{
    struct world *w = *state;
    world_make_dataset(w, 4);
    struct sort_spec *spec =
        world_spec(", \"input_format\": {\"prefix\": \"nothing-\"}, \"output_shard_size\": 9000");
    struct sim_config config = world_config(w, spec, 3);
    _cleanup_json_ json_t *s = run_for_status(&config);
    assert_int_equal(world_count(w->out), 0);
    const char *id;
    json_t *one;
    size_t warnings = 0;
    json_object_foreach(s, id, one)
    {
        json_t *said = json_object_get(one, "warnings");
        warnings += json_array_size(said);
        if (json_array_size(said) > 0)
            assert_non_null(strstr(json_string_value(json_array_get(said, 0)), "no records"));
    }
    assert_int_equal(warnings, 1);
    sort_spec_free(spec);
}

static void test_dry_run(void **state)
{
    struct world *w = *state;
    world_make_dataset(w, 4);
    struct sort_spec *spec = world_spec(WORLD_PREFIX ", \"dry_run\": true");
    struct sim_config config = world_config(w, spec, 3);
    _cleanup_json_ json_t *s = run_for_status(&config);
    assert_int_equal(world_count(w->out), 0);
    assert_true(sum_of(s, "plan", "shards", NULL) > 1);
    assert_int_equal(sum_of(s, "create", "shards", "total"), sum_of(s, "plan", "shards", NULL));
    assert_int_equal(sum_of(s, "create", "bytes", "done"), 0);
    sort_spec_free(spec);
}

/* --- refusals --------------------------------------------------------------------------------- */

static void expect_refusal(struct world *w, const char *more, int code, const char *words)
{
    struct sort_spec *spec = world_spec(more);
    int before = world_count(w->out);
    for (unsigned targets = 1; targets <= 5; targets += 2) {
        struct sim_config config = world_config(w, spec, targets);
        struct error err = ERROR_INIT;
        int rc = world_run(&config, &err);
        if (rc != code || strstr(err.message, words) == NULL)
            fail_msg("%u targets: %s: '%s', not '%s'", targets, error_name(rc), err.message, words);
        assert_int_equal(world_count(w->out), before);
    }
    sort_spec_free(spec);
}

static void make_bad_shard(struct world *w, void (*fill)(struct buf *tar))
{
    struct buf tar = BUF_INIT;
    fill(&tar);
    world_write(w->in, "s-bad.tar", &tar);
    buf_done(&tar);
}

static void fill_garbage(struct buf *tar)
{
    for (int i = 0; i < 2000; i++)
        buf_putc(tar, (char)(i * 31 + 7));
}

static void fill_cut_short(struct buf *tar)
{
    fixture_file(tar, "a.x", "hello");
}

static void fill_twice(struct buf *tar)
{
    fixture_file(tar, "a.x", "hello");
    fixture_file(tar, "a.x", "again");
    fixture_end(tar);
}

static void fill_link(struct buf *tar)
{
    fixture_file(tar, "a.x", "hello");
    fixture_header(tar, "b.x", '1', 0, "a.x");
    fixture_end(tar);
}

static void test_bad_shards(void **state)
{
    struct world *w = *state;
    world_make_dataset(w, 2);
    make_bad_shard(w, fill_garbage);
    expect_refusal(w, WORLD_PREFIX, E_SHARD_CORRUPT, "shard 's-bad.tar', byte 0");
    make_bad_shard(w, fill_cut_short);
    expect_refusal(w, WORLD_PREFIX, E_SHARD_CORRUPT, "shard 's-bad.tar', byte 1024");
    make_bad_shard(w, fill_twice);
    expect_refusal(w, WORLD_PREFIX, E_DUPLICATE_RECORD, "shard 's-bad.tar', byte 1024: 'a.x'");
    make_bad_shard(w, fill_link);
    expect_refusal(w, WORLD_PREFIX, E_SHARD_UNSUPPORTED,
                   "shard 's-bad.tar': hard link 'b.x' to 'a.x'");
}

/* All records of the first shard lack their key, and are counted. */
static void test_missing_keys(void **state)
{
    struct world *w = *state;
    world_make_dataset(w, 2);
    const char *more = WORLD_PREFIX ", \"algorithm\": {\"kind\": \"content\", \"extension\": "
                                    "\".nope\", \"content_key_type\": \"int\"}";
    expect_refusal(w, more, E_KEY_MISSING, "has no member '.nope' (");
    expect_refusal(w, more, E_KEY_MISSING, " of the shard's ");
}

static void test_missing_shards(void **state)
{
    struct world *w = *state;
    world_make_dataset(w, 2);
    _cleanup_free_ char *more = xprintf(
        ", \"input_format\": \"s-{000..%03u}\", \"output_shard_size\": 9000", w->shards + 1);
    expect_refusal(w, more, E_SHARD_MISSING, "does not exist (");
    expect_refusal(w, more, E_SHARD_MISSING, "of this target's");
    _cleanup_free_ char *warn = xprintf("%s, \"missing_shards\": \"warn\"", more);
    struct sort_spec *spec = world_spec(warn);
    struct sim_config config = world_config(w, spec, 2);
    _cleanup_json_ json_t *s = run_for_status(&config);
    size_t warnings = 0;
    for (int i = 1; i <= 2; i++)
        warnings +=
            json_array_size(json_object_get(json_object_get(s, i == 1 ? "t1" : "t2"), "warnings"));
    assert_int_equal(warnings, 2);
    struct sort_order o = {SORT_ALPHANUMERIC, false};
    expect_sorted(w, &o, 0, 9000);
    sort_spec_free(spec);
}

static void test_existing_outputs(void **state)
{
    struct world *w = *state;
    world_make_dataset(w, 2);
    struct buf text = BUF_INIT;
    buf_puts(&text, "here before");
    world_write(w->out, "o-0000.tar", &text);
    expect_refusal(w, WORLD_PREFIX, E_OBJECT_EXISTS, "'o-0000.tar' exists");
    world_clear_output(w);
    world_write(w->out, "o-0003.tar", &text);
    expect_refusal(w, WORLD_PREFIX, E_OBJECT_EXISTS, "'o-0003.tar' exists");
    expect_refusal(w, WORLD_PREFIX ", \"dry_run\": true", E_OBJECT_EXISTS, "'o-0003.tar' exists");
    buf_done(&text);
}

static void test_too_few_names(void **state)
{
    struct world *w = *state;
    world_make_dataset(w, 2);
    struct sort_spec *spec = world_spec(WORLD_PREFIX ", \"dry_run\": true");
    struct sim_config dry = world_config(w, spec, 1);
    _cleanup_json_ json_t *plan = run_for_status(&dry);
    _cleanup_free_ char *said =
        xprintf("has 3 names; %lld are needed", (long long)sum_of(plan, "plan", "shards", NULL));
    spec->dry_run = false;
    template_free(spec->output_template);
    assert_int_equal(template_parse("o-{0000..0002}.tar", &spec->output_template, NULL), 0);
    for (unsigned targets = 1; targets <= 4; targets++) {
        struct sim_config config = world_config(w, spec, targets);
        struct error err = ERROR_INIT;
        assert_int_equal(world_run(&config, &err), E_TEMPLATE_TOO_SMALL);
        if (strstr(err.message, said) == NULL)
            fail_msg("'%s', not '%s'", err.message, said);
        assert_int_equal(world_count(w->out), 0);
    }
    sort_spec_free(spec);
}

static void test_repeated_names(void **state)
{
    struct world *w = *state;
    rng_seed(&w->rng, 1);
    for (unsigned i = 0; i < 3; i++) {
        struct buf tar = BUF_INIT;
        fixture_file(&tar, "same.x", "x");
        fixture_file(&tar, i == 1 ? "one.x" : "other.x", "x");
        fixture_end(&tar);
        char name[32];
        snprintf(name, sizeof name, "s-%03u.tar", i);
        world_write(w->in, name, &tar);
        buf_done(&tar);
    }
    static const char *const kinds[] = {"alphanumeric", "none"};
    for (int k = 0; k < 2; k++) {
        struct sort_spec *spec = world_spec(WORLD_PREFIX);
        spec->algorithm = k == 0 ? SORT_ALPHANUMERIC : SORT_NONE;
        struct sim_config config = world_config(w, spec, 1);
        spec->duplicated_output_records = SORT_WARN;
        _cleanup_json_ json_t *s = run_for_status(&config);
        size_t notes = json_array_size(json_object_get(json_object_get(s, "t1"), "warnings"));
        if (notes != 3)
            fail_msg("%s: %zu warnings", kinds[k], notes);
        world_clear_output(w);
        spec->duplicated_output_records = SORT_ABORT;
        struct error err = ERROR_INIT;
        assert_int_equal(world_run(&config, &err), E_DUPLICATE_RECORD);
        assert_int_equal(world_count(w->out), 0);
        sort_spec_free(spec);
    }
}

static void test_nothing_to_sort(void **state)
{
    struct world *w = *state;
    struct sort_spec *spec = world_spec(WORLD_PREFIX);
    for (unsigned targets = 1; targets <= 3; targets++) {
        struct sim_config config = world_config(w, spec, targets);
        struct error err = ERROR_INIT;
        assert_int_equal(world_run(&config, &err), 0);
        assert_int_equal(world_count(w->out), 0);
    }
    sort_spec_free(spec);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_any_number_of_targets),
        TEST(test_spilling_and_long_shards),
        TEST(test_status_adds_up),
        TEST(test_dry_run),
        TEST(test_bad_shards),
        TEST(test_missing_keys),
        TEST(test_missing_shards),
        TEST(test_existing_outputs),
        TEST(test_too_few_names),
        TEST(test_repeated_names),
        TEST(test_nothing_to_sort),
        TEST(test_no_input_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
