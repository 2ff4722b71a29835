/* What a sync does to one name.  Any thread. */
#pragma once

#include "api/ctl/names/name.h"
#include "api/ctl/print/progress.h"
#include "api/ctl/sync/rule.h"
#include "api/dfc.h"

/* A side: a directory, or the objects below a prefix. */
struct sync_end {
    const char *path;        /* of the directory; NULL: objects */
    int root;                /* the destination's directory; -1: none is open */
    struct object_name name; /* key: the prefix, which is empty or ends with a slash */
    uint64_t part_size;      /* the source's files above it are sent in parts; 0: none is */
};

/* Whether the file has the object's bytes, as far as its checksum says. *same is the answer. */
int sync_read_file(const struct sync_end *files, const char *name, const struct sync_entry *object,
                   bool *same, struct dfc_error *err);
int sync_send(struct dfc_client *client, const struct sync_end *from, const struct sync_end *to,
              const struct sync_entry *entry, struct progress_part *part, struct dfc_error *err);
/* From the destination. */
int sync_remove(struct dfc_client *client, const struct sync_end *to, const char *name,
                struct dfc_error *err);
