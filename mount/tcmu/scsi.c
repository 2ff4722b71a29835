#include "mount/tcmu/scsi.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum operation {
    TEST_UNIT_READY = 0x00,
    REQUEST_SENSE = 0x03,
    READ_6 = 0x08,
    INQUIRY = 0x12,
    MODE_SENSE_6 = 0x1a,
    START_STOP_UNIT = 0x1b,
    PREVENT_REMOVAL = 0x1e,
    READ_CAPACITY_10 = 0x25,
    READ_10 = 0x28,
    SYNCHRONIZE_CACHE_10 = 0x35,
    MODE_SENSE_10 = 0x5a,
    READ_16 = 0x88,
    SYNCHRONIZE_CACHE_16 = 0x91,
    SERVICE_ACTION_IN_16 = 0x9e,
    REPORT_LUNS = 0xa0,
    READ_12 = 0xa8,
};

/* What would change the disk. */
static const uint8_t writes[] = {
    0x04,                   /* FORMAT UNIT */
    0x07,                   /* REASSIGN BLOCKS */
    0x0a,                   /* WRITE 6, 10, 12, 16 */
    0x2a, 0xaa, 0x8a, 0x2e, /* WRITE AND VERIFY 10, 12, 16 */
    0xae, 0x8e, 0x41,       /* WRITE SAME 10, 16 */
    0x93, 0x42,             /* UNMAP */
    0x48,                   /* SANITIZE */
    0x89,                   /* COMPARE AND WRITE */
};

#define READ_CAPACITY_16 0x10 /* a service action */

#define SENSE_MEDIUM_ERROR 0x03
#define SENSE_ILLEGAL_REQUEST 0x05
#define SENSE_DATA_PROTECT 0x07

#define WRITE_PROTECTED 0x80 /* of MODE SENSE */
#define ALL_PAGES 0x3f
#define CACHING_PAGE 0x08
#define CACHING_SIZE 20
#define SECTORS_PER_BLOCK_LOG 2 /* 4 sectors are a block of the image */
#define NOT_ROTATING 1

static uint16_t get16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t get32(const uint8_t *at)
{
    return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static uint64_t get64(const uint8_t *at)
{
    return (uint64_t)get32(at) << 32 | get32(at + 4);
}

static void put16(uint8_t *at, uint16_t n)
{
    at[0] = (uint8_t)(n >> 8);
    at[1] = (uint8_t)n;
}

static void put32(uint8_t *at, uint32_t n)
{
    put16(at, (uint16_t)(n >> 16));
    put16(at + 2, (uint16_t)n);
}

static void put64(uint8_t *at, uint64_t n)
{
    put32(at, (uint32_t)(n >> 32));
    put32(at + 4, (uint32_t)n);
}

size_t scsi_cdb_size(uint8_t operation)
{
    static const uint8_t sizes[] = {6, 10, 10, SCSI_CDB, 16, 12, 10, 10};
    return sizes[operation >> 5];
}

/* --- replies ---------------------------------------------------------------------------------- */

static void fail(struct scsi_reply *r, uint8_t key, uint8_t code, uint8_t qualifier)
{
    *r = (struct scsi_reply){.status = SCSI_CHECK_CONDITION};
    r->sense[0] = 0x70; /* current, fixed format */
    r->sense[2] = key;
    r->sense[7] = SCSI_SENSE - 8;
    r->sense[12] = code;
    r->sense[13] = qualifier;
}

static void invalid_operation(struct scsi_reply *r)
{
    fail(r, SENSE_ILLEGAL_REQUEST, 0x20, 0);
}

static void invalid_field(struct scsi_reply *r)
{
    fail(r, SENSE_ILLEGAL_REQUEST, 0x24, 0);
}

static void out_of_range(struct scsi_reply *r)
{
    fail(r, SENSE_ILLEGAL_REQUEST, 0x21, 0);
}

void scsi_unreadable(struct scsi_reply *r)
{
    fail(r, SENSE_MEDIUM_ERROR, 0x11, 0);
}

/* No more than the command has room for. */
static void finish(struct scsi_reply *r, size_t size, size_t room)
{
    r->data_size = size < room ? size : room;
}

/* --- what the disk is ------------------------------------------------------------------------- */

static void put_padded(uint8_t *to, const char *text, size_t width)
{
    const size_t len = strlen(text);
    memset(to, ' ', width);
    memcpy(to, text, len < width ? len : width);
}

static void standard_inquiry(struct scsi_reply *r, size_t room)
{
    r->data[2] = 6; /* SPC-4 */
    r->data[3] = 2; /* the format of this reply */
    r->data[4] = 36 - 5;
    r->data[7] = 2; /* commands are queued */
    put_padded(r->data + 8, SCSI_VENDOR, 8);
    put_padded(r->data + 16, SCSI_MODEL, 16);
    put_padded(r->data + 32, "1", 4);
    finish(r, 36, room);
}

/* Each returns the bytes behind the page's first four. */
static size_t page_list(const struct scsi_disk *d, uint8_t *to)
{
    static const uint8_t pages[] = {0x00, 0x80, 0x83, 0xb0, 0xb1};
    (void)d;
    memcpy(to, pages, sizeof pages);
    return sizeof pages;
}

static size_t page_serial(const struct scsi_disk *d, uint8_t *to)
{
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)d->naa);
    memcpy(to, text, 16);
    return 16;
}

