/* What programs ask of an open file of a mount, by ioctl(2). */
#pragma once

#include <stdint.h>
#include <sys/ioctl.h>

/* The disk cache and a range of the file: with `fetch` what is missing is fetched, and written
 * before the call returns.  A mount without a disk cache asks its cache group.  EOPNOTSUPP: the
 * mount has neither; ENOTTY: no file of a mount; ENOSPC: the cache has not taken all of it; EIO: a
 * member of the group has not. */
struct control_warm {
    uint64_t offset, size;
    uint64_t fetch;                /* 0: only look */
    uint64_t had_bytes, has_bytes; /* of the range, filled: before and now */
};
#define CONTROL_WARM _IOWR('d', 0x77, struct control_warm)
