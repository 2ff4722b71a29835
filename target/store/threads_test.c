/* Many threads on few names: readers always see one whole object, the last list agrees with the
 * files, nothing is left behind.  To be run under TSan, too. */
#include "target/testing/store_fixture.h"

#include <pthread.h>

#include "common/rng.h"

enum { THREADS = 4, STEPS = 400, NAMES = 5, TEXT_MAX = 3 * BUFFER };

struct worker {
    pthread_t thread;
    uint64_t seed;
    unsigned puts, deletes, reads, lists;
    const char *wrong; /* a constant text: cmocka's assertions belong to the main thread */
};

/* One letter over and over: a torn or mixed object shows. */
static void put_letters(struct worker *w, struct rng *r, const char *name)
{
    char text[TEXT_MAX];
    size_t len = 1 + rng_below(r, TEXT_MAX - 1);
    memset(text, (int)('a' + rng_below(r, 26)), len);
    struct object_put_spec spec =
        spec_of(name, rng_below(r, 2) ? DURABILITY_SYNC : DURABILITY_ASYNC);
    spec.size = len;
    if (put_bytes(&spec, text, len, NULL) != 0)
        w->wrong = "put failed";
    w->puts++;
}

static void get_letters(struct worker *w, const char *name)
{
    struct object o;
    char text[TEXT_MAX];
    int code = object_open(fx.store, BUCKET, name, &o, NULL);
    w->reads++;
    if (code == E_OBJECT_NOT_FOUND)
        return;
    if (code != 0) {
        w->wrong = "open failed";
        return;
    }
    if (file_pread_full(o.fd, text, o.attr.size, 0, NULL) != 0)
        w->wrong = "short object";
    for (size_t i = 1; i < o.attr.size; i++) {
        if (text[i] != text[0])
            w->wrong = "mixed object";
    }
    close(o.fd);
}

static void list_all(struct worker *w)
{
    struct list_request req = {
        .bucket_id = BUCKET, .prefix = "", .delimiter = "", .start_after = "", .limit = 100};
    struct list_page page;
    if (list_page(fx.store, &req, &page, NULL) != 0) {
        w->wrong = "list failed";
        return;
    }
    for (size_t i = 1; i < page.entry_count; i++) {
        if (strcmp(page.entries[i - 1].name, page.entries[i].name) >= 0)
            w->wrong = "list not in order";
    }
    list_page_done(&page);
    w->lists++;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct rng r;
    rng_seed(&r, w->seed);
    for (unsigned i = 0; i < STEPS && w->wrong == NULL; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%llu", (unsigned long long)rng_below(&r, NAMES));
        switch (rng_below(&r, 8)) {
        case 0:
        case 1:
        case 2:
            put_letters(w, &r, name);
            break;
        case 3: {
            int code = delete_as(name, rng_below(&r, 2) ? DURABILITY_SYNC : DURABILITY_ASYNC, NULL);
            if (code != 0 && code != E_OBJECT_NOT_FOUND)
                w->wrong = "delete failed";
            w->deletes++;
            break;
        }
        case 4:
            list_all(w);
            break;
        default:
            get_letters(w, name);
        }
    }
    return NULL;
}

static void test_threads_on_few_names(void **state)
{
    (void)state;
    struct worker workers[THREADS] = {0};
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].seed = i + 1;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    unsigned reads = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        if (workers[i].wrong != NULL)
            fail_msg("%s", workers[i].wrong);
        reads += workers[i].reads;
    }
    assert_true(reads > THREADS * STEPS / 4);
    assert_no_leftovers();
    _cleanup_free_ char *list = list_text();
    fixture_close();
    fixture_forget_markers();
    fixture_open();
    assert_list(list); /* from the files */
}

int main(void)
{
    const struct CMUnitTest tests[] = {store_test(test_threads_on_few_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
