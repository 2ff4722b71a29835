/* libdfc against api/testing/mock_cluster.py: what a program sees that dfcctl does not show. */
#include "api/dfc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>
#include <curl/curl.h>
#include <cmocka.h>

#include "api/testing/mock_child.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/rng.h"

/* ---- each test has a client and a bucket "b" ---- */

static struct dfc_client *client;
static struct dfc_error err;

static int setup(void **state)
{
    (void)state;
    mock_steer("DELETE", "/mock", NULL, NULL);
    const struct dfc_client_options options = {.endpoints = mock_endpoint,
                                               .retry_budget_ms = 20000};
    return dfc_client_open(&options, &client, &err) == DFC_OK &&
                   dfc_bucket_create(client, "b", NULL, &err) == DFC_OK
               ? 0
               : -1;
}

static int teardown(void **state)
{
    (void)state;
    dfc_client_close(client);
    return 0;
}

static unsigned char *bytes_of(size_t size, uint64_t seed)
{
    struct rng r;
    unsigned char *data = xmalloc(size + 8);
    rng_seed(&r, seed);
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = rng_next(&r);
        memcpy(data + i, &word, 8);
    }
    return data;
}

static void put(const char *key, const void *data, size_t size)
{
    assert_int_equal(dfc_put_memory(client, "b", key, data, size, NULL, NULL, &err), DFC_OK);
}

static void assert_holds(const char *key, const void *want, size_t size)
{
    void *data;
    size_t got;
    assert_int_equal(dfc_get_memory(client, "b", key, NULL, &data, &got, NULL, &err), DFC_OK);
    assert_int_equal(got, size);
    if (size > 0)
        assert_memory_equal(data, want, size);
    dfc_free(data);
}

/* ---- sources ---- */

struct source {
    const unsigned char *data;
    size_t size, at;
    bool breaks;
};

static ptrdiff_t source_read(void *context, void *to, size_t room)
{
    struct source *s = context;
    size_t n = s->size - s->at < room ? s->size - s->at : room;
    if (s->breaks && s->at > 0)
        return -1;
    memcpy(to, s->data + s->at, n);
    s->at += n;
    return (ptrdiff_t)n;
}

static int source_rewind(void *context)
{
    ((struct source *)context)->at = 0;
    return 0;
}

static void put_from_sources(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 262144, 262145, 1500000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *data = bytes_of(sizes[i], i);
        for (int form = 0; form < 4; form++) {
            struct source s = {.data = data, .size = sizes[i]};
            const struct dfc_source source = {source_read, form & 1 ? source_rewind : NULL, &s,
                                              form & 2 ? (int64_t)sizes[i] : -1};
            struct dfc_object_info *info;
            assert_int_equal(dfc_put_source(client, "b", "k", &source, NULL, &info, &err), DFC_OK);
            assert_int_equal(info->size, sizes[i]);
            assert_int_equal(info->etag[0], '"');
            dfc_object_info_free(info);
            assert_holds("k", data, sizes[i]);
        }
        free(data);
    }
}

static void a_source_that_breaks_stores_nothing(void **state)
{
    (void)state;
    unsigned char *data = bytes_of(2 << 20, 1);
    struct source s = {.data = data, .size = 2 << 20, .breaks = true};
    struct dfc_source source = {source_read, NULL, &s, -1};
    assert_int_equal(dfc_put_source(client, "b", "k", &source, NULL, NULL, &err), DFC_LOCAL);
    s.breaks = false;
    s.at = 0;
    source.size = 3 << 20; /* more than there is */
    assert_int_equal(dfc_put_source(client, "b", "k", &source, NULL, NULL, &err), DFC_LOCAL);
    assert_string_equal(err.code, "bad_length");
    assert_int_equal(dfc_head(client, "b", "k", NULL, &err), DFC_NOT_FOUND);
    free(data);
}

static void a_source_that_rewinds_is_put_again(void **state)
{
    (void)state;
    unsigned char *data = bytes_of(1 << 20, 1);
    struct source s = {.data = data, .size = 1 << 20};
    const struct dfc_source source = {source_read, source_rewind, &s, -1};
    mock_plan("[{\"at\": \"target\", \"method\": \"PUT\", \"do\": \"drop\", \"times\": 2}]");
    assert_int_equal(dfc_put_source(client, "b", "k", &source, NULL, NULL, &err), DFC_OK);
    assert_holds("k", data, 1 << 20);
    free(data);
}

