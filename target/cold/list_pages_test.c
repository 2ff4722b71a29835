#include "target/cold/list_pages.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { THREADS = 4, ASKS = 3000, KEYS = 40, ROOM = 1 << 20 };

struct asker {
    struct list_asker base; /* the first */
    unsigned answers;
    char got[600]; /* the text, or "error: …" */
};

static void keep(struct list_asker *a, const struct buf *text, const struct error *err)
{
    struct asker *asker = (struct asker *)a;
    asker->answers++;
    if (err != NULL)
        snprintf(asker->got, sizeof asker->got, "error: %s", err->message);
    else
        snprintf(asker->got, sizeof asker->got, "%.*s", (int)text->len, text->data);
}

static struct list_reading *ask_at(struct list_pages *p, const char *job, const char *key,
                                   uint64_t now_ms, uint64_t max_age_ms, struct asker *a)
{
    *a = (struct asker){.base.fn = keep};
    const struct list_wanted w = {
        .job = job, .key = key, .key_len = strlen(key), .now_ms = now_ms, .max_age_ms = max_age_ms};
    return list_pages_ask(p, &w, &a->base);
}

static struct list_reading *ask(struct list_pages *p, const char *key, struct asker *a)
{
    return ask_at(p, "j", key, 0, 0, a);
}

static void give(struct list_pages *p, struct list_reading *r, const char *text)
{
    struct buf b = BUF_INIT;
    buf_puts(&b, text);
    list_pages_read(p, r, &b, NULL);
    assert_null(b.data);
}

/* Somebody asks, and it is kept. */
static bool is_kept(struct list_pages *p, const char *key)
{
    struct asker a;
    struct list_reading *r = ask(p, key, &a);
    const struct error err = {.code = E_NET, .message = "nobody"};
    if (r != NULL)
        list_pages_read(p, r, NULL, &err);
    return r == NULL;
}

static void one_reads_for_all(void **state)
{
    (void)state;
    struct list_pages *p = list_pages_new(ROOM);
    struct asker a, b, c, other;
    struct list_reading *r = ask(p, "k", &a);
    assert_non_null(r);
    assert_null(ask(p, "k", &b));
    assert_int_equal(a.answers + b.answers, 0);
    struct list_reading *second = ask_at(p, "j2", "k", 0, 0, &other); /* another job's */
    assert_non_null(second);
    give(p, r, "text");
    give(p, second, "other");
    assert_null(ask(p, "k", &c));
    assert_string_equal(a.got, "text");
    assert_string_equal(b.got, "text");
    assert_string_equal(c.got, "text");
    assert_string_equal(other.got, "other");
    assert_int_equal(a.answers + b.answers + c.answers + other.answers, 4);
    list_pages_free(p);
}

static void a_failure_goes_to_those_who_wait(void **state)
{
    (void)state;
    struct list_pages *p = list_pages_new(ROOM);
    const struct error err = {.code = E_BACKEND, .message = "no"};
    struct asker a, b, c;
    struct list_reading *r = ask(p, "k", &a);
    assert_null(ask(p, "k", &b));
    list_pages_read(p, r, NULL, &err);
    assert_string_equal(a.got, "error: no");
    assert_string_equal(b.got, "error: no");
    r = ask(p, "k", &c);
    assert_non_null(r);
    give(p, r, "yes");
    assert_string_equal(c.got, "yes");
    list_pages_free(p);
}

static void what_was_used_least_recently_goes(void **state)
{
    (void)state;
    struct list_pages *p = list_pages_new(ROOM);
    struct asker a;
    give(p, ask(p, "1", &a), "x");
    uint64_t one = list_pages_bytes(p);
    list_pages_free(p);

    p = list_pages_new(3 * one);
    for (const char *k = "123"; *k != '\0'; k++)
        give(p, ask(p, (const char[]){*k, '\0'}, &a), "x");
    assert_true(is_kept(p, "1"));
    give(p, ask(p, "4", &a), "x");
    assert_int_equal(list_pages_bytes(p), 3 * one);
    assert_false(is_kept(p, "2"));
    assert_true(is_kept(p, "1") && is_kept(p, "3") && is_kept(p, "4"));
    list_pages_free(p);
}

static void without_room_who_waits_is_answered(void **state)
{
    (void)state;
    struct list_pages *p = list_pages_new(0);
    struct asker a, b;
    struct list_reading *r = ask(p, "k", &a);
    assert_null(ask(p, "k", &b));
    give(p, r, "text");
    assert_string_equal(a.got, "text");
    assert_string_equal(b.got, "text");
    assert_int_equal(list_pages_bytes(p), 0);
    assert_false(is_kept(p, "k"));
    list_pages_free(p);
}

