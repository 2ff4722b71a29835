/* The head of a plog: the object of the file's own name, as JSON.  Pure.
 *
 *   {"plog": 1, "id": "<32 digits>", "mode": 420, "uid": 0, "gid": 0, "created_ms": …,
 *    "mtime_ms": …, "epoch": 7, "size": 1000, "bytes": 1200, "merged": 3, "nonce": "<16 digits>"}
 *
 * epoch, size and bytes (of data, with what was overwritten) are those of the merged index; merged
 * is its number and nonce the rest of its name.  merged 0: there is none yet.  "mark", where it is:
 * the plog is being flattened (flatten.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "plog/name.h"

enum { PLOG_HEAD_BYTES_MAX = 64 << 10 };

struct plog_head {
    char id[PLOG_ID_CHARS + 1];
    uint64_t mode, uid, gid;
    uint64_t created_ms, mtime_ms;
    uint64_t epoch, size, bytes;
    uint64_t merged, nonce;
    uint64_t mark; /* random; 0: none */
};

/* E_INVALID: it is no head of a plog.  E_UNSUPPORTED: of a later release. */
int plog_head_parse(const char *text, size_t len, struct plog_head *h, struct error *err);
void plog_head_print(const struct plog_head *h, struct buf *out);
