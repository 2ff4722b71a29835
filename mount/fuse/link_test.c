/* Messages between the two ends of a socket: the kernel's and libfuse's. */
#include "mount/fuse/link.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

/* As in linux/fuse.h. */
enum {
    FUSE_OPEN = 14,
    FUSE_INIT = 26,
    FUSE_CREATE = 35,
    FOPEN_DIRECT_IO = 1,
    PARALLEL = 64,
    PASSTHROUGH = 128
};
#define INIT_EXT (1u << 30)
#define INIT_PASSTHROUGH (1u << 5) /* of flags2 */
#define ENTRY_BYTES 128            /* before the open part of a reply to CREATE */

struct fuse_in_header {
    uint32_t len, opcode;
    uint64_t unique, nodeid;
    uint32_t uid, gid, pid, padding;
};

struct fuse_out_header {
    uint32_t len;
    int32_t error;
    uint64_t unique;
};

struct fuse_open_out {
    uint64_t fh;
    uint32_t open_flags;
    int32_t backing_id;
};

struct fuse_init_in {
    uint32_t major, minor, max_readahead, flags, flags2, unused[11];
};

struct fuse_init_out {
    uint32_t major, minor, max_readahead, flags;
    uint16_t max_background, congestion_threshold;
    uint32_t max_write, time_gran;
    uint16_t max_pages, map_alignment;
    uint32_t flags2, max_stack_depth, unused[6];
};

struct fixture {
    int kernel, libfuse;
    struct link_memory memory;
    struct link link;
};

struct link *link_of(void *userdata)
{
    return userdata;
}

static int set_up(void **state)
{
    static struct fixture x;
    int ends[2];
    memset(&x, 0, sizeof x);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
        return -1;
    x.kernel = ends[0];
    x.libfuse = ends[1];
    link_init(&x.link, &x.memory, true);
    *state = &x;
    return 0;
}

static int tear_down(void **state)
{
    const struct fixture *x = *state;
    close(x->kernel);
    close(x->libfuse);
    return 0;
}

static void ask(struct fixture *x, uint32_t opcode, uint64_t unique)
{
    char bytes[4096];
    const struct fuse_in_header head = {.len = sizeof head, .opcode = opcode, .unique = unique};
    assert_int_equal(write(x->kernel, &head, sizeof head), sizeof head);
    assert_int_equal(link_io.read(x->libfuse, bytes, sizeof bytes, &x->link), sizeof head);
}

/* The reply to an OPEN, as the kernel sees it. */
static struct fuse_open_out reply_open(struct fixture *x, uint64_t unique, int error, size_t before)
{
    char bytes[4096], body[4096] = {0};
    struct fuse_open_out open = {.fh = 77, .open_flags = FOPEN_DIRECT_IO};
    memcpy(body + before, &open, sizeof open);
    struct fuse_out_header head = {.error = error, .unique = unique};
    struct iovec parts[] = {{.iov_base = &head, .iov_len = sizeof head},
                            {.iov_base = body, .iov_len = before + sizeof open}};
    head.len = (uint32_t)(sizeof head + parts[1].iov_len);
    assert_int_equal(link_io.writev(x->libfuse, parts, 2, &x->link), head.len);
    assert_int_equal(read(x->kernel, bytes, sizeof bytes), head.len);
    memcpy(&open, bytes + head.len - sizeof open, sizeof open);
    assert_int_equal(open.fh, 77);
    return open;
}

static uint32_t reply(struct fixture *x, uint64_t unique, int error, size_t before)
{
    return reply_open(x, unique, error, before).open_flags;
}

