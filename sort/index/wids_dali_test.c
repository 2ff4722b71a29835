/* What stands in the indexes beside an output, and what they are called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/jsonx.h"
#include "sort/index/dali.h"
#include "sort/shard/output_names.h"
#include "sort/index/wids.h"

static const struct sort_env env = {0}; /* blobs that stay in memory need nothing */

static void read_all(struct source from, struct buf *out)
{
    char piece[7];
    ssize_t n;
    while ((n = from.read(from.ctx, piece, sizeof piece, NULL)) > 0)
        buf_append(out, piece, (size_t)n);
    assert_int_equal(n, 0);
}

static void expect_dali(const char *const *paths, const char *wanted)
{
    struct dali d;
    struct buf got = BUF_INIT;
    uint64_t size = 0;
    dali_init(&d, &env);
    for (uint64_t i = 0; paths[i] != NULL; i++)
        assert_int_equal(dali_add(&d, paths[i], strlen(paths[i]), 512 + 1024 * i, i, NULL), 0);
    assert_int_equal(dali_finish(&d, &size, NULL), 0);
    read_all(dali_source(&d), &got);
    assert_string_equal(buf_str(&got), wanted);
    assert_int_equal(got.len, size);
    buf_done(&got);
    dali_done(&d);
}

static void test_samples_of_dali(void **state)
{
    (void)state;
    expect_dali((const char *[]){NULL}, "v1.2 0\n");
    expect_dali((const char *[]){"a/1.jpg", "a/1.seg.png", "a/2.jpg", "b/2.jpg", NULL},
                "v1.2 3\n"
                "jpg 512 0 a/1.jpg seg.png 1536 1 a/1.seg.png\n"
                "jpg 2560 2 a/2.jpg\n"
                "jpg 3584 3 b/2.jpg\n");
    /* Hidden files are none; a path without a dot is its own extension. */
    expect_dali((const char *[]){".x", "d.e/.y", "d.e/f", "d.e/f.z", NULL},
                "v1.2 1\n"
                "d.e/f 2560 2 d.e/f z 3584 3 d.e/f.z\n");
}

static void test_paths_that_dali_cannot_have(void **state)
{
    (void)state;
    static const char *const paths[] = {"a b.jpg", "a/b.j\tpg", "a\n.x", "a."};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct dali d;
        struct error err = ERROR_INIT;
        dali_init(&d, &env);
        assert_int_equal(dali_add(&d, paths[i], strlen(paths[i]), 0, 0, &err), E_SHARD_UNSUPPORTED);
        assert_non_null(strstr(err.message, paths[i]));
        dali_done(&d);
    }
}

static void test_urls_of_wids(void **state)
{
    (void)state;
    static const struct {
        const char *index, *shard, *url;
    } rows[] = {
        {"i.json", "o-1.tar", "o-1.tar"},
        {"i.json", "a/o-1.tar", "a/o-1.tar"},
        {"a/i.json", "a/o-1.tar", "o-1.tar"},
        {"a/i.json", "o-1.tar", "../o-1.tar"},
        {"a/b/i.json", "ab/o.tar", "../../ab/o.tar"},
        {"a/b/i.json", "a/c/o.tar", "../c/o.tar"},
        {"\"é\".json", "\"é\"/o.tar", "\"é\"/o.tar"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct blob *text = blob_new(&env, 1 << 20);
        const struct wids_shard tar = {rows[i].shard, 7, 10240};
        const struct wids_shard other = {rows[i].shard, 8, SORT_SIZE_UNKNOWN};
        assert_int_equal(wids_begin(text, NULL), 0);
        assert_int_equal(wids_add(text, rows[i].index, &tar, true, NULL), 0);
        assert_int_equal(wids_add(text, rows[i].index, &other, false, NULL), 0);
        assert_int_equal(wids_end(text, NULL), 0);
        struct blob_range range = {.blob = text, .end = blob_size(text)};
        struct buf got = BUF_INIT;
        read_all(source_blob(&range), &got);
        _cleanup_json_ json_t *doc = NULL;
        assert_int_equal(json_parse(buf_str(&got), got.len, &doc, NULL), 0);
        _cleanup_json_ json_t *wanted =
            json_pack("{s:s, s:i, s:[{s:s, s:i, s:i}, {s:s, s:i}]}", "__kind__",
                      "wids-shard-index-v1", "wids_version", 1, "shardlist", "url", rows[i].url,
                      "nsamples", 7, "filesize", 10240, "url", rows[i].url, "nsamples", 8);
        assert_true(json_equal(doc, wanted));
        buf_done(&got);
        blob_free(text);
    }
}

static void test_names(void **state)
{
    (void)state;
    static const char request[] =
        "{\"input_bck\": \"b\", \"input_format\": {\"prefix\": \"\"}, \"output_format\": "
        "\"o.x-%03d\", \"output_shard_size\": 1, \"dali_indexes\": true, \"wids_index\": "
        "\"o.json\"}";
    _cleanup_json_ json_t *doc = json_loads(request, 0, NULL);
    _cleanup_(sort_spec_freep)
    struct sort_spec *s = NULL;
    assert_int_equal(sort_spec_parse(doc, &s, NULL), 0);
    struct buf name = BUF_INIT;
    output_dali_name("o.x-001.tar", &name);
    assert_string_equal(buf_str(&name), "o.x-001.idx");
    buf_done(&name);
    static const struct {
        const char *name;
        bool is_named;
        const char *type;
    } rows[] = {
        {"o.x-001.tar", true, "application/x-tar"}, {"o.x-001.idx", true, "text/plain"},
        {"o.json", false, "application/json"},      {"o.x-01.idx", false, "text/plain"},
        {".idx", false, "application/x-tar"},       {"o.x-001.id", false, "application/x-tar"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(output_is_named(s, rows[i].name), rows[i].is_named);
        assert_string_equal(output_content_type(s, rows[i].name), rows[i].type);
    }
    s->dali_indexes = false;
    assert_false(output_is_named(s, "o.x-001.idx"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_of_dali),
        cmocka_unit_test(test_paths_that_dali_cannot_have),
        cmocka_unit_test(test_urls_of_wids),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
