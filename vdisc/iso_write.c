#include "vdisc/iso_write.h"

#include <assert.h>

#include "common/buf.h"
#include "vdisc/iso_records.h"
#include "vdisc/iso_volume.h"

#define PIECE (64u << 10) /* bytes that are collected before they are put */
#define PARENT_MAX UINT16_MAX

struct writer {
    const struct iso_layout *layout;
    int (*put)(void *context, const void *bytes, size_t len, struct error *err);
    void *context;
    struct error *err;
    struct buf buf; /* not put yet */
    uint64_t done;  /* bytes put, and in the buffer */
    int rc;         /* of the first put that failed */
};

static void flush(struct writer *w, size_t least)
{
    if (w->buf.len < least || w->buf.len == 0)
        return;
    if (w->rc == 0)
        w->rc = w->put(w->context, w->buf.data, w->buf.len, w->err);
    buf_clear(&w->buf);
}

static void put(struct writer *w, const void *bytes, size_t len)
{
    buf_append(&w->buf, bytes, len);
    w->done += len;
    flush(w, PIECE);
}

static void put_zeros(struct writer *w, size_t len)
{
    static const uint8_t zeros[ISO_BLOCK];
    for (; len > ISO_BLOCK; len -= ISO_BLOCK)
        put(w, zeros, ISO_BLOCK);
    put(w, zeros, len);
}

static void fill_sector(struct writer *w)
{
    put_zeros(w, (ISO_BLOCK - w->done % ISO_BLOCK) % ISO_BLOCK);
}

static void put_descriptors(struct writer *w, const struct iso_volume *v)
{
    uint8_t block[ISO_BLOCK];
    put_zeros(w, ISO_SYSTEM_BLOCKS * ISO_BLOCK);
    for (unsigned i = 0; i < w->layout->view_count; i++) {
        iso_volume_put(w->layout, i, v, block);
        put(w, block, sizeof block);
    }
    iso_volume_put_terminator(block);
    put(w, block, sizeof block);
}

static void put_path_record(struct writer *w, const struct iso_view *v, uint32_t place, bool big)
{
    const struct iso_place *p = &v->places[place];
    uint8_t head[8] = {0}, ident[ISO_VIEW_IDENTIFIER_MAX + 8];
    size_t len = iso_view_identifier(v, w->layout->tree, p->node, ident);
    uint16_t parent = p->parent < PARENT_MAX ? (uint16_t)(p->parent + 1) : PARENT_MAX;
    head[0] = (uint8_t)len;
    if (big) {
        iso_put32_big(head + 2, p->lba);
        iso_put16_big(head + 6, parent);
    } else {
        iso_put32(head + 2, p->lba);
        iso_put16(head + 6, parent);
    }
    put(w, head, sizeof head);
    put(w, ident, len);
    put_zeros(w, len % 2);
}

static void put_path_tables(struct writer *w, const struct iso_view *v)
{
    for (int big = 0; big < 2; big++) {
        for (uint32_t i = 0; i < v->count; i++)
            put_path_record(w, v, i, big != 0);
        fill_sector(w);
    }
}

static void put_record(void *context, const uint8_t *record, size_t len)
{
    struct writer *w = context;
    if (w->done % ISO_BLOCK + len > ISO_BLOCK)
        fill_sector(w);
    put(w, record, len);
}

/* Continuations on their way; the records were put already. */
struct continuing {
    struct writer *w;
    struct buf *bytes;
};

static void drop_record(void *context, const uint8_t *record, size_t len)
{
    struct continuing *c = context;
    (void)record;
    (void)len;
    if (c->bytes->len < PIECE)
        return;
    put(c->w, c->bytes->data, c->bytes->len);
    buf_clear(c->bytes);
}

/* Its records are made twice: for themselves, and for their continuations. */
static void put_directory(struct writer *w, unsigned view, uint32_t place)
{
    const struct iso_place *p = &w->layout->views[view].places[place];
    _cleanup_buf_ struct buf bytes = BUF_INIT;
    struct susp_area area = {.lba = p->lba + p->blocks};
    assert(w->done == (uint64_t)p->lba * ISO_BLOCK);
    iso_records_each(w->layout, view, place, &area, put_record, w);
    fill_sector(w);
    if (p->more_blocks == 0)
        return;
    struct continuing c = {.w = w, .bytes = &bytes};
    area.used = 0;
    area.bytes = &bytes;
    iso_records_each(w->layout, view, place, &area, drop_record, &c);
    put(w, bytes.data, bytes.len);
    fill_sector(w);
}

int iso_write(const struct iso_layout *l, const struct iso_volume *v,
              int (*to)(void *context, const void *bytes, size_t len, struct error *err),
              void *context, struct error *err)
{
    struct writer w = {.layout = l, .put = to, .context = context, .err = err};
    put_descriptors(&w, v);
    for (unsigned i = 0; i < l->view_count; i++)
        put_path_tables(&w, &l->views[i]);
    for (unsigned view = 0; view < l->view_count && w.rc == 0; view++) {
        for (uint32_t i = 0; i < l->views[view].count && w.rc == 0; i++)
            put_directory(&w, view, i);
    }
    flush(&w, 0);
    assert(w.rc != 0 || w.done == (uint64_t)l->header_blocks * ISO_BLOCK);
    buf_done(&w.buf);
    return w.rc;
}
