/* A server in a process of its own, on a ring that this process shares with it as the kernel. */
#include "mount/tcmu/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/rng.h"
#include "mount/tcmu/testing/kernel.h"

#define SECTORS 100000u
#define BAD_SECTOR 4711u
#define READ_MOST (KERNEL_PAGES * KERNEL_PAGE / SCSI_SECTOR)
#define KILLS 60
#define PATIENCE_MS 20000

struct world {
    struct kernel kernel;
    int ends[2]; /* the kernel's, the server's */
    pid_t server;
};

static uint8_t byte_at(uint64_t offset)
{
    return (uint8_t)((offset * 2654435761u) >> 24);
}

static int read_disk(void *context, uint64_t offset, size_t size, void *to)
{
    (void)context;
    if (offset / SCSI_SECTOR == BAD_SECTOR)
        return -EIO;
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)to)[i] = byte_at(offset + i);
    return 0;
}

static void serve_always(const struct world *w)
{
    struct server *s;
    struct error err = ERROR_INIT;
    const struct server_options options = {
        .uio = w->ends[1],
        .map = w->kernel.map,
        .bytes = w->kernel.bytes,
        .disk = {.sectors = SECTORS, .read_most = READ_MOST, .naa = 1},
        .threads = 4,
        .read = read_disk,
    };
    if (server_start(&options, &s, &err) != 0)
        _exit(1);
    struct pollfd failed = {.fd = server_failed_fd(s), .events = POLLIN};
    poll(&failed, 1, -1);
    _exit(2);
}

static void start_server(struct world *w)
{
    w->server = fork();
    if (w->server == 0)
        serve_always(w);
    assert_true(w->server > 0);
}

static void kill_server(const struct world *w)
{
    int status;
    kill(w->server, SIGKILL);
    assert_int_equal(waitpid(w->server, &status, 0), w->server);
    assert_true(WIFSIGNALED(status));
}

static int begin(void **state)
{
    static struct world w;
    kernel_open(&w.kernel, 2048);
    *state = &w;
    return socketpair(AF_UNIX, SOCK_DGRAM, 0, w.ends);
}

static int end(void **state)
{
    struct world *w = *state;
    close(w->ends[0]);
    close(w->ends[1]);
    kernel_close(&w->kernel);
    return 0;
}

static void tell_server(const struct world *w)
{
    const int32_t one = 1;
    assert_int_equal(send(w->ends[0], &one, sizeof one, MSG_DONTWAIT) > 0 || errno == EAGAIN, true);
}

static void push_read(struct world *w, uint32_t sector, uint32_t sectors)
{
    const uint8_t cdb[SCSI_CDB] = {0x28,
                                   0,
                                   (uint8_t)(sector >> 24),
                                   (uint8_t)(sector >> 16),
                                   (uint8_t)(sector >> 8),
                                   (uint8_t)sector,
                                   0,
                                   (uint8_t)(sectors >> 8),
                                   (uint8_t)sectors};
    if (kernel_push(&w->kernel, cdb, (size_t)sectors * SCSI_SECTOR) >= 0)
        tell_server(w);
}

/* Waits at most so long for the server's word. */
static bool await_server(const struct world *w, int ms)
{
    int32_t any;
    struct pollfd ready = {.fd = w->ends[0], .events = POLLIN};
    return poll(&ready, 1, ms) > 0 && recv(w->ends[0], &any, sizeof any, 0) > 0;
}

static void is_right(const struct kernel_reply *r)
{
    const uint8_t *c = r->slot.cdb;
    const uint32_t sector =
        (uint32_t)c[2] << 24 | (uint32_t)c[3] << 16 | (uint32_t)c[4] << 8 | c[5];
    if (r->status == SCSI_BUSY)
        return;
    assert_int_equal(r->status, sector == BAD_SECTOR ? SCSI_CHECK_CONDITION : SCSI_GOOD);
    for (size_t i = 0; r->status == SCSI_GOOD && i < r->slot.room; i++)
        assert_int_equal(r->data[i], byte_at((uint64_t)sector * SCSI_SECTOR + i));
}

static unsigned take_replies(struct world *w)
{
    struct kernel_reply r;
    unsigned count = 0;
    for (; kernel_take(&w->kernel, &r); count++)
        is_right(&r);
    return count;
}

static void reads_are_right(void **state)
{
    struct world *w = *state;
    start_server(w);
    for (uint32_t i = 0; i < 2000; i++) {
        push_read(w, i == 1000 ? BAD_SECTOR : i * 37 % (SECTORS - READ_MOST), 1 + i % READ_MOST);
        while (take_replies(w) == 0)
            assert_true(await_server(w, PATIENCE_MS));
    }
    kill_server(w);
}

/* Every command gets its reply, whenever the server is killed. */
static void a_kill_loses_nothing(void **state)
{
    struct world *w = *state;
    struct rng rng;
    unsigned done = 0, idle = 0;
    rng_seed(&rng, 5);
    start_server(w);
    for (unsigned kills = 0; kills < KILLS;) {
        const uint32_t sectors = 1 + (uint32_t)rng_below(&rng, READ_MOST);
        push_read(w, (uint32_t)rng_below(&rng, SECTORS - READ_MOST), sectors);
        const unsigned now = take_replies(w);
        done += now;
        idle = now > 0 ? 0 : idle + 1;
        if (now == 0 && !await_server(w, 1000))
            assert_true(idle < PATIENCE_MS / 1000);
        if (rng_below(&rng, 200) != 0)
            continue;
        kill_server(w);
        start_server(w);
        kills++;
    }
    print_message("%u replies, %u kills\n", done, KILLS);
    kill_server(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_are_right, begin, end),
        cmocka_unit_test_setup_teardown(a_kill_loses_nothing, begin, end),
    };
    return cmocka_run_group_tests_name("tcmu_server", tests, NULL, NULL);
}