static void keep_progress(void *context, uint64_t done, uint64_t total)
{
    uint64_t *last = context;
    last[0] = done;
    last[1] = total;
}

static void metadata_and_progress(void **state)
{
    (void)state;
    unsigned char *data = bytes_of(300000, 1);
    uint64_t progress[2] = {0, 0};
    const struct dfc_meta meta[] = {{"step", "1200"}, {"Empty", ""}};
    const struct dfc_put_options options = {.content_type = "text/plain",
                                            .meta = meta,
                                            .meta_count = 2,
                                            .progress = keep_progress,
                                            .progress_context = progress};
    struct dfc_object_info *info;
    assert_int_equal(dfc_put_memory(client, "b", "k", data, 300000, &options, NULL, &err), DFC_OK);
    assert_true(progress[0] == 300000 && progress[1] == 300000);
    assert_int_equal(dfc_head(client, "b", "k", &info, &err), DFC_OK);
    assert_int_equal(info->size, 300000);
    assert_string_equal(info->content_type, "text/plain");
    assert_int_equal(info->modified_ms, 1700000000000);
    assert_string_equal(info->checksum_type, "xxh3");
    assert_int_equal(info->meta_count, 2);
    dfc_object_info_free(info);
    const struct dfc_put_options evil = {.content_type = "a\r\nX: y"};
    assert_int_equal(dfc_put_memory(client, "b", "k", "", 0, &evil, NULL, &err), DFC_INVALID);
    free(data);
}

/* ---- reading ---- */

struct begun {
    unsigned times;
    uint64_t size;
    int answer;
};

static int note_begin(void *context, const struct dfc_object_info *info)
{
    struct begun *b = context;
    b->times++;
    b->size = info->size;
    return b->answer;
}

static void told_before_the_first_byte(void **state)
{
    (void)state;
    struct begun b = {0};
    void *got = NULL;
    size_t size;
    unsigned char *data = bytes_of(300000, 1);
    struct dfc_get_options options = {.begin = note_begin, .begin_context = &b};
    put("k", data, 300000);
    mock_plan("[{\"at\": \"target\", \"method\": \"GET\", \"do\": \"cut\", \"bytes\": 1000}]");
    assert_int_equal(dfc_get_memory(client, "b", "k", &options, &got, &size, NULL, &err), DFC_OK);
    assert_true(b.times == 1 && b.size == 300000);
    dfc_free(got);
    mock_plan("[{\"at\": \"target\", \"method\": \"GET\", \"do\": \"corrupt\"}]");
    assert_int_equal(dfc_get_memory(client, "b", "k", &options, &got, &size, NULL, &err), DFC_OK);
    assert_int_equal(b.times, 3); /* it began anew */
    dfc_free(got);
    b.answer = -1;
    assert_int_equal(dfc_get_memory(client, "b", "k", &options, &got, &size, NULL, &err),
                     DFC_LOCAL);
    free(data);
}

static void ranges(void **state)
{
    (void)state;
    unsigned char *data = bytes_of(10000, 1);
    put("k", data, 10000);
    static const struct {
        int64_t offset;
        uint64_t length, first, size;
    } rows[] = {
        {0, 0, 0, 10000},         {0, 1, 0, 1},
        {1, 0, 1, 9999},          {9999, 1, 9999, 1},
        {9000, 5000, 9000, 1000}, {-100, 0, 9900, 100},
        {-20000, 0, 0, 10000},    {0, UINT64_MAX, 0, 10000},
        {5, UINT64_MAX, 5, 9995},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct dfc_get_options o = {.offset = rows[i].offset, .length = rows[i].length};
        void *got;
        size_t size;
        struct dfc_object_info *info;
        assert_int_equal(dfc_get_memory(client, "b", "k", &o, &got, &size, &info, &err), DFC_OK);
        assert_int_equal(size, rows[i].size);
        assert_memory_equal(got, data + rows[i].first, size);
        assert_int_equal(info->size, 10000);
        dfc_object_info_free(info);
        dfc_free(got);
    }
    const struct dfc_get_options beyond = {.offset = 10000};
    void *got;
    size_t size;
    assert_int_equal(dfc_get_memory(client, "b", "k", &beyond, &got, &size, NULL, &err),
                     DFC_INVALID);
    assert_int_equal(err.status, 416);
    free(data);
}

