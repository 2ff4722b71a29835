/* Any bytes as a command: a reply that has room, and contents that the disk has. */
#include "mount/tcmu/scsi.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct scsi_disk disks[] = {{.sectors = 1, .read_most = 1},
                                      {.sectors = 1ull << 34, .read_most = 1024, .naa = ~0ull}};
    uint8_t cdb[SCSI_CDB] = {0};
    memcpy(cdb, data, size < sizeof cdb ? size : sizeof cdb);
    for (size_t i = 0; i < sizeof disks / sizeof *disks; i++) {
        struct scsi_reply r;
        scsi_answer(&disks[i], cdb, &r);
        assert(r.data_size <= sizeof r.data);
        assert(r.size <= (uint64_t)disks[i].read_most * SCSI_SECTOR);
        assert(r.offset + r.size <= disks[i].sectors * SCSI_SECTOR);
        assert(r.status == SCSI_GOOD || r.size + r.data_size == 0);
        assert((r.status == SCSI_CHECK_CONDITION) == (r.sense[0] != 0));
    }
    return 0;
}
