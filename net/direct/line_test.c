/* A connection whose process may have no more large pipes. */
#include "net/direct/line.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

enum { PIPES_MAX = 200, SMALL_PIPE = 2 * 4096 };

/* Of this thread; those that exempt it from the limit of pipes (pipe(7)) among them or not. */
static void set_exempt(bool is_exempt)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];
    const uint32_t both = 1u << CAP_SYS_RESOURCE | 1u << CAP_SYS_ADMIN;
    assert_int_equal(syscall(SYS_capget, &head, sets), 0);
    sets[0].effective = is_exempt ? sets[0].permitted : sets[0].effective & ~both;
    assert_int_equal(syscall(SYS_capset, &head, sets), 0);
}

static struct line line_with_bytes(int ends[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    assert_int_equal(send(ends[1], "bytes", 5, 0), 5);
    return (struct line){.fd = ends[0], .pipe = {-1, -1}, .wakes_at = 1};
}

static size_t fill_limit(int pipes[PIPES_MAX][2])
{
    size_t count = 0;
    int size;
    do {
        if (count == PIPES_MAX)
            skip(); /* fs.pipe-user-pages-soft is larger, or none */
        assert_int_equal(pipe2(pipes[count], O_CLOEXEC), 0);
        (void)fcntl(pipes[count][1], F_SETPIPE_SZ, 1 << 20);
        size = fcntl(pipes[count++][1], F_GETPIPE_SZ);
    } while (size > SMALL_PIPE);
    return count;
}

static void test_a_pipe_of_two_pages_is_none(void **state)
{
    (void)state;
    static int pipes[PIPES_MAX][2];
    int ends[2], to[2];
    char got[8];
    struct line l = line_with_bytes(ends);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, to), 0);
    set_exempt(false);
    size_t count = fill_limit(pipes);
    assert_int_equal(line_splice(&l, to[0], 5, 5), LINE_COPY);
    assert_int_equal(l.pipe[0], -1);
    set_exempt(true);
    for (size_t i = 0; i < count; i++) {
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
    assert_int_equal(line_recv(&l, got, sizeof got), 5);
    assert_memory_equal(got, "bytes", 5);
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(to[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_pipe_of_two_pages_is_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
