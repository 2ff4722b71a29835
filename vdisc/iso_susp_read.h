/* The way back of iso_susp.h: the system use fields of one record, from whatever image. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "vdisc/iso.h"

/* Where continuations are read from: whole blocks. */
struct iso_source {
    int (*read)(void *context, uint64_t offset, void *to, size_t len, struct error *err);
    void *context;
    uint64_t size; /* bytes of the image */
};

/* What the fields said; begin with all zero. */
struct susp_found {
    bool has_sp;
    uint8_t skip; /* of SP: bytes before the fields of each other record */
    bool has_px;
    uint32_t mode, uid, gid;
    bool has_time;
    int64_t mtime_s;
    char name[ISO_NAME_MAX + 3];
    size_t name_len;
    char target[ISO_LINK_MAX + 1];
    size_t target_len;
    bool part_continues; /* while SL is read */
};

/* E_IMAGE_DAMAGED, and what read() fails with.  Unknown fields are passed over. */
int susp_read(const struct iso_source *s, const uint8_t *fields, size_t len,
              struct susp_found *found, struct error *err);
