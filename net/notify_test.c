#include "net/notify.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "net/daemon_reload.h"

/* A manager: a datagram socket with a name, of which messages are read without a wait. */
struct manager {
    char dir[32];
    char name[64]; /* as NOTIFY_SOCKET has it */
    int fd;
    char last[4097];
};

static void listen_at(struct manager *m)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t len = strlen(m->name);
    memcpy(a.sun_path, m->name, len);
    if (m->name[0] == '@')
        a.sun_path[0] = '\0';
    m->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(m->fd >= 0);
    assert_int_equal(bind(m->fd, (struct sockaddr *)&a,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
                     0);
}

static void manager_begin(struct manager *m, bool abstract)
{
    *m = (struct manager){.dir = "/tmp/dfc-notify-XXXXXX"};
    assert_non_null(mkdtemp(m->dir));
    snprintf(m->name, sizeof m->name, abstract ? "@%s/socket" : "%s/socket", m->dir);
    listen_at(m);
    setenv("NOTIFY_SOCKET", m->name, 1);
}

static void manager_end(struct manager *m)
{
    close(m->fd);
    unlink(m->name);
    rmdir(m->dir);
}

/* The next message, or "" where there is none. */
static const char *heard(struct manager *m)
{
    ssize_t n = recv(m->fd, m->last, sizeof m->last - 1, MSG_DONTWAIT);
    m->last[n > 0 ? n : 0] = '\0';
    return m->last;
}

static void test_nobody_listens(void **state)
{
    (void)state;
    unsetenv("NOTIFY_SOCKET");
    assert_null(notify_open());
    notify_ready(NULL, "serving");
    notify_reloading(NULL);
    notify_reloaded(NULL);
    notify_progress(NULL, 1000, "starting");
    notify_stopping(NULL, 1000);
    notify_flush(NULL);
    assert_int_equal(notify_fd(NULL), -1);
    assert_true(notify_retry_ms(NULL) == UINT64_MAX);
    notify_close(NULL);
}

static void test_addresses_that_are_none(void **state)
{
    (void)state;
    char longest[200] = "/";
    memset(longest + 1, 'a', sizeof longest - 2);
    const char *const wrong[] = {"", "/", "@", "vsock:2:1", "relative", longest};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("NOTIFY_SOCKET", wrong[i], 1);
        assert_null(notify_open());
        assert_null(getenv("NOTIFY_SOCKET"));
    }
}

static void check_a_life(bool abstract)
{
    struct manager m;
    manager_begin(&m, abstract);
    struct notify *n = notify_open();
    assert_non_null(n);
    assert_null(getenv("NOTIFY_SOCKET")); /* no child is the service */
    notify_progress(n, 60000, "building");
    assert_string_equal(heard(&m), "STATUS=building\nEXTEND_TIMEOUT_USEC=60000000\n");
    notify_ready(n, "serving");
    assert_string_equal(heard(&m), "READY=1\nSTATUS=serving\n");
    notify_status(n, "not ready any more");
    assert_string_equal(heard(&m), "STATUS=not ready any more\n");
    notify_ready(n, "serving again");
    assert_string_equal(heard(&m), "STATUS=serving again\n");
    uint64_t before_us = clock_us();
    unsigned long long told_us;
    notify_reloading(n);
    assert_int_equal(sscanf(heard(&m), "RELOADING=1\nMONOTONIC_USEC=%llu\n", &told_us), 1);
    assert_in_range(told_us, before_us, clock_us());
    notify_reloaded(n);
    assert_string_equal(heard(&m), "READY=1\n");
    notify_stopping(n, 3600000); /* an hour, and two minutes */
    assert_string_equal(heard(&m), "STOPPING=1\nEXTEND_TIMEOUT_USEC=3720000000\n");
    assert_string_equal(heard(&m), "");
    notify_close(n);
    manager_end(&m);
}

static void test_a_path(void **state)
{
    (void)state;
    check_a_life(false);
}

static void test_an_abstract_name(void **state)
{
    (void)state;
    check_a_life(true);
}

/* Else the manager would take the start for done. */
static void test_a_reload_before_the_daemon_is_ready(void **state)
{
    (void)state;
    struct manager m;
    manager_begin(&m, false);
    struct notify *n = notify_open();
    notify_reloading(n);
    notify_reloaded(n);
    assert_string_equal(heard(&m), "");
    notify_close(n);
    manager_end(&m);
}

static void test_a_status_is_one_line_of_utf8(void **state)
{
    (void)state;
    struct manager m;
    manager_begin(&m, false);
    struct notify *n = notify_open();
    notify_status(n, "a\nREADY=1\xff\xc3\xa4");
    assert_string_equal(heard(&m), "STATUS=a?READY=1?\xc3\xa4\n");
    char much[20000];
    memset(much, 'x', sizeof much);
    much[sizeof much - 1] = '\0';
    notify_status(n, much);
    assert_in_range(strlen(heard(&m)), 100, 2000);
    notify_close(n);
    manager_end(&m);
}

