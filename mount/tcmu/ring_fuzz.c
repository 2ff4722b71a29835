/* Any bytes as a ring: each command's data are within its memory, or the ring is refused. */
#include "mount/tcmu/ring.h"

#include <assert.h>
#include <linux/target_core_user.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define MOST 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void serve(struct ring *r)
{
    uint8_t byte = 1;
    struct ring_command c;
    struct scsi_reply reply;
    struct error err = ERROR_INIT;
    for (unsigned i = 0; i < 100 && ring_take(r, &c, &err) == 1; i++) {
        assert(c.lost || c.room < (size_t)MOST * MOST);
        if (!c.lost)
            ring_put(r, &c, &byte, c.room > 0);
        scsi_unreadable(&reply);
        ring_reply(r, &c, &reply);
        ring_advance(r);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ring r;
    struct error err = ERROR_INIT;
    if (size < sizeof(struct tcmu_mailbox) || size > MOST)
        return 0;
    uint8_t *map = xaligned(64, (size + 63) / 64 * 64);
    memcpy(map, data, size);
    if (ring_open(&r, map, size, &err) == 0)
        serve(&r);
    free(map);
    return 0;
}
