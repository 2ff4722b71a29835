/* The link to the kernel: /dev/fuse, whose messages libfuse reads and writes by link_io.
 *
 * A process that takes over after a crash is a new session to libfuse and the old one to the
 * kernel.  So the kernel's first message, which agreed on the protocol, is kept: libfuse reads it
 * once more, and its reply goes nowhere.  Then the kernel is asked to send the requests again that
 * were not answered.
 *
 * libfuse 3.14 is older than two things that the kernel can do; replies are completed here for
 * them: writes of one file at the same time, and files that the kernel reads itself, from another
 * file (passthrough, Linux 6.9). */
#pragma once

#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LINK_INIT_BYTES 256

/* In memory that outlives the process. */
struct link_memory {
    atomic_bool serving; /* the first message was answered */
    bool can_resend;     /* the kernel sends requests again: Linux 6.9 */
    bool can_pass;       /* it reads other files itself, and was told so: Linux 6.9 */
    uint32_t init_bytes;
    char init[LINK_INIT_BYTES];
};

struct link {
    struct link_memory *memory;
    bool replay;     /* the next read gives the kept message */
    bool is_first;   /* the first message was read, and not answered */
    bool swallow;    /* the reply to it is not written */
    uint64_t unique; /* of the first message */
    bool pass;       /* the kernel is to read files itself, if it can */
};

void link_init(struct link *link, struct link_memory *memory, bool pass);
/* The functions find the link by what fuse_session_new() got as userdata. */
extern const struct fuse_custom_io link_io;
struct link *link_of(void *userdata);
/* After the first message was processed: 0 or -errno. */
int link_began(struct link *link, int fd);

/* Is the request that this thread processes one that the kernel has sent again?  What it asks for
 * may be done already. */
bool link_is_resent(void);
/* The kernel's number of the request that this thread processes; the same when
 * it comes again. */
uint64_t link_request(void);
/* The request that this thread processes is an OPEN or a CREATE with direct_io: its reply lets the
 * kernel send writes of the file at the same time, but for those that make it longer.  Linux 6.2;
 * an earlier one sends them one after the other. */
void link_parallel_writes(void);

/* ---- files that the kernel reads itself; if can_pass ---- */

/* The kernel's number of the file, above 0, or -errno.  EPERM: the process may not; ELOOP: the file
 * is on a file system that has others below it. */
int link_backing_open(int fuse_fd, int fd);
void link_backing_close(int fuse_fd, int backing);
/* The request that this thread processes is an OPEN: the kernel reads the file from this one. */
void link_pass(int backing);