/* What the kernel can do is agreed on: the reply to the first message, as it sees it. */
static struct fuse_init_out agree(struct fixture *x, uint32_t flags, uint32_t flags2)
{
    char bytes[4096];
    struct {
        struct fuse_in_header head;
        struct fuse_init_in init;
    } in = {{.len = sizeof in, .opcode = FUSE_INIT, .unique = 2},
            {.major = 7, .minor = 40, .flags = flags, .flags2 = flags2}};
    struct fuse_init_out out = {.major = 7, .minor = 38, .flags = 9};
    struct fuse_out_header head = {.len = sizeof head + sizeof out, .unique = 2};
    struct iovec parts[] = {{.iov_base = &head, .iov_len = sizeof head},
                            {.iov_base = &out, .iov_len = sizeof out}};
    assert_int_equal(write(x->kernel, &in, sizeof in), sizeof in);
    assert_int_equal(link_io.read(x->libfuse, bytes, sizeof bytes, &x->link), sizeof in);
    assert_int_equal(link_io.writev(x->libfuse, parts, 2, &x->link), head.len);
    assert_int_equal(read(x->kernel, bytes, sizeof bytes), head.len);
    memcpy(&out, bytes + sizeof head, sizeof out);
    assert_int_equal(out.minor, 38);
    return out;
}

static void the_kernel_is_told_that_it_may_read(void **state)
{
    struct fixture *x = *state;
    const struct fuse_init_out out = agree(x, INIT_EXT, INIT_PASSTHROUGH);
    assert_int_equal(out.flags, 9 | INIT_EXT);
    assert_int_equal(out.flags2, INIT_PASSTHROUGH);
    assert_int_equal(out.max_stack_depth, 1);
    assert_true(x->memory.can_pass);
}

static void an_older_kernel_is_told_nothing(void **state)
{
    struct fixture *x = *state;
    static const struct {
        uint32_t flags, flags2;
        bool pass;
    } cases[] = {{0, 0, true},
                 {0, INIT_PASSTHROUGH, true},
                 {INIT_EXT, 0, true},
                 {INIT_EXT, INIT_PASSTHROUGH, false}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        x->link.pass = cases[i].pass;
        const struct fuse_init_out out = agree(x, cases[i].flags, cases[i].flags2);
        assert_int_equal(out.flags, 9);
        assert_int_equal(out.flags2, 0);
        assert_int_equal(out.max_stack_depth, 0);
        assert_false(x->memory.can_pass);
    }
}

static void an_open_names_what_the_kernel_reads(void **state)
{
    struct fixture *x = *state;
    ask(x, FUSE_OPEN, 10);
    link_pass(42);
    const struct fuse_open_out open = reply_open(x, 10, 0, 0);
    assert_int_equal(open.open_flags, FOPEN_DIRECT_IO | PASSTHROUGH);
    assert_int_equal(open.backing_id, 42);
    ask(x, FUSE_OPEN, 12);
    assert_int_equal(reply_open(x, 12, 0, 0).backing_id, 0);
}

static void an_open_lets_writes_run_in_parallel(void **state)
{
    struct fixture *x = *state;
    ask(x, FUSE_OPEN, 10);
    link_parallel_writes();
    assert_int_equal(reply(x, 10, 0, 0), FOPEN_DIRECT_IO | PARALLEL);
    ask(x, FUSE_CREATE, 12);
    link_parallel_writes();
    assert_int_equal(reply(x, 12, 0, ENTRY_BYTES), FOPEN_DIRECT_IO | PARALLEL);
}

static void other_replies_stay_as_they_are(void **state)
{
    struct fixture *x = *state;
    ask(x, FUSE_OPEN, 10);
    assert_int_equal(reply(x, 10, 0, 0), FOPEN_DIRECT_IO);
    ask(x, FUSE_OPEN, 12);
    link_parallel_writes();
    assert_int_equal(reply(x, 10, 0, 0), FOPEN_DIRECT_IO); /* of another request */
    assert_int_equal(reply(x, 12, -5, 0), FOPEN_DIRECT_IO);
    ask(x, FUSE_OPEN, 14);
    link_parallel_writes();
    ask(x, FUSE_OPEN, 16); /* 14 was not answered by this thread */
    assert_int_equal(reply(x, 16, 0, 0), FOPEN_DIRECT_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_open_lets_writes_run_in_parallel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_replies_stay_as_they_are, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_kernel_is_told_that_it_may_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_older_kernel_is_told_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_open_names_what_the_kernel_reads, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
