#include "mount/fuse/page.h"

#include <stdlib.h>

#include "common/mem.h"

struct page page_new(fuse_req_t req, size_t room, bool plus)
{
    return (struct page){.req = req, .plus = plus, .data = xmalloc(room), .room = room};
}

static size_t bytes_of(const struct page *p, const char *name)
{
    return p->plus ? fuse_add_direntry_plus(p->req, NULL, 0, name, NULL, 0)
                   : fuse_add_direntry(p->req, NULL, 0, name, NULL, 0);
}

bool page_has_room(const struct page *p, const char *name)
{
    return bytes_of(p, name) <= p->room - p->size;
}

void page_put(struct page *p, const char *name, const struct fuse_entry_param *entry, uint64_t next)
{
    char *to = p->data + p->size;
    const size_t left = p->room - p->size;
    p->size += p->plus ? fuse_add_direntry_plus(p->req, to, left, name, entry, (off_t)next)
                       : fuse_add_direntry(p->req, to, left, name, &entry->attr, (off_t)next);
}

void page_reply(struct page *p, int rc)
{
    if (rc != 0 && p->size == 0)
        fuse_reply_err(p->req, -rc);
    else
        fuse_reply_buf(p->req, p->data, p->size);
    free(p->data);
}
