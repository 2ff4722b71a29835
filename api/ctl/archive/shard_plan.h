/* A folder as a WebDataset: what makes a record, in which order, and where a shard ends.  Pure.
 *
 * A record is the files that have the same key.  Keys are ordered bytewise, and so are the members
 * of a record.  Records are added to a shard until it has the size that is asked for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct shard_file {
    char *path;   /* to open it */
    char *member; /* its name in the shard */
    size_t key_len;
    uint64_t size;
    uint32_t mode;
    int64_t mtime; /* seconds */
};

struct shard_plan {
    struct shard_file *files;
    size_t count, room;
    size_t *ends; /* of each shard: the number of the first file behind it */
    size_t shards;
};

/* Takes path; `below`: its name below the folder.  by_dir: the files of a directory are a record,
 * and "0001/image.jpg" is the member "0001.image.jpg"; else those of one name up to its first dot.
 * E_NAME for what readers of a WebDataset would pass over or take for another record's. */
int shard_plan_add(struct shard_plan *p, const char *path, const char *below, bool by_dir,
                   struct shard_file **added, struct error *err);
/* Takes path and the member's name as they are: an archive without records.  E_NAME where the name
 * is no UTF-8. */
int shard_plan_add_plain(struct shard_plan *p, const char *path, const char *member,
                         struct shard_file **added, struct error *err);
/* After the last one. */
void shard_plan_cut(struct shard_plan *p, uint64_t shard_size);
void shard_plan_done(struct shard_plan *p);