static void an_old_page_does_not_do(void **state)
{
    (void)state;
    struct list_pages *p = list_pages_new(ROOM);
    struct asker a, b, c, d;
    struct list_reading *old = ask_at(p, "j", "k", 1000, 50, &a);
    assert_null(ask_at(p, "j", "k", 1050, 50, &b));
    struct list_reading *new = ask_at(p, "j", "k", 1051, 50, &c); /* before the old one has come */
    assert_non_null(new);
    give(p, new, "new");
    give(p, old, "old");
    assert_string_equal(a.got, "old");
    assert_string_equal(b.got, "old");
    assert_string_equal(c.got, "new");
    assert_null(ask_at(p, "j", "k", 9999, 0, &d));
    assert_string_equal(d.got, "new");
    list_pages_free(p);
}

static bool is_j2(const void *ctx, const char *job)
{
    (void)ctx;
    return strcmp(job, "j2") == 0;
}

static void what_is_over_is_forgotten(void **state)
{
    (void)state;
    struct list_pages *p = list_pages_new(ROOM);
    struct asker a, b, c;
    give(p, ask(p, "k", &a), "x");
    uint64_t one = list_pages_bytes(p);
    give(p, ask_at(p, "j2", "k", 0, 0, &a), "x");
    struct list_reading *r = ask_at(p, "j2", "late", 0, 0, &b);
    list_pages_forget(p, is_j2, NULL);
    assert_int_equal(list_pages_bytes(p), one);
    give(p, r, "late"); /* is given, and not kept */
    assert_string_equal(b.got, "late");
    assert_int_equal(list_pages_bytes(p), one);
    assert_true(is_kept(p, "k"));
    r = ask_at(p, "j2", "k", 0, 0, &c);
    assert_non_null(r);
    give(p, r, "x");
    list_pages_free(p);
}

/* --- many at once ----------------------------------------------------------------------------- */

struct crowd {
    struct list_pages *pages;
    atomic_uint answers, wrong, reads;
};

struct member {
    struct list_asker base; /* the first */
    struct crowd *crowd;
    char key[16];
};

static void compare(struct list_asker *a, const struct buf *text, const struct error *err)
{
    struct member *m = (struct member *)a;
    struct crowd *c = m->crowd;
    bool right = err != NULL
                     ? strcmp(err->message, m->key) == 0
                     : text->len == strlen(m->key) && memcmp(text->data, m->key, text->len) == 0;
    atomic_fetch_add(&c->wrong, !right);
    free(m);
    atomic_fetch_add(&c->answers, 1);
}

static void *ask_many(void *arg)
{
    struct crowd *c = arg;
    for (unsigned i = 0; i < ASKS; i++) {
        struct member *m = calloc(1, sizeof *m);
        *m = (struct member){.base.fn = compare, .crowd = c};
        snprintf(m->key, sizeof m->key, "%u", i / 7 % KEYS);
        char key[sizeof m->key];
        memcpy(key, m->key, sizeof key);
        const struct list_wanted w = {.job = "j", .key = key, .key_len = strlen(key)};
        struct list_reading *r = list_pages_ask(c->pages, &w, &m->base);
        if (r == NULL)
            continue;
        struct buf text = BUF_INIT;
        struct error err = {.code = E_NET};
        buf_puts(&text, key);
        memcpy(err.message, key, sizeof key);
        bool fails = atomic_fetch_add(&c->reads, 1) % 5 == 0;
        list_pages_read(c->pages, r, &text, fails ? &err : NULL);
        buf_done(&text);
        if (i % 100 == 0)
            list_pages_forget(c->pages, is_j2, NULL);
    }
    return NULL;
}

static void many_at_once(void **state)
{
    (void)state;
    struct crowd c = {.pages = list_pages_new(10 * 200)};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_many, &c), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(c.answers, THREADS * ASKS);
    assert_int_equal(c.wrong, 0);
    assert_true(c.reads < THREADS * ASKS);
    assert_true(list_pages_bytes(c.pages) <= 10 * 200);
    list_pages_free(c.pages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_reads_for_all),
        cmocka_unit_test(a_failure_goes_to_those_who_wait),
        cmocka_unit_test(what_was_used_least_recently_goes),
        cmocka_unit_test(without_room_who_waits_is_answered),
        cmocka_unit_test(an_old_page_does_not_do),
        cmocka_unit_test(what_is_over_is_forgotten),
        cmocka_unit_test(many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
