/* SCSI commands of a read-only disk: what a command asks for, and the bytes of its reply.
 *
 * Sources: SPC-4 (INQUIRY, MODE SENSE, REPORT LUNS), SBC-3 (READ, READ CAPACITY, pages B0 and B1).
 * Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SCSI_SECTOR 512
#define SCSI_CDB 16
#define SCSI_SENSE 18
#define SCSI_REPLY 96      /* bytes of the longest reply that is not contents */
#define SCSI_VENDOR "DFC"  /* of INQUIRY; padded with spaces */
#define SCSI_MODEL "vdisc" /* the same */

enum scsi_status { SCSI_GOOD = 0x00, SCSI_CHECK_CONDITION = 0x02, SCSI_BUSY = 0x08 };

struct scsi_disk {
    uint64_t sectors;   /* of 512 bytes; at least 1 */
    uint32_t read_most; /* sectors of one read */
    uint64_t naa;       /* identifies the disk; its first four bits are 3 */
};

struct scsi_reply {
    enum scsi_status status;
    uint8_t sense[SCSI_SENSE]; /* of SCSI_CHECK_CONDITION */
    /* Of SCSI_GOOD: contents of the disk, or else `data`; both may be empty. */
    uint64_t offset, size;
    uint8_t data[SCSI_REPLY];
    size_t data_size; /* at most what the command has room for */
};

/* The bytes of a command that begins with this one: 6, 10, 12 or 16. */
size_t scsi_cdb_size(uint8_t operation);
void scsi_answer(const struct scsi_disk *disk, const uint8_t cdb[static SCSI_CDB],
                 struct scsi_reply *reply);
/* The contents could not be read. */
void scsi_unreadable(struct scsi_reply *reply);
