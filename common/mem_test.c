#include "common/mem.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/cleanup.h"

/* A sanitizer's malloc, too, returns NULL when it has nothing to give. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void texts_are_copied(void **state)
{
    (void)state;
    _cleanup_free_ char *whole = xstrdup("shard");
    _cleanup_free_ char *part = xstrndup("shard-1", 5);
    _cleanup_free_ char *shorter = xstrndup("ab", 100);
    _cleanup_free_ char *made = xprintf("%s-%04d", "shard", 7);
    assert_string_equal(whole, "shard");
    assert_string_equal(part, "shard");
    assert_string_equal(shorter, "ab");
    assert_string_equal(made, "shard-0007");
    assert_null(xstrdup(NULL));
}

static void nothing_is_still_a_pointer(void **state)
{
    (void)state;
    _cleanup_free_ void *a = xmalloc(0);
    _cleanup_free_ void *b = xcalloc(0, 8);
    void *c = xrealloc(NULL, 0);
    c = xrealloc(c, 0);
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    free(c);
}

static void calloc_zeroes_and_realloc_keeps(void **state)
{
    (void)state;
    unsigned char *p = xcalloc(3, 5);
    for (int i = 0; i < 15; i++)
        assert_int_equal(p[i], 0);
    p[14] = 9;
    p = xrealloc(p, 4000);
    assert_int_equal(p[14], 9);
    free(p);
}

static void steal_empties_the_owner(void **state)
{
    (void)state;
    _cleanup_free_ char *mine = xstrdup("x");
    char *taken = steal(mine);
    assert_null(mine);
    assert_string_equal(taken, "x");
    free(taken);
}

/* Runs `fn` in a child and says by which signal the child died, and what it wrote to stderr (a
 * sanitizer writes a page of its own). */
static int death_of(void (*fn)(void), char *line, size_t size)
{
    int fds[2];
    assert_return_code(pipe(fds), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit no_core = {0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGABRT, SIG_DFL);
        dup2(fds[1], STDERR_FILENO);
        fn();
        _exit(0);
    }
    close(fds[1]);
    size_t used = 0;
    ssize_t n;
    while ((n = read(fds[0], line + used, size - 1 - used)) > 0)
        used += (size_t)n;
    close(fds[0]);
    line[used] = '\0';
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Not a constant, which the compiler would refuse as the size of an object. */
static volatile size_t too_much = SIZE_MAX / 4;

static void malloc_too_much(void)
{
    xmalloc(too_much);
}

static void calloc_too_much(void)
{
    xcalloc(too_much, 16);
}

static void realloc_too_much(void)
{
    xrealloc(NULL, too_much);
}

static void running_out_ends_the_program_with_a_line(void **state)
{
    (void)state;
    void (*const calls[])(void) = {malloc_too_much, calloc_too_much, realloc_too_much};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        char line[65536];
        assert_int_equal(death_of(calls[i], line, sizeof line), SIGABRT);
        assert_non_null(strstr(line, "out of memory\n"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_copied),
        cmocka_unit_test(nothing_is_still_a_pointer),
        cmocka_unit_test(calloc_zeroes_and_realloc_keeps),
        cmocka_unit_test(steal_empties_the_owner),
        cmocka_unit_test(running_out_ends_the_program_with_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
