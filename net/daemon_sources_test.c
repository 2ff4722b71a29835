/* Every source of a parameter against every other one. */
#include "net/daemon_sources.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct values {
    uint64_t size;
    uint64_t wait;
    uint64_t fixed;
    char *log_level;
};

static const struct param_row rows[] = {
    {"size", PARAM_size, offsetof(struct values, size), "1MiB", "4KiB", "1GiB", "a size"},
    {"wait", PARAM_duration, offsetof(struct values, wait), "5s", "1s", "1h", "a time"},
    {"fixed", PARAM_count, offsetof(struct values, fixed), "3", "1", "9", "a number"},
    {"log_level", PARAM_text, offsetof(struct values, log_level), "info", "", "", "how much"},
    {.name = NULL},
};
static const char *const live[] = {"size", "wait", NULL};
enum { SIZE, WAIT, FIXED, LOG_LEVEL };

/* A daemon with a configuration file. */
struct daemon {
    struct values values, last;
    struct daemon_sources *sources;
    char file[40];
    char option[60];
    char *argv[4];
    int argc;
};

static void write_file(const struct daemon *d, const char *text)
{
    FILE *f = fopen(d->file, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void load(struct daemon *d, struct values *out)
{
    bool help;
    *out = (struct values){0};
    assert_int_equal(params_load(rows, out, d->argc, d->argv, &help, NULL), 0);
}

static void begin(struct daemon *d, const char *file, char *option)
{
    static char program[] = "daemon";
    *d = (struct daemon){.file = "/tmp/dfc-sources-XXXXXX"};
    int fd = mkstemp(d->file);
    assert_true(fd >= 0);
    close(fd);
    write_file(d, file);
    snprintf(d->option, sizeof d->option, "--config=%s", d->file);
    d->argv[d->argc++] = program;
    d->argv[d->argc++] = d->option;
    if (option != NULL)
        d->argv[d->argc++] = option;
    load(d, &d->values);
    load(d, &d->last);
    d->sources = daemon_sources_new(rows, &d->values, live);
    daemon_sources_begin(d->sources, d->argc, d->argv);
}

static void end(struct daemon *d)
{
    daemon_sources_free(d->sources);
    params_free(rows, &d->values);
    params_free(rows, &d->last);
    unlink(d->file);
}

static void ignore(void *ctx, const struct param_row *row, bool taken)
{
    (void)ctx;
    (void)row;
    (void)taken;
}

/* SIGHUP */
static void reload(struct daemon *d, const char *file)
{
    struct values now;
    write_file(d, file);
    load(d, &now);
    daemon_sources_take(d->sources, &d->last, &now, ignore, NULL);
    params_free(rows, &d->last);
    d->last = now;
}

struct setting {
    const char *name, *text;
};

static const char *text_of(const void *ctx, const char *name)
{
    const struct setting *s = ctx;
    return s->text != NULL && strcmp(s->name, name) == 0 ? s->text : NULL;
}

static void cluster_says(struct daemon *d, const char *name, const char *text)
{
    const struct setting s = {.name = name, .text = text};
    daemon_sources_cluster(d->sources, text_of, &s);
}

static void assert_size(struct daemon *d, uint64_t kib, const char *source)
{
    assert_int_equal(d->values.size, kib << 10);
    assert_string_equal(daemon_sources_name(d->sources, SIZE), source);
}

static void test_each_source_is_named(void **state)
{
    (void)state;
    struct daemon d;
    char option[] = "--fixed=4";
    setenv("DFC_WAIT", "7s", 1);
    begin(&d, "{\"size\": \"8KiB\", \"wait\": \"9s\", \"fixed\": 5}", option);
    unsetenv("DFC_WAIT");
    static const char *const names[] = {"file", "environment", "command line", "default"};
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(daemon_sources_name(d.sources, i), names[i]);
    end(&d);
}

static void test_the_cluster_speaks_where_nobody_else_does(void **state)
{
    (void)state;
    struct daemon d;
    begin(&d, "{}", NULL);
    assert_size(&d, 1024, "default");
    cluster_says(&d, "size", "64KiB");
    assert_size(&d, 64, "cluster");
    cluster_says(&d, "size", "32KiB");
    assert_size(&d, 32, "cluster");
    cluster_says(&d, "size", NULL);
    assert_size(&d, 1024, "default");
    cluster_says(&d, "size", "1"); /* below the bound of this release */
    assert_size(&d, 1024, "default");
    cluster_says(&d, "fixed", "7"); /* not while it runs */
    assert_int_equal(d.values.fixed, 3);
    end(&d);
}

static void test_what_is_this_daemons_own_wins(void **state)
{
    (void)state;
    struct daemon d;
    struct error err;
    begin(&d, "{\"size\": \"8KiB\"}", NULL);
    cluster_says(&d, "size", "64KiB");
    assert_size(&d, 8, "file");
    assert_int_equal(daemon_sources_set(d.sources, "size", "16KiB", NULL), 0);
    assert_size(&d, 16, "run");
    cluster_says(&d, "size", "128KiB");
    assert_size(&d, 16, "run");
    assert_int_equal(daemon_sources_set(d.sources, "size", "1", &err), E_INVALID);
    assert_int_equal(daemon_sources_set(d.sources, "fixed", "4", &err), E_UNSUPPORTED);
    assert_size(&d, 16, "run");
    end(&d);
}

static void test_a_reload_gives_and_takes(void **state)
{
    (void)state;
    struct daemon d;
    begin(&d, "{}", NULL);
    cluster_says(&d, "size", "64KiB");
    reload(&d, "{\"size\": \"8KiB\"}");
    assert_size(&d, 8, "file");
    reload(&d, "{}");
    assert_size(&d, 64, "cluster");
    reload(&d, "{\"size\": \"1MiB\"}"); /* the default's, and meant so */
    assert_size(&d, 1024, "file");
    reload(&d, "{}");
    assert_size(&d, 64, "cluster");
    assert_int_equal(daemon_sources_set(d.sources, "size", "16KiB", NULL), 0);
    reload(&d, "{\"wait\": \"2s\"}");
    assert_size(&d, 16, "run");
    reload(&d, "{\"size\": \"8KiB\"}");
    assert_size(&d, 8, "file");
    end(&d);
}

/* The file changes while the daemon starts: what reloads compare with has the change already. */
static void change_while_starting(struct daemon *d, const char *file)
{
    write_file(d, file);
    params_free(rows, &d->last);
    load(d, &d->last);
}

static void test_a_file_that_changed_during_the_start(void **state)
{
    (void)state;
    static const char with_size[] = "{\"size\": \"8KiB\"}";
    struct daemon d;
    begin(&d, "{}", NULL);
    change_while_starting(&d, with_size);
    cluster_says(&d, "size", "64KiB");
    assert_size(&d, 64, "cluster");
    reload(&d, with_size);
    assert_size(&d, 8, "file");
    end(&d);

    begin(&d, "{}", NULL);
    change_while_starting(&d, with_size);
    reload(&d, with_size);
    assert_size(&d, 8, "file");
    end(&d);

    begin(&d, with_size, NULL);
    change_while_starting(&d, "{}");
    reload(&d, "{}");
    assert_size(&d, 1024, "default");
    end(&d);

    begin(&d, "{}", NULL);
    change_while_starting(&d, with_size);
    assert_int_equal(daemon_sources_set(d.sources, "size", "16KiB", NULL), 0);
    reload(&d, with_size);
    assert_size(&d, 16, "run");
    end(&d);
}

static void count_taken(void *ctx, const struct param_row *row, bool taken)
{
    (void)row;
    *(unsigned *)ctx += taken;
}

static void test_each_change_is_told_once(void **state)
{
    (void)state;
    struct daemon d;
    struct values now;
    unsigned told = 0;
    begin(&d, "{}", NULL);
    write_file(&d, "{\"size\": \"8KiB\"}");
    load(&d, &now);
    daemon_sources_take(d.sources, &d.last, &now, count_taken, &told);
    assert_int_equal(told, 1);
    daemon_sources_take(d.sources, &now, &now, count_taken, &told);
    assert_int_equal(told, 1);
    params_free(rows, &now);
    end(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_source_is_named),
        cmocka_unit_test(test_the_cluster_speaks_where_nobody_else_does),
        cmocka_unit_test(test_what_is_this_daemons_own_wins),
        cmocka_unit_test(test_a_reload_gives_and_takes),
        cmocka_unit_test(test_a_file_that_changed_during_the_start),
        cmocka_unit_test(test_each_change_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
