/* What commands on an unmounted volume have: its metadata, and its bucket.  A volume may be mounted
 * meanwhile. */
#pragma once

#include "api/dfc.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "mount/meta/engines.h"
#include "mount/program/client.h"
#include "mount/program/options.h"
#include "mount/program/program.h"
#include "mount/volume/volume.h"

struct tool {
    struct meta *meta;
    struct volume_format format;
    struct dfc_client *client;
    char *bucket;
    struct volume *volume; /* NULL: no session yet */
};

/* Of o->directory, which is the metadata's URL.  An exit code; tool_close() is due in any case. */
int tool_open(const struct options *o, struct tool *t);
void tool_close(struct tool *t);
/* A session, for commands that change something. */
int tool_open_volume(struct tool *t);
/* Says it, and returns its exit code. */
int tool_fail(const struct dfc_error *err);
/* As `remove` of struct volfs_store; context is the tool. */
int tool_remove(void *tool, const char *key);