static size_t page_identity(const struct scsi_disk *d, uint8_t *to)
{
    to[0] = 0x01; /* binary */
    to[1] = 0x03; /* of the logical unit: NAA */
    to[3] = 8;
    put64(to + 4, d->naa);
    return 12;
}

static size_t page_limits(const struct scsi_disk *d, uint8_t *to)
{
    put16(to + 2, 1 << SECTORS_PER_BLOCK_LOG);
    put32(to + 4, d->read_most);
    put32(to + 8, d->read_most); /* the best size, too */
    return 60;
}

static size_t page_characteristics(const struct scsi_disk *d, uint8_t *to)
{
    (void)d;
    put16(to, NOT_ROTATING);
    return 60;
}

static void vital_page(const struct scsi_disk *d, uint8_t page, size_t room, struct scsi_reply *r)
{
    static const struct {
        uint8_t page;
        size_t (*put)(const struct scsi_disk *d, uint8_t *to);
    } pages[] = {{0x00, page_list},
                 {0x80, page_serial},
                 {0x83, page_identity},
                 {0xb0, page_limits},
                 {0xb1, page_characteristics}};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        if (pages[i].page != page)
            continue;
        const size_t size = pages[i].put(d, r->data + 4);
        r->data[1] = page;
        put16(r->data + 2, (uint16_t)size);
        finish(r, size + 4, room);
        return;
    }
    invalid_field(r);
}

static void inquiry(const struct scsi_disk *d, const uint8_t *cdb, struct scsi_reply *r)
{
    const size_t room = get16(cdb + 3);
    if ((cdb[1] & 1) != 0)
        vital_page(d, cdb[2], room, r);
    else if (cdb[2] == 0)
        standard_inquiry(r, room);
    else
        invalid_field(r);
}

/* The header of 4 or 8 bytes, and the caching page: no cache of writes. */
static void mode_sense(const uint8_t *cdb, bool is_long, struct scsi_reply *r)
{
    const uint8_t page = cdb[2] & 0x3f;
    const bool saved = cdb[2] >> 6 == 3;
    const size_t header = is_long ? 8 : 4;
    const size_t room = is_long ? get16(cdb + 7) : cdb[4];
    size_t size = header;
    if (saved || (page != ALL_PAGES && page != CACHING_PAGE)) {
        invalid_field(r);
        return;
    }
    r->data[size] = CACHING_PAGE;
    r->data[size + 1] = CACHING_SIZE - 2;
    size += CACHING_SIZE;
    if (is_long) {
        put16(r->data, (uint16_t)(size - 2));
        r->data[3] = WRITE_PROTECTED;
    } else {
        r->data[0] = (uint8_t)(size - 1);
        r->data[2] = WRITE_PROTECTED;
    }
    finish(r, size, room);
}

