/* Merges over a store that loses power.  file_test.c and plog_sim_test.c have the rest. */
#include "plog/merge.h"

#include <string.h>

#include "plog/testing/fixture.h"

/* The first PUT of a name with `part` is seen, and not durable: its target is killed before it
 * answers.  The call is repeated below, as a client does. */
static struct {
    const char *part; /* NULL: none is lost any more */
    char name[PLOG_NAME_MAX];
    struct buf before;
    bool was_there, is_volatile;
    int (*put)(void *ctx, const char *name, const void *body, size_t len, const char *if_match,
               char etag[static PLOG_ETAG_MAX], struct error *err);
} power;

static void keep(struct memory_store *m, const char *name)
{
    const struct memory_object *o = memory_store_find(m, name);
    snprintf(power.name, sizeof power.name, "%s", name);
    power.part = NULL;
    power.is_volatile = true;
    power.was_there = o != NULL;
    if (o != NULL)
        buf_append(&power.before, o->body.data, o->body.len);
}

static int put(void *ctx, const char *name, const void *body, size_t len, const char *if_match,
               char etag[static PLOG_ETAG_MAX], struct error *err)
{
    if (power.part != NULL && strstr(name, power.part) != NULL) {
        keep(ctx, name);
        assert_int_equal(power.put(ctx, name, body, len, if_match, etag, err), 0);
    }
    const int code = power.put(ctx, name, body, len, if_match, etag, err);
    if (code == 0 && strcmp(name, power.name) == 0)
        power.is_volatile = false;
    return code;
}

static void lose_power(struct fixture *x)
{
    struct memory_object *o = memory_store_find(&x->memory, power.name);
    assert_non_null(o);
    if (power.is_volatile) {
        buf_clear(&o->body);
        buf_append(&o->body, buf_str(&power.before), power.before.len);
        o->is_there = power.was_there;
    }
    buf_done(&power.before);
}

static void write_and_close(struct fixture *x, const char *text)
{
    struct plog_file *f = open_file(x, &to_write);
    write_text(f, text, 0);
    assert_int_equal(plog_file_close(f, NULL), 0);
}

static void merge_without_power(struct fixture *x, const char *part)
{
    write_and_close(x, "one");
    power.put = x->st.put;
    x->st.put = put;
    power.part = part;
    write_and_close(x, "two");
    assert_null(power.part);
    lose_power(x);
    need_text(x, "two");
}

/* The head names it, and what it replaces is removed. */
static void test_index_is_durable(void **state)
{
    merge_without_power(*state, "/m/");
}

/* The merge finds its own head, which has all: it removes nothing before the head is durable. */
static void test_head_is_durable(void **state)
{
    merge_without_power(*state, FIXTURE_FILE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_index_is_durable),
        TEST(test_head_is_durable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
