#include "mount/fuse/link.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/tsan.h"

/* The kernel's messages, as far as this file looks at them: linux/fuse.h.  Debian 12 has an older
 * one. */
struct request_head {
    uint32_t len;
    uint32_t opcode;
    uint64_t unique;
    uint64_t node;
    uint32_t uid, gid, pid;
    uint32_t padding;
};

struct request_init {
    uint32_t major, minor, max_readahead, flags, flags2;
};

struct reply_head {
    uint32_t len;
    int32_t error; /* of a notification: its code */
    uint64_t unique;
};

/* The begin of a reply to INIT. */
struct reply_init {
    uint32_t major, minor, max_readahead, flags;
    uint16_t max_background, congestion_threshold;
    uint32_t max_write, time_gran;
    uint16_t max_pages, map_alignment;
    uint32_t flags2, max_stack_depth;
};

/* The end of a reply to OPEN, and to CREATE. */
struct reply_open {
    uint64_t handle;
    uint32_t flags;
    int32_t backing;
};

struct backing_map {
    int32_t fd;
    uint32_t flags;
    uint64_t padding;
};

#define BACKING_OPEN _IOW(229, 1, struct backing_map)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

#define OPCODE_INIT 26
#define INIT_EXTENDED (1u << 30)            /* there are flags2 */
#define FLAGS2_HAS_RESEND (1u << (39 - 32)) /* requests are sent again when that is asked for */
#define FLAGS2_PASSTHROUGH (1u << (37 - 32))
#define STACK_DEPTH 1 /* the kernel reads files of file systems that have no other below them */
#define NOTIFY_RESEND 7
#define UNIQUE_RESENT (1ull << 63)
#define OPEN_PARALLEL_WRITES (1u << 6)
#define OPEN_PASSTHROUGH (1u << 7)

static _Thread_local bool is_resent;
static _Thread_local uint64_t request;
static _Thread_local struct reply_open adds; /* to the reply of the OPEN */

void link_init(struct link *link, struct link_memory *memory, bool pass)
{
    const bool again = atomic_load(&memory->serving);
    *link = (struct link){.memory = memory, .replay = again, .swallow = again, .pass = pass};
}

bool link_is_resent(void)
{
    return is_resent;
}

uint64_t link_request(void)
{
    return request;
}

void link_parallel_writes(void)
{
    adds.flags |= OPEN_PARALLEL_WRITES;
}

void link_pass(int backing)
{
    adds.flags |= OPEN_PASSTHROUGH;
    adds.backing = backing;
}

int link_backing_open(int fuse_fd, int fd)
{
    const struct backing_map map = {.fd = fd};
    int backing = ioctl(fuse_fd, BACKING_OPEN, &map);
    return backing >= 0 ? backing : -errno;
}

void link_backing_close(int fuse_fd, int backing)
{
    const uint32_t number = (uint32_t)backing;
    ioctl(fuse_fd, BACKING_CLOSE, &number);
}

/* head: of a reply, whose last part is `last`. */
static void add_flags(const struct reply_head *head, const struct iovec *last)
{
    struct reply_open open;
    if (adds.flags == 0 || (head->unique & ~UNIQUE_RESENT) != request)
        return; /* another thread's, or a notification */
    const struct reply_open add = adds;
    adds = (struct reply_open){0};
    if (head->error != 0 || last->iov_len < sizeof open)
        return;
    char *at = (char *)last->iov_base + last->iov_len - sizeof open;
    memcpy(&open, at, sizeof open);
    open.flags |= add.flags;
    open.backing = add.backing;
    memcpy(at, &open, sizeof open);
}

/* head, last: of the reply to the first message. */
static void tell_first(const struct link *link, const struct reply_head *head,
                       const struct iovec *last)
{
    struct reply_init init;
    struct link_memory *m = link->memory;
    if (!m->can_pass || head->error != 0 || last->iov_len < sizeof init) {
        m->can_pass = false;
        return;
    }
    memcpy(&init, last->iov_base, sizeof init);
    init.flags |= INIT_EXTENDED;
    init.flags2 |= FLAGS2_PASSTHROUGH;
    init.max_stack_depth = STACK_DEPTH;
    memcpy(last->iov_base, &init, sizeof init);
}

static void keep_first(struct link *link, const void *message, size_t size)
{
    struct request_init init = {0};
    struct link_memory *m = link->memory;
    const size_t head = sizeof(struct request_head);
    if (size > sizeof m->init)
        return; /* unknown to this release: there will be no taking over */
    memcpy(m->init, message, size);
    memcpy(&init, (const char *)message + head,
           size - head < sizeof init ? size - head : sizeof init);
    m->init_bytes = (uint32_t)size;
    const uint32_t flags2 = (init.flags & INIT_EXTENDED) != 0 ? init.flags2 : 0;
    m->can_resend = (flags2 & FLAGS2_HAS_RESEND) != 0;
    m->can_pass = link->pass && (flags2 & FLAGS2_PASSTHROUGH) != 0;
}

static ssize_t read_first_again(struct link *link, void *to, size_t room)
{
    struct request_head head;
    const struct link_memory *m = link->memory;
    link->replay = false;
    if (m->init_bytes < sizeof head || m->init_bytes > room) {
        errno = EIO;
        return -1;
    }
    memcpy(to, m->init, m->init_bytes);
    memcpy(&head, to, sizeof head);
    link->unique = head.unique;
    return (ssize_t)m->init_bytes;
}

static ssize_t link_read(int fd, void *to, size_t room, void *userdata)
{
    struct request_head head;
    struct link *link = link_of(userdata);
    if (link->replay)
        return read_first_again(link, to, room);
    ssize_t n = read(fd, to, room);
    tsan_after(link);
    if (n < (ssize_t)sizeof head)
        return n;
    memcpy(&head, to, sizeof head);
    is_resent = (head.unique & UNIQUE_RESENT) != 0;
    adds = (struct reply_open){0};
    request = head.unique & ~UNIQUE_RESENT;
    if (head.opcode == OPCODE_INIT) {
        link->unique = head.unique;
        link->is_first = true;
        keep_first(link, to, (size_t)n);
    }
    return n;
}

static ssize_t link_writev(int fd, struct iovec *iov, int count, void *userdata)
{
    struct reply_head head;
    struct link *link = link_of(userdata);
    tsan_before(link); /* the kernel's next request may be about what this reply tells of */
    memcpy(&head, iov[0].iov_base, sizeof head);
    add_flags(&head, &iov[count - 1]);
    if (link->is_first && head.unique == link->unique) {
        link->is_first = false;
        tell_first(link, &head, &iov[count - 1]);
    }
    if (!link->swallow)
        return writev(fd, iov, count);
    if (head.unique != link->unique)
        return writev(fd, iov, count);
    link->swallow = false;
    return (ssize_t)head.len;
}

const struct fuse_custom_io link_io = {.writev = link_writev, .read = link_read};

int link_began(struct link *link, int fd)
{
    const struct reply_head resend = {.len = sizeof resend, .error = NOTIFY_RESEND};
    if (atomic_exchange(&link->memory->serving, true))
        return write(fd, &resend, sizeof resend) == (ssize_t)sizeof resend ? 0 : -errno;
    return 0;
}