static void conditions(void **state)
{
    (void)state;
    struct dfc_object_info *info;
    void *got;
    size_t size;
    put("k", "one", 3);
    assert_int_equal(dfc_head(client, "b", "k", &info, &err), DFC_OK);
    struct dfc_get_options o = {.if_none_match = info->etag};
    assert_int_equal(dfc_get_memory(client, "b", "k", &o, &got, &size, NULL, &err),
                     DFC_NOT_MODIFIED);
    const struct dfc_put_options same = {.if_match = info->etag};
    assert_int_equal(dfc_put_memory(client, "b", "k", "two", 3, &same, NULL, &err), DFC_OK);
    assert_int_equal(dfc_put_memory(client, "b", "k", "x", 1, &same, NULL, &err), DFC_PRECONDITION);
    o = (struct dfc_get_options){.if_match = info->etag};
    assert_int_equal(dfc_get_memory(client, "b", "k", &o, &got, &size, NULL, &err),
                     DFC_PRECONDITION);
    const struct dfc_put_options absent = {.if_absent = true};
    assert_int_equal(dfc_put_memory(client, "b", "k", "x", 1, &absent, NULL, &err),
                     DFC_PRECONDITION);
    assert_int_equal(dfc_delete_match(client, "b", "k", info->etag, &err), DFC_PRECONDITION);
    dfc_object_info_free(info);
    assert_int_equal(dfc_head(client, "b", "k", &info, &err), DFC_OK);
    assert_int_equal(dfc_delete_match(client, "b", "k", info->etag, &err), DFC_OK);
    assert_int_equal(dfc_delete_match(client, "b", "k", info->etag, &err), DFC_NOT_FOUND);
    /* Several: libcurl repeats those itself whose connection it had kept. */
    mock_plan("[{\"method\": \"DELETE\", \"do\": \"drop\", \"times\": 5}]");
    assert_int_equal(dfc_delete_match(client, "b", "k", info->etag, &err), DFC_NOT_FOUND);
    mock_plan("[{\"method\": \"DELETE\", \"do\": \"drop\", \"times\": 5}]");
    assert_int_equal(dfc_delete(client, "b", "k", &err), DFC_OK); /* by the try that broke off */
    dfc_object_info_free(info);
}

static void memory_has_a_limit(void **state)
{
    (void)state;
    unsigned char *data = bytes_of(100000, 1);
    void *got = NULL;
    size_t size;
    put("k", data, 100000);
    struct dfc_get_options o = {.memory_limit = 99999};
    assert_int_equal(dfc_get_memory(client, "b", "k", &o, &got, &size, NULL, &err), DFC_LOCAL);
    assert_string_equal(err.code, "too_large");
    assert_null(got);
    o.memory_limit = 100000;
    assert_int_equal(dfc_get_memory(client, "b", "k", &o, &got, &size, NULL, &err), DFC_OK);
    dfc_free(got);
    free(data);
}

static int refuse_to_write(void *context, const void *data, size_t size)
{
    (void)context;
    (void)data;
    (void)size;
    errno = ENOSPC;
    return -1;
}

static void a_sink_that_fails_ends_the_call(void **state)
{
    (void)state;
    const struct dfc_sink sink = {.write = refuse_to_write};
    put("k", "data", 4);
    assert_int_equal(dfc_get_sink(client, "b", "k", &sink, NULL, NULL, &err), DFC_LOCAL);
    assert_string_equal(err.code, "no_space");
    assert_int_equal(mock_logged("\"at\": \"target\", \"node\": \"t2\", \"method\": \"GET\""), 1);
}

static void errors_tell_all(void **state)
{
    (void)state;
    void *got;
    size_t size;
    assert_int_equal(dfc_get_memory(client, "b", "none", NULL, &got, &size, NULL, &err),
                     DFC_NOT_FOUND);
    assert_int_equal(err.result, DFC_NOT_FOUND);
    assert_int_equal(err.status, 404);
    assert_string_equal(err.code, "object_not_found");
    assert_string_equal(err.message, "object 'b/none' does not exist");
    assert_int_equal(err.node[0], 't');
    assert_int_equal(strncmp(err.request_id, "c-", 2), 0);
    assert_int_equal(dfc_get_memory(client, "b", "none", NULL, &got, &size, NULL, NULL),
                     DFC_NOT_FOUND);
    assert_int_equal(dfc_head(client, "", "k", NULL, &err), DFC_INVALID);
    assert_int_equal(dfc_delete(client, "b", "none", &err), DFC_NOT_FOUND);
    assert_int_equal(dfc_bucket_create(client, "c", "[1]", &err), DFC_INVALID);
    assert_int_equal(dfc_bucket_create(client, "b", NULL, &err), DFC_CONFLICT);
    assert_int_equal(dfc_job_abort(client, "a/b", &err), DFC_INVALID);
}

