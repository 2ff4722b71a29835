/* The system use fields of a directory record: Rock Ridge (RRIP 1.12) by SUSP 1.12.
 *
 * A record has PX (mode, links, owner, serial number) first, then NM (the name), TF (time), SL (the
 * target of a link).  What does not fit continues in sectors behind the directory (CE).  PX is in
 * the record always, since pycdlib looks there for the version of Rock Ridge; so is a name of up to
 * 106 bytes, and the first part of a longer one, since 7-Zip does not look for names elsewhere.
 * Linux wants each continuation within one sector.  Lengths are even, as ECMA-119 wants them: PD
 * fills, since NVIDIA VDisc takes a single zero byte for the begin of a field that is cut. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vdisc/iso.h"

#define SUSP_FIELDS_MAX 8192 /* bytes: a link of 4095 bytes, each part of one byte, takes 6.3 KiB */

struct susp_node {
    const char *name; /* NULL of "." and ".." */
    const char *target;
    int64_t mtime_s;
    uint32_t mode; /* with the type */
    uint32_t links;
    uint32_t uid, gid;
    uint32_t serial;
    bool is_root; /* "." of the root: it says that there is Rock Ridge (SP, ER) */
};

/* Continuations are laid out one after another, from `lba` on. */
struct susp_area {
    uint32_t lba;
    uint64_t used;     /* bytes */
    struct buf *bytes; /* NULL: only counted */
};

/* Appends the fields of a record that has `room` bytes for them; returns how many it took. */
size_t susp_put(const struct susp_node *n, size_t room, uint8_t *record, struct susp_area *area);
