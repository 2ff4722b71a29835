#include "mount/vfs/passing.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/mem.h"
#include "common/metrics.h"

#define SIZE (9u << 20)

/* The kernel: numbers of open files. */
struct kernel {
    int next, opened, closed;
    int fails; /* -errno of what comes */
};

static int kernel_open(void *context, int fd)
{
    struct kernel *k = context;
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, SIZE);
    if (k->fails != 0)
        return k->fails;
    k->opened++;
    return ++k->next;
}

static void kernel_close(void *context, int backing)
{
    struct kernel *k = context;
    assert_int_equal(backing, k->next);
    k->closed++;
}

struct fixture {
    char root[32];
    struct kernel kernel;
    struct tiers tiers;
    struct passing passing;
    struct node node;
    struct entity *entity;
};

static int set_up(void **state)
{
    static struct fixture x;
    struct error err = ERROR_INIT;
    memset(&x, 0, sizeof x);
    memcpy(x.root, "/tmp/dfc-passing-XXXXXX", 24);
    if (mkdtemp(x.root) == NULL)
        return 1;
    const struct cache_options options = {
        .directories = x.root, .bytes = 1u << 30, .fill_bytes = 64u << 20, .idle_ms = 3600000};
    if (cache_open(&options, &x.tiers.cache, &err) != 0)
        return 1;
    x.tiers.scope = xstrdup("1/1");
    x.entity = entity_new("o", "\"1\"", "", SIZE);
    const struct backings backings = {&x.kernel, kernel_open, kernel_close};
    passing_init(&x.passing, &x.tiers);
    passing_start(&x.passing, &backings, true);
    *state = &x;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *x = *state;
    passing_done(&x->passing);
    entity_unref(x->entity);
    cache_close(x->tiers.cache);
    free(x->tiers.scope);
    _cleanup_free_ char *command = xprintf("rm -rf %s", x->root);
    return system(command);
}

/* The cache has the object, in one file. */
static void join(struct fixture *x)
{
    _cleanup_free_ char *data = xcalloc(1, SIZE);
    tiers_put(&x->tiers, x->entity, data);
    cache_flush(x->tiers.cache);
    assert_int_equal(tiers_whole(&x->tiers, x->entity), -1);
    const struct timespec moment = {.tv_nsec = 1000000};
    while (metric_sum(M_cache_joins, "") > 0)
        nanosleep(&moment, NULL);
}

static int open_it(struct fixture *x)
{
    return passing_open(&x->passing, &x->node, x->entity);
}

static void close_it(struct fixture *x, int backing)
{
    passing_close(&x->passing, &x->node, backing);
}

static void the_first_open_decides(void **state)
{
    struct fixture *x = *state;
    assert_int_equal(open_it(x), 0); /* the cache has nothing */
    join(x);
    assert_int_equal(open_it(x), 0);
    close_it(x, 0);
    close_it(x, 0);
    assert_int_equal(open_it(x), 1);
    assert_int_equal(open_it(x), 1);
    close_it(x, 1);
    assert_int_equal(open_it(x), 1);
    close_it(x, 1);
    assert_int_equal(x->kernel.closed, 0);
    close_it(x, 1);
    assert_int_equal(x->kernel.closed, 1);
    assert_int_equal(open_it(x), 2);
    close_it(x, 2);
    assert_int_equal(x->kernel.opened, x->kernel.closed);
}

/* A backend has got the object: its tag is another one, and its bytes are the same. */
static void what_the_first_open_held_is_released(void **state)
{
    struct fixture *x = *state;
    join(x);
    assert_int_equal(open_it(x), 1);
    struct entity *other = entity_new("o", "\"2\"", "", SIZE);
    assert_int_equal(passing_open(&x->passing, &x->node, other), 1);
    assert_ptr_equal(x->node.held, x->entity);
    entity_unref(other);
    close_it(x, 1);
    assert_ptr_equal(x->node.held, x->entity);
    close_it(x, 1);
    assert_null(x->node.held);
}

/* The first open has ended before the process was killed: the file of the others is the first's. */
static void what_the_first_open_held_is_held_again(void **state)
{
    struct fixture *x = *state;
    struct node again = {0};
    join(x);
    assert_int_equal(open_it(x), 1);
    struct entity *other = entity_new("o", "\"2\"", "", SIZE);
    assert_ptr_equal(passing_entity(&x->node, x->entity, 0), x->entity);
    assert_int_equal(passing_open(&x->passing, &x->node, other), 1);
    close_it(x, 1);
    const struct entity *told = passing_entity(&x->node, other, 1);
    assert_string_equal(told->etag, "\"1\"");
    entity_unref(other);
    struct entity *restored = entity_new(told->key, told->etag, told->checksum, told->size);
    passing_restore(&x->passing, &again, restored, 1);
    assert_string_equal(again.held->etag, "\"1\"");
    passing_close(&x->passing, &again, 1);
    entity_unref(restored);
    close_it(x, 1);
}

/* The cache could not be opened again: what passes ends, and nothing more begins. */
static void without_a_cache_the_rest_ends(void **state)
{
    struct fixture *x = *state;
    struct tiers none = {.scope = x->tiers.scope};
    struct passing without;
    const struct backings backings = {&x->kernel, kernel_open, kernel_close};
    passing_init(&without, &none);
    passing_start(&without, &backings, false);
    x->kernel.next = 7;
    passing_restore(&without, &x->node, x->entity, 7);
    assert_int_equal(passing_open(&without, &x->node, x->entity), 7);
    passing_close(&without, &x->node, 7);
    passing_close(&without, &x->node, 7);
    assert_int_equal(x->kernel.closed, 1);
    assert_int_equal(passing_open(&without, &x->node, x->entity), 0);
    passing_close(&without, &x->node, 0);
    passing_done(&without);
}

static void opens_of_the_process_before_decide(void **state)
{
    struct fixture *x = *state;
    join(x);
    passing_restore(&x->passing, &x->node, x->entity, 0);
    assert_int_equal(open_it(x), 0);
    close_it(x, 0);
    close_it(x, 0);
    x->kernel.next = 9;
    passing_restore(&x->passing, &x->node, x->entity, 9);
    assert_int_equal(open_it(x), 9);
    assert_int_equal(x->kernel.opened, 0);
    close_it(x, 9);
    close_it(x, 9);
    assert_int_equal(x->kernel.closed, 1);
}

static void a_kernel_that_refuses_is_not_asked_again(void **state)
{
    struct fixture *x = *state;
    join(x);
    x->kernel.fails = -EPERM;
    assert_int_equal(open_it(x), 0);
    x->kernel.fails = 0;
    close_it(x, 0);
    assert_int_equal(open_it(x), 0);
    assert_int_equal(x->kernel.opened, 0);
    close_it(x, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_open_decides),
        TEST(opens_of_the_process_before_decide),
        TEST(what_the_first_open_held_is_released),
        TEST(what_the_first_open_held_is_held_again),
        TEST(without_a_cache_the_rest_ends),
        TEST(a_kernel_that_refuses_is_not_asked_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