/* ---- lists ---- */

static void lists(void **state)
{
    (void)state;
    struct dfc_list *list;
    const struct dfc_entry *entry;
    char key[32], last[64] = "";
    int n = 0, rc;
    for (int i = 0; i < 25; i++) {
        snprintf(key, sizeof key, "p%d/%02d", i % 3, i);
        put(key, "x", 1);
    }
    const struct dfc_list_options options = {.prefix = "p", .page_size = 4};
    assert_int_equal(dfc_list_open(client, "b", &options, &list, &err), DFC_OK);
    for (; (rc = dfc_list_next(list, &entry, &err)) > 0; n++) {
        assert_true(strcmp(last, entry->name) < 0);
        assert_int_equal(entry->size, 1);
        assert_string_equal(entry->checksum_type, "xxh3");
        snprintf(last, sizeof last, "%s", entry->name);
    }
    assert_int_equal(rc, 0);
    assert_int_equal(n, 25);
    assert_int_equal(dfc_list_next(list, &entry, &err), 0);
    assert_false(dfc_list_incomplete(list));
    dfc_list_close(list);
    const struct dfc_list_options folded = {
        .delimiter = "/", .start_after = "p0/", .partial = true};
    assert_int_equal(dfc_list_open(client, "b", &folded, &list, &err), DFC_OK);
    assert_int_equal(dfc_list_next(list, &entry, &err), 1);
    assert_true(entry->is_prefix);
    assert_string_equal(entry->name, "p1/");
    assert_true(dfc_list_incomplete(list));
    dfc_list_close(list);
    assert_int_equal(dfc_list_open(client, "none", NULL, &list, &err), DFC_OK);
    assert_int_equal(dfc_list_next(list, &entry, &err), DFC_NOT_FOUND);
    dfc_list_close(list);
}

/* ---- jobs ---- */

static void count_looks(void *context, const struct dfc_job *job)
{
    unsigned *looks = context;
    (*looks)++;
    assert_string_equal(job->kind, "sort");
}

static void jobs(void **state)
{
    (void)state;
    char *id, *document;
    unsigned looks = 0;
    struct dfc_job *job;
    assert_int_equal(dfc_sort_start(client, "{\"input_bck\": {\"name\": \"b\"}}", &id, &err),
                     DFC_OK);
    assert_int_equal(dfc_job_wait(client, id, 20000, count_looks, &looks, &job, &err), DFC_OK);
    assert_true(looks >= 2);
    assert_string_equal(job->state, "finished");
    assert_true(job->ended && job->percent >= 100);
    dfc_job_free(job);
    assert_int_equal(dfc_sort_list(client, NULL, &document, &err), DFC_OK);
    assert_non_null(strstr(document, id));
    dfc_free(document);
    assert_int_equal(dfc_sort_forget(client, id, &err), DFC_OK);
    assert_int_equal(dfc_sort_show(client, id, &job, &err), DFC_NOT_FOUND);
    dfc_free(id);
    assert_int_equal(dfc_sort_start(client, "{}", &id, &err), DFC_INVALID);
    assert_string_equal(err.code, "invalid_spec");
}

/* ---- threads ---- */

static void *use_client(void *arg)
{
    char key[32];
    intptr_t bad = 0;
    struct dfc_error own;
    uintptr_t number = (uintptr_t)arg;
    for (unsigned i = 0; i < 20; i++) {
        void *got;
        size_t size = 1000 * (number + i), n = 0;
        unsigned char *data = bytes_of(size, number * 1000 + i);
        snprintf(key, sizeof key, "t%u/%u", (unsigned)number, i);
        if (dfc_put_memory(client, "b", key, data, size, NULL, NULL, &own) != DFC_OK ||
            dfc_get_memory(client, "b", key, NULL, &got, &n, NULL, &own) != DFC_OK) {
            bad++;
        } else {
            bad += n != size || memcmp(got, data, size) != 0;
            dfc_free(got);
        }
        free(data);
    }
    return (void *)bad;
}

static void one_client_in_many_threads(void **state)
{
    (void)state;
    pthread_t threads[8];
    for (uintptr_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_client, (void *)i), 0);
    for (int i = 0; i < 8; i++) {
        void *bad;
        pthread_join(threads[i], &bad);
        assert_null(bad);
    }
}

