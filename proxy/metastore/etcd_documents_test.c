/* Changes as transactions and documents out of keys, without a server; metastore/etcd_test.c puts
 * both through one. */
#include "proxy/metastore/etcd_documents.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/command/command.h"
#include "cluster/testing/random_command.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum { PLENTY = 1 << 20 };

static const struct etcd_fence fence = {.prefix = "/c", .election = 7, .head = 9};

static const struct cluster_state *with_bucket(const struct cluster_state *s, const char *name)
{
    const struct bucket_props props = BUCKET_PROPS_DEFAULT;
    const struct command cmd = {.kind = CMD_BUCKET_CREATE, .name = name, .props = &props};
    const struct cluster_state *next;
    assert_int_equal(command_apply(s, &cmd, &next, NULL), 0);
    return next;
}

/* The keys that an operation is about, decoded, in one text. */
static void list_keys(json_t *operations, struct buf *out)
{
    size_t i;
    json_t *operation;
    json_array_foreach(operations, i, operation)
    {
        json_t *put = json_object_get(operation, "request_put");
        json_t *what = put != NULL ? put : json_object_get(operation, "request_delete_range");
        buf_puts(out, put != NULL ? " +" : " -");
        etcd_base64_parse(json_string_value(json_object_get(what, "key")), out, NULL);
    }
}

static void assert_change(const struct cluster_state *from, const struct cluster_state *to,
                          const char *keys)
{
    _cleanup_json_ json_t *txn = NULL;
    _cleanup_(buf_done)
    struct buf found = BUF_INIT;
    assert_int_equal(etcd_change(&fence, from, to, PLENTY, &txn, NULL), 0);
    list_keys(json_object_get(txn, "success"), &found);
    assert_string_equal(buf_str(&found), keys);
}

static void a_change_writes_what_changes(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *none = state_new("c-1");
    _cleanup_state_ const struct cluster_state *one = with_bucket(none, "one");
    _cleanup_state_ const struct cluster_state *two = with_bucket(one, "two");
    const struct command drop = {.kind = CMD_BUCKET_DESTROY, .name = "one"};
    const struct command set = {.kind = CMD_CONFIG_SET, .name = "buckets_max", .text = "5"};
    const struct command unset = {.kind = CMD_CONFIG_SET, .name = "buckets_max"};
    _cleanup_state_ const struct cluster_state *dropped = NULL;
    _cleanup_state_ const struct cluster_state *is_set = NULL;
    _cleanup_state_ const struct cluster_state *is_unset = NULL;
    assert_int_equal(command_apply(two, &drop, &dropped, NULL), 0);
    assert_int_equal(command_apply(dropped, &set, &is_set, NULL), 0);
    assert_int_equal(command_apply(is_set, &unset, &is_unset, NULL), 0);
    assert_change(NULL, one, " +/c/head +/c/bmd/one");
    assert_change(one, two, " +/c/head +/c/bmd/two");
    assert_change(two, dropped, " +/c/head -/c/bmd/one");
    assert_change(dropped, is_set, " +/c/head +/c/config/buckets_max");
    assert_change(is_set, is_unset, " +/c/head -/c/config/buckets_max");
    assert_change(NULL, two, " +/c/head +/c/bmd/one +/c/bmd/two");
}

static void a_change_is_fenced(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *none = state_new("c-1");
    _cleanup_state_ const struct cluster_state *one = with_bucket(none, "one");
    _cleanup_json_ json_t *txn = NULL;
    assert_int_equal(etcd_change(&fence, none, one, PLENTY, &txn, NULL), 0);
    _cleanup_free_ char *compare = json_text(json_object_get(txn, "compare"));
    assert_string_equal(compare,
                        "[{\"key\":\"L2MvcHJpbWFyeQ==\",\"target\":\"CREATE\",\"result\":\"EQUAL\","
                        "\"create_revision\":\"7\"},{\"key\":\"L2MvaGVhZA==\",\"target\":\"MOD\","
                        "\"result\":\"EQUAL\",\"mod_revision\":\"9\"}]");
}

