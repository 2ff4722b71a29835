/* What programs ask of a mounted volume, by ioctl(2) on an open file or directory: calls on whole
 * trees (mount/volume/trees/trees.h).  ENOTTY: no mounted volume. */
#pragma once

#include <stdint.h>
#include <sys/ioctl.h>

#include "mount/fuse/tickets.h"
#include "mount/volume/trees/trees.h"

enum { CONTROL_NAME = META_NAME_MAX + 1 };

/* Of the directory: the name, and all that is below. */
struct control_remove {
    char name[CONTROL_NAME];
    uint32_t for_ever; /* not into the trash */
    /* filled: */
    uint32_t is_moved; /* into the trash, with all that is below */
    uint64_t removed;
    int32_t error;         /* errno, or 0 */
    char at[CONTROL_NAME]; /* after an error: where */
};
#define CONTROL_REMOVE _IOWR('d', 0x78, struct control_remove)

/* Of the directory: a ticket for control_clone. */
struct control_ticket {
    struct ticket ticket; /* filled */
};
#define CONTROL_TICKET _IOWR('d', 0x7c, struct control_ticket)

/* Of the file or directory, and all that is below: a clone in another directory.  ESTALE: the
 * ticket is over, or of a process before this one. */
struct control_clone {
    struct ticket directory;
    char name[CONTROL_NAME];
    /* filled: */
    uint64_t made;
    int32_t error;
    char at[CONTROL_NAME];
};
#define CONTROL_CLONE _IOWR('d', 0x79, struct control_clone)

/* The trash, asked of the root alone (EPERM): the rows behind `after` of the hour, or of the next
 * one that has any.  Begin with empty names, and go on with the struct as it was filled, until
 * `ends`. */
enum { CONTROL_TRASH_ROWS = 40 };
struct control_trash {
    char hour[CONTROL_NAME], after[CONTROL_NAME];
    /* filled, besides: */
    uint32_t ends, count;
    struct control_trashed {
        int64_t length;
        int64_t removed_ns;
        uint32_t type;
        char name[CONTROL_NAME];
    } rows[CONTROL_TRASH_ROWS];
};
#define CONTROL_TRASH _IOWR('d', 0x7a, struct control_trash)

/* Of the root (EPERM): a name of the trash comes back. */
struct control_restore {
    char hour[CONTROL_NAME], name[CONTROL_NAME];
    int32_t error; /* filled */
};
#define CONTROL_RESTORE _IOWR('d', 0x7b, struct control_restore)
