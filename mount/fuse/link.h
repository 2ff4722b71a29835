/* The link to the kernel: /dev/fuse, whose messages libfuse reads and writes by link_io.
 *
 * A process that takes over after a crash is a new session to libfuse and the old one to the
 * kernel.  So the kernel's first message, which agreed on the protocol, is kept: libfuse reads it
 * once more, and its reply goes nowhere.  Then the kernel is asked to send the requests again that
 * were not answered. */
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
    uint32_t init_bytes;
    char init[LINK_INIT_BYTES];
};

struct link {
    struct link_memory *memory;
    bool replay;     /* the next read gives the kept message */
    bool swallow;    /* the reply to it is not written */
    uint64_t unique; /* of the first message */
};

void link_init(struct link *link, struct link_memory *memory);
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
 * an earlier one sends them one after the other.  libfuse 3.14 has no field for it. */
void link_parallel_writes(void);
