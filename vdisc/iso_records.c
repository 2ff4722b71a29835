#include "vdisc/iso_records.h"

#include <sys/stat.h>

#include "vdisc/iso_date.h"

struct record {
    const uint8_t *ident;
    size_t ident_len;
    uint32_t lba;
    uint32_t size;
    uint8_t flags;
    int64_t mtime_s;
};

/* Without system use fields; returns the length, which is even (ECMA-119 9.1). */
static size_t put_fixed(const struct record *r, uint8_t *to)
{
    size_t len = ISO_RECORD_FIXED + r->ident_len;
    memset(to, 0, ISO_RECORD_FIXED);
    iso_put32_both(to + 2, r->lba);
    iso_put32_both(to + 10, r->size);
    iso_date_put(to + 18, r->mtime_s);
    to[25] = r->flags;
    iso_put16_both(to + 28, 1);
    to[32] = (uint8_t)r->ident_len;
    memcpy(to + ISO_RECORD_FIXED, r->ident, r->ident_len);
    if (len % 2 != 0)
        to[len++] = 0;
    to[0] = (uint8_t)len;
    return len;
}

/* susp: NULL of Joliet. */
static void put_record(const struct record *r, const struct susp_node *susp, struct susp_area *area,
                       void (*take)(void *context, const uint8_t *record, size_t len),
                       void *context)
{
    uint8_t bytes[ISO_RECORD_MAX + 2];
    size_t len = put_fixed(r, bytes);
    if (susp != NULL)
        len += susp_put(susp, ISO_RECORD_MAX - len, bytes + len, area);
    if (len % 2 != 0)
        bytes[len++] = 0;
    bytes[0] = (uint8_t)len;
    take(context, bytes, len);
}

static uint32_t type_of(const struct iso_node *n)
{
    const uint32_t types[] = {S_IFREG, S_IFDIR, S_IFLNK};
    return types[n->kind];
}

static struct susp_node susp_of(const struct iso_tree *t, uint32_t node, const char *name)
{
    const struct iso_node *n = &t->nodes[node];
    return (struct susp_node){
        .name = name,
        .target = n->target,
        .mtime_s = n->mtime_s,
        .mode = n->mode | type_of(n),
        .links = n->kind == ISO_DIRECTORY ? n->directories + 2 : 1,
        .uid = n->uid,
        .gid = n->gid,
        .serial = node + 1,
    };
}

static struct record record_of_place(const struct iso_layout *l, unsigned view, uint32_t place)
{
    const struct iso_place *p = &l->views[view].places[place];
    return (struct record){
        .lba = p->lba,
        .size = p->blocks * ISO_BLOCK,
        .flags = ISO_FLAG_DIRECTORY,
        .mtime_s = l->tree->nodes[p->node].mtime_s,
    };
}

void iso_records_root(const struct iso_layout *l, unsigned view, uint8_t to[static ISO_ROOT_RECORD])
{
    struct record r = record_of_place(l, view, 0);
    r.ident = (const uint8_t *)"";
    r.ident_len = 1;
    put_fixed(&r, to);
}

/* A file is one record for each section; an empty one, too, has a section. */
static void put_file(const struct iso_layout *l, struct record *r, const struct iso_node *n,
                     const struct susp_node *susp, struct susp_area *area,
                     void (*take)(void *context, const uint8_t *record, size_t len), void *context)
{
    uint64_t left = n->size;
    r->lba = l->contents[n->content].lba;
    do {
        bool more = left > ISO_SECTION_MAX;
        r->size = more ? ISO_SECTION_MAX : (uint32_t)left;
        r->flags = more ? ISO_FLAG_MORE : 0;
        put_record(r, susp, area, take, context);
        r->lba += ISO_SECTION_MAX / ISO_BLOCK;
        left -= r->size;
    } while (left > 0);
}

static void put_entry(const struct iso_layout *l, unsigned view, uint32_t node,
                      struct susp_area *area,
                      void (*take)(void *context, const uint8_t *record, size_t len), void *context)
{
    const struct iso_view *v = &l->views[view];
    const struct iso_node *n = &l->tree->nodes[node];
    uint8_t ident[ISO_VIEW_IDENTIFIER_MAX + 8];
    const struct susp_node susp = susp_of(l->tree, node, n->name);
    const struct susp_node *fields = v->joliet ? NULL : &susp;
    struct record r = {.mtime_s = n->mtime_s};
    if (n->kind == ISO_DIRECTORY)
        r = record_of_place(l, view, v->place_of[node]);
    r.ident = ident;
    r.ident_len = iso_view_identifier(v, l->tree, node, ident);
    if (n->kind == ISO_FILE)
        put_file(l, &r, n, fields, area, take, context);
    else
        put_record(&r, fields, area, take, context);
}

void iso_records_each(const struct iso_layout *l, unsigned view, uint32_t place,
                      struct susp_area *area,
                      void (*take)(void *context, const uint8_t *record, size_t len), void *context)
{
    const struct iso_view *v = &l->views[view];
    const struct iso_node *d = &l->tree->nodes[v->places[place].node];
    const uint32_t self_and_parent[] = {place, v->places[place].parent};
    for (uint8_t i = 0; i < 2; i++) {
        struct record r = record_of_place(l, view, self_and_parent[i]);
        struct susp_node susp = susp_of(l->tree, v->places[self_and_parent[i]].node, NULL);
        susp.is_root = i == 0 && place == 0;
        r.ident = &i;
        r.ident_len = 1;
        put_record(&r, v->joliet ? NULL : &susp, area, take, context);
    }
    for (uint32_t i = 0; i < d->count; i++) {
        uint32_t node = v->order[d->first + i];
        if (iso_view_shows(v, &l->tree->nodes[node]))
            put_entry(l, view, node, area, take, context);
    }
}
