#include "access/audit.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/metrics.h"

static char dir[] = "/tmp/dfc-audit-XXXXXX";
static char path[64], aside[64];

static int make_dir(void **state)
{
    (void)state;
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/log", dir);
    snprintf(aside, sizeof aside, "%s/old", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    return rmdir(dir);
}

static int remove_files(void **state)
{
    (void)state;
    unlink(path);
    unlink(aside);
    return 0;
}

static struct audit *start(const char *file, enum audit_level level, size_t buffer_bytes, bool must)
{
    const struct audit_config config = {
        .path = file, .node = "t1", .level = level, .buffer_bytes = buffer_bytes, .must = must};
    struct audit *a = NULL;
    assert_int_equal(audit_new(&config, &a, NULL), 0);
    return a;
}

static uint64_t dropped(void)
{
    return metric_value(metric_get(M_audit_dropped_total, NULL));
}

static void put(struct audit *a, const char *op)
{
    audit_put(a, &(struct audit_line){.op = op, .status = 200});
}

/* The values of `op` in the file, each with a space behind it; "(cut)" of what is no JSON. */
static void ops_of(const char *file, struct buf *out)
{
    FILE *f = fopen(file, "re");
    char line[4096];
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        json_t *doc = json_loads(line, 0, NULL);
        buf_printf(out, "%s ", doc ? json_string_value(json_object_get(doc, "op")) : "(cut)");
        json_decref(doc);
    }
    if (f != NULL)
        fclose(f);
}

static void test_a_line_has_every_field(void **state)
{
    (void)state;
    static const char wanted[] =
        "{\"node\": \"t1\", \"request_id\": \"r\", \"peer\": \"127.0.0.1:1\", \"user\": \"u\", "
        "\"key\": \"k\", \"via\": \"token\", \"op\": \"object_put\", \"bucket\": \"b\", "
        "\"object\": \"a\\\"\\n\", \"status\": 403, \"code\": \"access_denied\", "
        "\"rule\": \"denied\", \"bytes_in\": 1, \"bytes_out\": 2, \"ms\": 3}";
    struct audit *a = start(path, AUDIT_DENIED, 4096, false);
    audit_put(a, &(struct audit_line){.request_id = "r",
                                      .peer = "127.0.0.1:1",
                                      .user = "u",
                                      .key = "k",
                                      .via = "token",
                                      .op = "object_put",
                                      .bucket = "b",
                                      .object = "a\"\n",
                                      .code = "access_denied",
                                      .rule = "denied",
                                      .status = 403,
                                      .denied = true,
                                      .bytes_in = 1,
                                      .bytes_out = 2,
                                      .ms = 3});
    audit_free(a);
    json_t *got = json_load_file(path, 0, NULL), *want = json_loads(wanted, 0, NULL);
    assert_int_equal(strlen(json_string_value(json_object_get(got, "time"))), 24);
    json_object_del(got, "time");
    assert_true(json_equal(got, want));
    json_decref(got);
    json_decref(want);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_levels(void **state)
{
    (void)state;
    static const char *const names[] = {"none", "denied", "changes", "all"};
    static const char *const wanted[] = {"", "denied ", "denied change ", "denied change read "};
    for (size_t i = 0; i < 4; i++) {
        _cleanup_(buf_done)
        struct buf ops = BUF_INIT;
        enum audit_level level;
        assert_int_equal(audit_level_from_name(names[i], &level, NULL), 0);
        struct audit *a = start(path, level, 4096, false);
        audit_put(a, &(struct audit_line){.op = "denied", .denied = true});
        audit_put(a, &(struct audit_line){.op = "change", .changes = true});
        audit_put(a, &(struct audit_line){.op = "read"});
        audit_free(a);
        ops_of(path, &ops);
        assert_string_equal(buf_str(&ops), wanted[i]);
        unlink(path);
    }
    enum audit_level level;
    assert_int_equal(audit_level_from_name("some", &level, NULL), E_INVALID);
}

static void test_the_file_is_opened_anew(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf ops = BUF_INIT, fresh = BUF_INIT;
    struct audit *a = start(path, AUDIT_ALL, 4096, false);
    put(a, "one");
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(audit_reopen(a, NULL), 0);
    put(a, "two");
    audit_free(a);
    ops_of(path, &fresh);
    assert_non_null(strstr(buf_str(&fresh), "two "));
    ops_of(aside, &ops);
    ops_of(path, &ops);
    assert_string_equal(buf_str(&ops), "one two ");
}

static void test_what_cannot_be_written_is_counted(void **state)
{
    (void)state;
    uint64_t before = dropped();
    struct audit *a = start("/dev/full", AUDIT_ALL, 4096, false);
    put(a, "one");
    put(a, "two");
    audit_free(a);
    assert_int_equal(dropped() - before, 2);
    const struct audit_config none = {.path = "/none/log", .node = "t1", .level = AUDIT_ALL};
    assert_int_equal(audit_new(&none, &a, NULL), E_IO);
}

/* The file takes so many bytes more; 0: as many as there are. */
static void limit_file(off_t more)
{
    struct rlimit r;
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &r), 0);
    r.rlim_cur = more > 0 ? (rlim_t)(st.st_size + more) : r.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
}

