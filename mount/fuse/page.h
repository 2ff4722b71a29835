/* The reply to one readdir or readdirplus, as it fills. */
#pragma once

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct page {
    fuse_req_t req;
    bool plus; /* with attributes */
    char *data;
    size_t size, room;
};

struct page page_new(fuse_req_t req, size_t room, bool plus);
/* Whether there is room for one more, of this name. */
bool page_has_room(const struct page *p, const char *name);
/* Of one that has room.  next: where a later page goes on.  Without `plus` only the inode and the
 * type of entry->attr are told. */
void page_put(struct page *p, const char *name, const struct fuse_entry_param *entry,
              uint64_t next);
/* The reply; rc: 0 or -errno.  What was found before an error is told now, the error by the next
 * call. */
void page_reply(struct page *p, int rc);