/* Until the queue takes no more.  Nothing blocks; what matters comes once there is room. */
static void test_a_manager_that_does_not_read(void **state)
{
    (void)state;
    struct manager m;
    manager_begin(&m, false);
    struct notify *n = notify_open();
    int sent = 0;
    for (; notify_fd(n) < 0; sent++)
        notify_status(n, "starting");
    assert_in_range(sent, 2, 100000);
    notify_ready(n, "serving");
    notify_reloading(n);
    notify_reloaded(n);
    struct pollfd room = {.fd = notify_fd(n), .events = POLLOUT};
    assert_true(room.fd >= 0);
    assert_int_equal(poll(&room, 1, 0), 0); /* who waits for room does not spin */
    for (int i = 0; i < sent - 1; i++)
        assert_string_equal(heard(&m), "STATUS=starting\n");
    assert_string_equal(heard(&m), "");
    assert_int_equal(poll(&room, 1, 10000), 1);
    notify_flush(n);
    assert_int_equal(notify_fd(n), -1);
    assert_string_equal(heard(&m), "READY=1\nSTATUS=serving\n");
    assert_string_equal(heard(&m), "");
    notify_close(n);
    manager_end(&m);
}

static int complaints;

static void count_line(const char *line, size_t len)
{
    (void)len;
    complaints += strstr(line, "cannot be reached") != NULL;
}

static void test_a_manager_that_leaves_and_comes_back(void **state)
{
    (void)state;
    struct manager m;
    manager_begin(&m, false);
    struct notify *n = notify_open();
    close(m.fd);
    notify_ready(n, "serving");
    assert_int_equal(unlink(m.name), 0);
    for (int i = 0; i < 3; i++) {
        notify_status(n, "nobody hears it");
        assert_int_equal(notify_fd(n), -1); /* a socket that nobody reads would be writable */
    }
    assert_in_range(notify_retry_ms(n), clock_ms(), clock_ms() + NOTIFY_RETRY_MS);
    notify_flush(n);
    assert_int_equal(complaints, 1);
    listen_at(&m);
    notify_flush(n);
    assert_string_equal(heard(&m), "READY=1\nSTATUS=nobody hears it\n");
    assert_true(notify_retry_ms(n) == UINT64_MAX);
    assert_int_equal(notify_fd(n), -1);
    notify_flush(n);
    assert_string_equal(heard(&m), ""); /* once */
    notify_close(n);
    manager_end(&m);
}

static void test_the_next_message_brings_what_was_kept(void **state)
{
    (void)state;
    struct manager m;
    manager_begin(&m, false);
    struct notify *n = notify_open();
    close(m.fd);
    assert_int_equal(unlink(m.name), 0);
    notify_ready(n, "serving");
    listen_at(&m);
    notify_status(n, "not ready any more");
    assert_string_equal(heard(&m), "READY=1\nSTATUS=not ready any more\n");
    notify_close(n);
    manager_end(&m);
}

struct serving {
    int stop[2]; /* a pipe */
    struct daemon_reload reload;
};

static void *serve(void *arg)
{
    struct serving *s = arg;
    daemon_serve(s->stop[0], &s->reload);
    return NULL;
}

/* Nothing else wakes it. */
static void test_a_daemon_that_serves_tries_again(void **state)
{
    (void)state;
    static const struct param_row no_rows[] = {{.name = NULL}};
    char program[] = "daemon", *argv[] = {program, NULL};
    struct manager m;
    manager_begin(&m, false);
    struct serving s = {.reload = {.rows = no_rows,
                                   .size = 1,
                                   .argc = 1,
                                   .argv = argv,
                                   .key_file = "",
                                   .log_file = "",
                                   .notify = notify_open(),
                                   .other_fd = -1}};
    close(m.fd);
    assert_int_equal(unlink(m.name), 0);
    notify_ready(s.reload.notify, "serving");
    listen_at(&m);
    pthread_t thread;
    assert_int_equal(pipe(s.stop), 0);
    assert_int_equal(pthread_create(&thread, NULL, serve, &s), 0);
    struct pollfd message = {.fd = m.fd, .events = POLLIN};
    assert_int_equal(poll(&message, 1, 60000), 1);
    assert_string_equal(heard(&m), "READY=1\nSTATUS=serving\n");
    assert_int_equal(write(s.stop[1], "x", 1), 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close(s.stop[0]);
    close(s.stop[1]);
    notify_close(s.reload.notify);
    manager_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_listens),
        cmocka_unit_test(test_addresses_that_are_none),
        cmocka_unit_test(test_a_path),
        cmocka_unit_test(test_an_abstract_name),
        cmocka_unit_test(test_a_reload_before_the_daemon_is_ready),
        cmocka_unit_test(test_a_status_is_one_line_of_utf8),
        cmocka_unit_test(test_a_manager_that_does_not_read),
        cmocka_unit_test(test_a_manager_that_leaves_and_comes_back),
        cmocka_unit_test(test_the_next_message_brings_what_was_kept),
        cmocka_unit_test(test_a_daemon_that_serves_tries_again),
    };
    log_set_copy(count_line);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
