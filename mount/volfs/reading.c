#include "mount/volfs/reading.h"

#include <errno.h>
#include <string.h>

#include "common/log.h"
#include "mount/volfs/volfs_parts.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int reading_part(struct volfs *v, const struct volume_extent *x, uint64_t done, uint64_t length,
                 struct reading_part *p)
{
    const struct volume_format *format = volume_format(v->volume);
    const uint64_t offset = x->offset + done;
    p->in_block = offset % format->block_bytes;
    p->size = (size_t)least(length - done, format->block_bytes - p->in_block);
    p->entity = objects_entity(&v->objects, format, x->entry, offset / format->block_bytes);
    if (p->entity != NULL)
        return 0;
    log_error("a slice has not a sum for each of its parts", lstr("volume", format->name),
              lu64("slice", x->entry->slice));
    return -EIO;
}

static int read_part(struct volfs *v, const struct volfs_range *r, const struct reading_part *p,
                     char *to)
{
    const struct buffer_read what = {
        .entity = p->entity,
        .offset = p->in_block,
        .size = p->size,
        .interrupted = r->interrupted,
        .context = r->context,
    };
    int rc = buffer_read(v->buffer, &what, to);
    if (rc != -ESTALE)
        return rc;
    log_error("a block is missing in the bucket", lstr("object", p->entity->key));
    return -EIO;
}

int reading_extent(struct volfs *v, const struct volfs_range *r, const struct volume_extent *x,
                   uint64_t length, char *to)
{
    int rc = 0;
    if (x->entry == NULL) {
        memset(to, 0, length);
        return 0;
    }
    for (uint64_t done = 0; done < length && rc == 0;) {
        struct reading_part p;
        rc = reading_part(v, x, done, length, &p);
        if (rc != 0)
            break;
        rc = read_part(v, r, &p, to + done);
        entity_unref(p.entity);
        done += p.size;
    }
    return rc;
}

/* The section of [from, to) of the file in a part that begins there at `begin`, in its block. */
static struct span section(const struct reading_part *p, uint64_t begin, struct span of)
{
    uint64_t from = of.from > begin ? of.from : begin;
    uint64_t to = least(of.to, begin + p->size);
    return from < to ? (struct span){p->in_block + (from - begin), p->in_block + (to - begin)}
                     : (struct span){0};
}

void reading_request(struct volfs *v, const struct volume_extent *extents, size_t count,
                     struct span wanted, struct span ahead)
{
    for (size_t i = 0; i < count; i++) {
        const struct volume_extent *x = &extents[i];
        struct reading_part p;
        for (uint64_t done = 0; x->entry != NULL && done < x->length; done += p.size) {
            if (reading_part(v, x, done, x->length, &p) != 0)
                return;
            const uint64_t begin = (uint64_t)x->at + done;
            buffer_request(v->buffer, p.entity, section(&p, begin, wanted),
                           section(&p, begin, ahead));
            entity_unref(p.entity);
        }
    }
}