/* A full disk takes a part of a line: the lines behind it can be read all the same. */
static void test_a_line_that_was_cut_spoils_no_other(void **state)
{
    (void)state;
    uint64_t before = dropped();
    _cleanup_(buf_done)
    struct buf ops = BUF_INIT;
    struct audit *a = start(path, AUDIT_ALL, 4096, false);
    put(a, "one");
    audit_free(a);
    a = start(path, AUDIT_ALL, 4096, false);
    limit_file(20);
    put(a, "two");
    while (dropped() == before)
        sched_yield();
    limit_file(0);
    put(a, "three");
    audit_free(a);
    ops_of(path, &ops);
    assert_string_equal(buf_str(&ops), "one (cut) three ");
    assert_int_equal(dropped() - before, 1);
}

/* --- a writer that stands still --------------------------------------------------------------- */

enum { LONG = 200000 }; /* more than a pipe holds */

/* The writer is in the middle of a line that the pipe does not hold. */
static struct audit *start_stuck(int *pipe_fd, bool must)
{
    static char object[LONG + 1];
    memset(object, 'x', LONG);
    assert_int_equal(mkfifo(path, 0600), 0);
    *pipe_fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(*pipe_fd >= 0);
    struct audit *a = start(path, AUDIT_ALL, 1, must);
    audit_put(a, &(struct audit_line){.op = "long", .object = object});
    struct pollfd ready = {.fd = *pipe_fd, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, -1), 1);
    return a;
}

static void read_lines(int fd, size_t wanted)
{
    char text[4096];
    while (wanted > 0) {
        ssize_t n = read(fd, text, sizeof text);
        assert_true(n > 0);
        for (ssize_t i = 0; i < n; i++)
            wanted -= text[i] == '\n';
    }
}

static void test_a_line_without_room_is_dropped(void **state)
{
    (void)state;
    uint64_t before = dropped();
    int fd;
    struct audit *a = start_stuck(&fd, false);
    put(a, "waits");
    put(a, "dropped");
    put(a, "dropped");
    assert_int_equal(dropped() - before, 2);
    read_lines(fd, 2);
    audit_free(a);
    close(fd);
}

static void *put_three(void *arg)
{
    for (int i = 0; i < 3; i++)
        put(arg, "waits");
    return NULL;
}

static void test_a_thread_waits_for_room_where_it_must(void **state)
{
    (void)state;
    uint64_t before = dropped();
    int fd;
    pthread_t thread;
    struct audit *a = start_stuck(&fd, true);
    assert_int_equal(pthread_create(&thread, NULL, put_three, a), 0);
    read_lines(fd, 4);
    pthread_join(thread, NULL);
    assert_int_equal(dropped(), before);
    audit_free(a);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_line_has_every_field, remove_files),
        cmocka_unit_test_teardown(test_levels, remove_files),
        cmocka_unit_test_teardown(test_the_file_is_opened_anew, remove_files),
        cmocka_unit_test_teardown(test_what_cannot_be_written_is_counted, remove_files),
        cmocka_unit_test_teardown(test_a_line_that_was_cut_spoils_no_other, remove_files),
        cmocka_unit_test_teardown(test_a_line_without_room_is_dropped, remove_files),
        cmocka_unit_test_teardown(test_a_thread_waits_for_room_where_it_must, remove_files),
    };
    signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