static struct job *job_of_size(const char *id, size_t bytes)
{
    struct job *job = job_new(id, "sort");
    _cleanup_free_ char *text = xcalloc(bytes + 1, 1);
    memset(text, 'x', bytes);
    job->spec = json_pack("{s:s}", "x", text);
    job->plan = json_object();
    return job;
}

/* One that is there already may grow beyond what a new one may take. */
static void what_is_too_large_is_refused(void **unused)
{
    (void)unused;
    static const struct {
        size_t first, second;
        int first_code, second_code;
    } rows[] = {
        {30000, 60000, 0, 0},
        {32000, 70000, 0, E_TOO_LARGE},
        {33000, 0, E_TOO_LARGE, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_state_ const struct cluster_state *none = state_new("c-1");
        _cleanup_state_ const struct cluster_state *created = NULL;
        _cleanup_state_ const struct cluster_state *updated = NULL;
        _cleanup_json_ json_t *txn = NULL;
        _cleanup_json_ json_t *second_txn = NULL;
        struct error err = ERROR_INIT;
        struct job *job = job_of_size("srt-1", rows[i].first);
        const struct command create = {.kind = CMD_JOB_CREATE, .job = job};
        assert_int_equal(command_apply(none, &create, &created, NULL), 0);
        assert_int_equal(etcd_change(&fence, none, created, 64 << 10, &txn, &err),
                         rows[i].first_code);
        job_unref(job);
        if (rows[i].first_code != 0) {
            assert_non_null(strstr(err.message, "etcd_request_max"));
            continue;
        }
        job = job_of_size("srt-1", rows[i].second);
        const struct command update = {.kind = CMD_JOB_UPDATE, .job = job};
        assert_int_equal(command_apply(created, &update, &updated, NULL), 0);
        assert_int_equal(etcd_change(&fence, created, updated, 64 << 10, &second_txn, NULL),
                         rows[i].second_code);
        job_unref(job);
    }
}

/* --- verdicts -------------------------------------------------------------------------------- */

static json_t *kvs_of(const char *key, uint64_t created, uint64_t changed, const char *value)
{
    _cleanup_(buf_done)
    struct buf k = BUF_INIT;
    _cleanup_(buf_done)
    struct buf v = BUF_INIT;
    if (created == 0)
        return json_pack("{s:{}}", "response_range");
    etcd_base64_put(&k, key, strlen(key));
    etcd_base64_put(&v, value, strlen(value));
    _cleanup_free_ char *c = xprintf("%llu", (unsigned long long)created);
    _cleanup_free_ char *m = xprintf("%llu", (unsigned long long)changed);
    return json_pack("{s:{s:[{s:s, s:s, s:s, s:s}]}}", "response_range", "kvs", "key", buf_str(&k),
                     "value", buf_str(&v), "create_revision", c, "mod_revision", m);
}

static void verdicts(void **unused)
{
    (void)unused;
    static const struct {
        uint64_t primary;
        const char *head; /* NULL: absent */
        enum etcd_verdict verdict;
        uint64_t revision;
    } rows[] = {
        {7, "{\"election\":7,\"version\":1}", ETCD_MADE, 12}, /* sent before */
        {0, "{\"election\":7,\"version\":1}", ETCD_MADE, 12}, /* and the lease was over then */
        {10, "{\"election\":7,\"version\":1}", ETCD_MADE, 12},
        /* Another one's first change, upon what was before ours; */
        {10, "{\"election\":10,\"version\":1,\"term_version\":1}", ETCD_DEPOSED, 0},
        {10, "{\"election\":10,\"version\":4,\"term_version\":1}", ETCD_DEPOSED, 0},
        /* or upon ours, or upon a third one's. */
        {10, "{\"election\":10,\"version\":2,\"term_version\":2}", ETCD_OVERTAKEN, 0},
        {0, "{\"election\":10,\"version\":9,\"term_version\":4}", ETCD_OVERTAKEN, 0},
        {10, "{\"election\":10,\"version\":2}", ETCD_OVERTAKEN, 0},
        {10, "{\"election\":6,\"version\":0}", ETCD_DEPOSED, 0},
        {0, "{\"election\":6,\"version\":0}", ETCD_DEPOSED, 0},
        {0, NULL, ETCD_DEPOSED, 0},
        {7, "{\"election\":6,\"version\":1}", ETCD_FOREIGN, 0},
        {7, "{\"election\":7,\"version\":2}", ETCD_FOREIGN, 0},
        {7, NULL, ETCD_FOREIGN, 0},
    };
    _cleanup_state_ const struct cluster_state *none = state_new("c-1");
    _cleanup_state_ const struct cluster_state *one = with_bucket(none, "one");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_json_ json_t *reply =
            json_pack("{s:{s:s}, s:[o, o]}", "header", "revision", "20", "responses",
                      kvs_of("/c/primary", rows[i].primary, rows[i].primary, "x"),
                      kvs_of("/c/head", rows[i].head != NULL ? 3 : 0, 12, rows[i].head));
        enum etcd_verdict verdict;
        uint64_t head = 0;
        assert_int_equal(etcd_change_verdict(reply, &fence, one, &verdict, &head, NULL), 0);
        assert_int_equal(verdict, rows[i].verdict);
        if (verdict == ETCD_MADE)
            assert_int_equal(head, rows[i].revision);
    }
    _cleanup_json_ json_t *made =
        json_pack("{s:{s:s}, s:b}", "header", "revision", "20", "succeeded", 1);
    enum etcd_verdict verdict;
    uint64_t head = 0;
    assert_int_equal(etcd_change_verdict(made, &fence, one, &verdict, &head, NULL), 0);
    assert_int_equal(verdict, ETCD_MADE);
    assert_int_equal(head, 20);
}

