#include "target/node/start_progress.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "net/notify.h"

static char last[4097];

static const char *heard(int fd)
{
    ssize_t n = recv(fd, last, sizeof last - 1, MSG_DONTWAIT);
    last[n > 0 ? n : 0] = '\0';
    return last;
}

/* The name is the kernel's choice. */
static int listen_anywhere(void)
{
    char name[128];
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    socklen_t len = sizeof a;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a.sun_family), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    snprintf(name, sizeof name, "@%.*s", (int)(len - offsetof(struct sockaddr_un, sun_path) - 1),
             a.sun_path + 1);
    setenv("NOTIFY_SOCKET", name, 1);
    return fd;
}

static void test_files_ask_for_more_time_now_and_then(void **state)
{
    (void)state;
    int fd = listen_anywhere();
    struct notify *n = notify_open();
    struct start_progress p;
    start_progress_begin(&p, n);
    assert_string_equal(heard(fd),
                        "STATUS=opening the mountpaths\nEXTEND_TIMEOUT_USEC=900000000\n");
    start_progress_add(&p, 1, 0);
    start_progress_add(&p, 1, 0);
    assert_string_equal(heard(fd), "");
    atomic_store(&p.said_ms, clock_ms() - START_PROGRESS_EVERY_MS);
    start_progress_add(&p, 1, 0);
    start_progress_add(&p, 1, 0);
    assert_string_equal(heard(fd), "STATUS=building the index: 3 files looked at\n"
                                   "EXTEND_TIMEOUT_USEC=900000000\n");
    assert_string_equal(heard(fd), "");
    notify_close(n);
    close(fd);
}

/* A file of 135 GB is one file, and its bytes take longer than a start may. */
static void test_bytes_of_one_file_ask_for_more_time(void **state)
{
    (void)state;
    int fd = listen_anywhere();
    struct notify *n = notify_open();
    struct start_progress p;
    start_progress_begin(&p, n);
    assert_string_not_equal(heard(fd), "");
    start_progress_add(&p, 1, 0);
    start_progress_add(&p, 0, 3 << 20);
    assert_string_equal(heard(fd), "");
    atomic_store(&p.said_ms, clock_ms() - START_PROGRESS_EVERY_MS);
    start_progress_add(&p, 0, 1 << 20);
    assert_string_equal(
        heard(fd), "STATUS=building the index: 1 files looked at, 4 MiB compared with checksums\n"
                   "EXTEND_TIMEOUT_USEC=900000000\n");
    notify_close(n);
    close(fd);
}

static void test_nobody_listens(void **state)
{
    (void)state;
    struct start_progress p;
    start_progress_begin(&p, NULL);
    atomic_store(&p.said_ms, 0);
    start_progress_add(&p, 1, 0);
    assert_int_equal(atomic_load(&p.files), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_ask_for_more_time_now_and_then),
        cmocka_unit_test(test_bytes_of_one_file_ask_for_more_time),
        cmocka_unit_test(test_nobody_listens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