static void *get_something(void *arg)
{
    void *got;
    size_t size;
    struct dfc_error own;
    (void)arg;
    return (void *)(intptr_t)dfc_get_memory(client, "b", "k", NULL, &got, &size, NULL, &own);
}

static void a_head_that_fails_says_why(void **state)
{
    (void)state;
    assert_int_equal(dfc_put_memory(client, "b", "k", "x", 1, NULL, NULL, &err), DFC_OK);
    mock_plan("[{\"method\": \"HEAD\", \"do\": \"status\", \"status\": 403},"
              " {\"method\": \"GET\", \"do\": \"status\", \"status\": 403, \"code\": \"denied\"}]");
    assert_int_equal(dfc_head(client, "b", "k", NULL, &err), DFC_DENIED);
    assert_string_equal(err.code, "denied");
    assert_string_equal(err.message, "as planned");
    mock_plan("[{\"method\": \"HEAD\", \"do\": \"status\", \"status\": 403}]");
    assert_int_equal(dfc_head(client, "b", "k", NULL, &err), DFC_DENIED);
    assert_string_equal(err.message,
                        "HTTP status 403"); /* the GET has no failure that explains it */
}

static void cancelling_ends_calls(void **state)
{
    (void)state;
    pthread_t running, pausing;
    void *result;
    put("k", "data", 4);
    mock_plan("[{\"at\": \"target\", \"method\": \"GET\", \"do\": \"stall\", \"seconds\": 60}]");
    pthread_create(&running, NULL, get_something, NULL);
    while (mock_logged("\"method\": \"GET\", \"path\": \"/v1/objects/b/k\"") == 0)
        ; /* until the proxy has sent it to the target, where it stays */
    mock_plan("[{\"method\": \"GET\", \"do\": \"status\", \"status\": 503, \"retry_after\": 15}]");
    pthread_create(&pausing, NULL, get_something, NULL);
    while (mock_logged("\"method\": \"GET\", \"path\": \"/v1/objects/b/k\"") < 2)
        ; /* it was refused, and pauses */
    uint64_t begin = clock_ms();
    dfc_client_cancel(client);
    pthread_join(running, &result);
    assert_int_equal((intptr_t)result, DFC_CANCELLED);
    pthread_join(pausing, &result);
    assert_int_equal((intptr_t)result, DFC_CANCELLED);
    assert_true(clock_ms() - begin < 10000); /* neither 60 s nor 15 s were waited for */
    assert_int_equal(dfc_head(client, "b", "k", NULL, &err), DFC_CANCELLED);
}

/* ---- clients ---- */

static void endpoints(void **state)
{
    (void)state;
    struct dfc_client *c;
    char two[160];
    struct dfc_client_options options = {.endpoints = "http://h/path"};
    assert_int_equal(dfc_client_open(&options, &c, &err), DFC_INVALID);
    options.endpoints = "http://a,,http://b";
    assert_int_equal(dfc_client_open(&options, &c, &err), DFC_INVALID);
    snprintf(two, sizeof two, "http://127.0.0.1:1,%s", mock_endpoint);
    options = (struct dfc_client_options){.endpoints = two, .attempts = 1};
    assert_int_equal(dfc_client_open(&options, &c, &err), DFC_OK);
    char *document;
    assert_int_equal(dfc_bucket_list(c, &document, &err), DFC_OK);
    dfc_free(document);
    assert_string_equal(dfc_client_endpoint(c), mock_endpoint); /* remembered */
    dfc_client_close(c);
    setenv("DFC_ENDPOINT", mock_endpoint, 1);
    assert_int_equal(dfc_client_open(NULL, &c, NULL), DFC_OK);
    assert_string_equal(dfc_client_endpoint(c), mock_endpoint);
    dfc_client_close(c);
    dfc_client_close(NULL);
}

int main(void)
{
#define EACH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        EACH(put_from_sources),
        EACH(a_source_that_breaks_stores_nothing),
        EACH(a_source_that_rewinds_is_put_again),
        EACH(metadata_and_progress),
        EACH(told_before_the_first_byte),
        EACH(ranges),
        EACH(conditions),
        EACH(memory_has_a_limit),
        EACH(a_sink_that_fails_ends_the_call),
        EACH(errors_tell_all),
        EACH(a_head_that_fails_says_why),
        EACH(lists),
        EACH(jobs),
        EACH(one_client_in_many_threads),
        EACH(cancelling_ends_calls),
        EACH(endpoints),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("libdfc", tests, mock_start, mock_stop);
}
