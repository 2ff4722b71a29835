/* A cache group in front of a store, for mounts: each piece is asked of its owner.
 *
 * A group is never in the way.  If the owner rests, is slow, refuses, or gives bytes that are not
 * those that were asked for, the store is asked.  Bytes are given on after they were compared:
 * with the sum that came with them, with the sums of the entity, and of a whole object with its
 * checksum.  Entities with neither sums nor a strong tag come from the store.  Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "mount/data/buffer.h"

struct dfc_client;
struct group_reader;

/* Texts are copied. */
struct group_reader_options {
    struct dfc_client *client; /* borrowed */
    const char *group;
    const char *key_file; /* or "" */
    const char *bucket, *scope;
    uint64_t refresh_ms; /* between questions for the members */
    uint64_t connect_ms, wait_ms;
};

int group_reader_open(const struct group_reader_options *options, const struct data_store *store,
                      struct group_reader **out, struct error *err);
void group_reader_close(struct group_reader *r); /* NULL is fine */
DEFINE_CLEANUP(struct group_reader, group_reader_close);

/* As fetch of struct data_store; context is the reader. */
int group_reader_fetch(void *reader, const struct entity *e, uint64_t offset, uint64_t length,
                       const struct dfc_sink *sink);

struct group_warm {
    uint64_t offset, length; /* of the entity */
    bool fetch;              /* what is missing */
    /* Filled: bytes of the range that the disks of their owners had before, and have now. */
    uint64_t had_bytes, has_bytes;
};
/* 0; EIO: an owner has not got all of it, or does not answer; ENODEV: no member is present, and
 * what is missing is wanted; EOPNOTSUPP: the entity has neither sums nor a strong tag. */
int group_reader_warm(struct group_reader *r, const struct entity *e, struct group_warm *w);
