/* The ring of target_core_user: the kernel puts commands into it, and a server replies in place.
 * Documentation/target/tcmu-design.rst of Linux has its form; <linux/target_core_user.h> its
 * structures.
 *
 *     map:  mailbox | entries, tail → head | data area, where `iovec`s of entries point
 *
 * The ring outlives its server.  A next one maps it, and goes on at the tail: entries between tail
 * and head are commands without a reply that the kernel has seen.  Reads may be done twice.  A
 * reply is written over its request, so a request that is being replied to is lost when the server
 * is killed.  Bits of `uflags` that the kernel passes over say so:
 *
 *     TAKEN  the reply is being written: what is there is neither request nor reply
 *     DONE   it is complete
 *
 * A lost request gets BUSY, and the kernel asks again.  Replies stay in the order of requests: the
 * kernel would allow others (CAP_OOOC), but then a reply is written over another's request.
 *
 * The caller has a lock around these functions, but for ring_put(): its data are the command's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "mount/tcmu/scsi.h"

struct ring {
    uint8_t *map;
    size_t bytes;
    uint32_t begin, size; /* of the entries, in the map */
    uint32_t next;        /* the first entry that no thread has; from `begin` on */
};

struct ring_command {
    uint32_t at; /* the entry, from the ring's `begin` on */
    uint32_t pieces;
    size_t room;           /* bytes of its data */
    bool lost;             /* reply SCSI_BUSY */
    uint8_t cdb[SCSI_CDB]; /* zeros behind its end */
};

/* E_UNSUPPORTED, E_CORRUPT. */
int ring_open(struct ring *r, void *map, size_t bytes, struct error *err);
/* 1: a command; 0: there is none; E_CORRUPT. */
int ring_take(struct ring *r, struct ring_command *c, struct error *err);
/* The bytes become the command's data; zeros are behind them.  At most c->room. */
void ring_put(const struct ring *r, const struct ring_command *c, const void *data, size_t size);
void ring_reply(struct ring *r, const struct ring_command *c, const struct scsi_reply *reply);
/* Replies at the tail become the kernel's: true if there were some, and it must be told. */
bool ring_advance(struct ring *r);