static void capacity_10(const struct scsi_disk *d, struct scsi_reply *r)
{
    const uint64_t last = d->sectors - 1;
    put32(r->data, last < UINT32_MAX ? (uint32_t)last : UINT32_MAX); /* the latter: ask by 16 */
    put32(r->data + 4, SCSI_SECTOR);
    finish(r, 8, 8);
}

static void capacity_16(const struct scsi_disk *d, const uint8_t *cdb, struct scsi_reply *r)
{
    if ((cdb[1] & 0x1f) != READ_CAPACITY_16) {
        invalid_field(r);
        return;
    }
    put64(r->data, d->sectors - 1);
    put32(r->data + 8, SCSI_SECTOR);
    r->data[13] = SECTORS_PER_BLOCK_LOG;
    finish(r, 32, get32(cdb + 10));
}

/* There is one, 0. */
static void report_luns(const uint8_t *cdb, struct scsi_reply *r)
{
    put32(r->data, 8);
    finish(r, 16, get32(cdb + 6));
}

/* There is nothing to report: sense comes with each reply. */
static void request_sense(const uint8_t *cdb, struct scsi_reply *r)
{
    r->data[0] = 0x70;
    r->data[7] = SCSI_SENSE - 8;
    finish(r, SCSI_SENSE, cdb[4]);
}

/* --- contents --------------------------------------------------------------------------------- */

static void read_sectors(const struct scsi_disk *d, uint64_t first, uint32_t count,
                         struct scsi_reply *r)
{
    if (first > d->sectors || count > d->sectors - first) {
        out_of_range(r);
        return;
    }
    if (count > d->read_most) {
        invalid_field(r);
        return;
    }
    r->offset = first * SCSI_SECTOR;
    r->size = (uint64_t)count * SCSI_SECTOR;
}

static bool is_write(uint8_t operation)
{
    return memchr(writes, operation, sizeof writes) != NULL;
}

void scsi_answer(const struct scsi_disk *d, const uint8_t cdb[static SCSI_CDB],
                 struct scsi_reply *r)
{
    *r = (struct scsi_reply){.status = SCSI_GOOD};
    switch (cdb[0]) {
    case TEST_UNIT_READY:
    case START_STOP_UNIT:
    case PREVENT_REMOVAL:
    case SYNCHRONIZE_CACHE_10:
    case SYNCHRONIZE_CACHE_16:
        return;
    case REQUEST_SENSE:
        return request_sense(cdb, r);
    case INQUIRY:
        return inquiry(d, cdb, r);
    case MODE_SENSE_6:
    case MODE_SENSE_10:
        return mode_sense(cdb, cdb[0] == MODE_SENSE_10, r);
    case READ_CAPACITY_10:
        return capacity_10(d, r);
    case SERVICE_ACTION_IN_16:
        return capacity_16(d, cdb, r);
    case REPORT_LUNS:
        return report_luns(cdb, r);
    case READ_6: /* 0 is 256 */
        return read_sectors(d, get32(cdb) & 0x1fffff, cdb[4] != 0 ? cdb[4] : 256, r);
    case READ_10:
        return read_sectors(d, get32(cdb + 2), get16(cdb + 7), r);
    case READ_12:
        return read_sectors(d, get32(cdb + 2), get32(cdb + 6), r);
    case READ_16:
        return read_sectors(d, get64(cdb + 2), get32(cdb + 10), r);
    default:
        if (is_write(cdb[0]))
            fail(r, SENSE_DATA_PROTECT, 0x27, 0);
        else
            invalid_operation(r);
    }
}