/* --- reading --------------------------------------------------------------------------------- */

static void damage_is_named(void **unused)
{
    (void)unused;
    static const char *const rows[][2] = {
        {"/c/head", "{"},  {"/c/head", "{\"format\": 2}"},
        {"/c/head", "[]"}, {"/c/bmd/b", "nothing"},
        {"", "{}"}, /* nobody asked for these */
        {"/d/head", "{}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct etcd_gather g = {.prefix = "/c"};
        struct etcd_kv kv = {.key = (char *)rows[i][0], .mod_revision = 1};
        const struct etcd_kvs page = {.count = 1, .kvs = &kv};
        struct cluster_state *s = NULL;
        struct error err = ERROR_INIT;
        buf_puts(&kv.value, rows[i][1]);
        int r = etcd_gather_take(&g, &page, &err);
        if (r == 0)
            r = etcd_gather_state(&g, &s, &err);
        assert_int_equal(r, E_CORRUPT);
        assert_non_null(strstr(err.message, "/c"));
        etcd_gather_done(&g);
        buf_done(&kv.value);
    }
}

static void without_a_head_there_is_nothing(void **unused)
{
    (void)unused;
    struct etcd_gather g = {.prefix = "/c"};
    struct etcd_kv kv = {.key = (char *)"/c/primary", .mod_revision = 1};
    const struct etcd_kvs page = {.count = 1, .kvs = &kv};
    struct cluster_state *s = NULL;
    assert_int_equal(etcd_gather_take(&g, &page, NULL), 0);
    assert_int_equal(etcd_gather_state(&g, &s, NULL), 0);
    assert_null(s);
    etcd_gather_done(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_writes_what_changes),
        cmocka_unit_test(a_change_is_fenced),
        cmocka_unit_test(what_is_too_large_is_refused),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(damage_is_named),
        cmocka_unit_test(without_a_head_there_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
