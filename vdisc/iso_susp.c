#include "vdisc/iso_susp.h"

#include <assert.h>
#include <string.h>

#include "common/buf.h"
#include "vdisc/iso_date.h"

#define HEAD 4 /* bytes of a field before its content: two letters, length, version (SUSP 4.1) */
#define CE_LENGTH 28
#define PD_LENGTH 5
#define PX_LENGTH 44
#define TF_LENGTH (5 + ISO_DATE_SHORT)
#define NM_HEAD 5
#define SL_HEAD 5
#define SL_SMALLEST 3 /* bytes of a part of one byte */
#define NM_CONTINUES 1
#define SL_CONTINUES 1
#define SL_THIS 2
#define SL_PARENT 4
#define SL_ROOT 8
#define TF_MODIFY 2

/* ER of RRIP 1.12, 4.4 */
#define ER_ID "IEEE_P1282"
#define ER_TEXT "THE IEEE P1282 PROTOCOL PROVIDES SUPPORT FOR POSIX FILE SYSTEM SEMANTICS"
#define ER_SOURCE                                                                      \
    "PLEASE CONTACT THE IEEE STANDARDS DEPARTMENT, PISCATAWAY, NJ, USA FOR THE P1282 " \
    "SPECIFICATION"

struct fields {
    uint8_t bytes[SUSP_FIELDS_MAX];
    size_t len;
};

static uint8_t *add(struct fields *f, const char *letters, size_t len)
{
    assert(len <= UINT8_MAX && f->len + len <= sizeof f->bytes);
    uint8_t *at = f->bytes + f->len;
    memset(at, 0, len);
    memcpy(at, letters, 2);
    at[2] = (uint8_t)len;
    at[3] = 1;
    f->len += len;
    return at;
}

static void add_sp(struct fields *f)
{
    uint8_t *at = add(f, "SP", 7);
    at[4] = 0xbe;
    at[5] = 0xef;
}

static void add_er(struct fields *f)
{
    const size_t id = strlen(ER_ID), text = strlen(ER_TEXT), source = strlen(ER_SOURCE);
    uint8_t *at = add(f, "ER", HEAD + 4 + id + text + source);
    at[4] = (uint8_t)id;
    at[5] = (uint8_t)text;
    at[6] = (uint8_t)source;
    at[7] = 1;
    memcpy(at + 8, ER_ID ER_TEXT ER_SOURCE, id + text + source);
}

static void add_nm(struct fields *f, const char *name, size_t len, bool continues)
{
    uint8_t *at = add(f, "NM", NM_HEAD + len);
    at[4] = continues ? NM_CONTINUES : 0;
    memcpy(at + NM_HEAD, name, len);
}

static void add_px(struct fields *f, const struct susp_node *n)
{
    uint8_t *at = add(f, "PX", PX_LENGTH);
    const uint32_t values[] = {n->mode, n->links, n->uid, n->gid, n->serial};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        iso_put32_both(at + HEAD + 8 * i, values[i]);
}

static void add_tf(struct fields *f, const struct susp_node *n)
{
    uint8_t *at = add(f, "TF", TF_LENGTH);
    at[4] = TF_MODIFY;
    iso_date_put(at + 5, n->mtime_s);
}

/* One component record in the last SL. */
static void add_component(struct fields *f, uint8_t *sl, uint8_t flags, const char *part,
                          size_t len)
{
    assert(f->len + 2 + len <= sizeof f->bytes);
    uint8_t *at = f->bytes + f->len;
    at[0] = flags;
    at[1] = (uint8_t)len;
    memcpy(at + 2, part, len);
    sl[2] = (uint8_t)(sl[2] + 2 + len);
    f->len += 2 + len;
}

static uint8_t *next_sl(struct fields *f, uint8_t *sl)
{
    sl[4] = SL_CONTINUES;
    return add(f, "SL", SL_HEAD);
}

/* A part that does not fit into a field is cut, and the last byte of a part that fills one is left
 * for the next field: libarchive (3.6) shows no slash between parts where a field ends with one. */
static uint8_t *add_part(struct fields *f, uint8_t *sl, const char *part, size_t len, bool last)
{
    const size_t after = last ? 0 : SL_SMALLEST;
    bool dots = len <= 2 && memcmp(part, "..", len) == 0;
    if (dots) {
        if (sl[2] + 2u > UINT8_MAX)
            sl = next_sl(f, sl);
        add_component(f, sl, len == 1 ? SL_THIS : SL_PARENT, "", 0);
        return sl;
    }
    while (sl[2] + 2 + len + after > UINT8_MAX) {
        size_t room = UINT8_MAX - sl[2];
        size_t cut = room < SL_SMALLEST || len < 2 ? 0 : room - 2 < len ? room - 2 : len - 1;
        if (cut > 0)
            add_component(f, sl, SL_CONTINUES, part, cut);
        part += cut;
        len -= cut;
        sl = next_sl(f, sl);
    }
    add_component(f, sl, 0, part, len);
    return sl;
}

static void add_sl(struct fields *f, const char *target)
{
    uint8_t *sl = add(f, "SL", SL_HEAD);
    if (target[0] == '/')
        add_component(f, sl, SL_ROOT, "", 0);
    for (const char *part = target; *part != '\0';) {
        size_t len = strcspn(part, "/");
        const char *next = part + len + strspn(part + len, "/");
        if (len > 0)
            sl = add_part(f, sl, part, len, *next == '\0');
        part = next;
    }
}

static size_t first_length(const uint8_t *fields)
{
    return fields[2];
}

/* Whole fields that fit into `room`. */
static size_t fitting(const uint8_t *fields, size_t len, size_t room)
{
    size_t used = 0;
    while (used < len && used + first_length(fields + used) <= room)
        used += first_length(fields + used);
    return used;
}

static void put_ce(uint8_t *at, uint32_t lba, uint64_t offset, size_t len)
{
    memset(at, 0, CE_LENGTH);
    memcpy(at, "CE", 2);
    at[2] = CE_LENGTH;
    at[3] = 1;
    iso_put32_both(at + 4, lba + (uint32_t)(offset / ISO_BLOCK));
    iso_put32_both(at + 12, (uint32_t)(offset % ISO_BLOCK));
    iso_put32_both(at + 20, (uint32_t)len);
}

static void area_put(struct susp_area *area, const void *bytes, size_t len)
{
    if (area->bytes != NULL)
        buf_append(area->bytes, bytes, len);
    area->used += len;
}

static void area_next_sector(struct susp_area *area)
{
    static const uint8_t zeros[ISO_BLOCK];
    area_put(area, zeros, (ISO_BLOCK - area->used % ISO_BLOCK) % ISO_BLOCK);
}

/* How much of the fields one continuation has, its own CE not counted. */
static size_t continued(const uint8_t *fields, size_t len)
{
    return len <= ISO_BLOCK ? len : fitting(fields, len, ISO_BLOCK - CE_LENGTH);
}

static void put_ce_of(uint8_t *ce, const struct susp_area *area, uint64_t offset,
                      const uint8_t *fields, size_t len)
{
    size_t here = continued(fields, len);
    put_ce(ce, area->lba, offset, here + (here < len ? CE_LENGTH : 0));
}

static void continue_at(struct susp_area *area, const uint8_t *fields, size_t len, uint8_t *ce)
{
    if (len > ISO_BLOCK - area->used % ISO_BLOCK)
        area_next_sector(area);
    put_ce_of(ce, area, area->used, fields, len);
    for (;;) {
        size_t here = continued(fields, len);
        area_put(area, fields, here);
        fields += here;
        len -= here;
        if (len == 0)
            return;
        uint8_t next[CE_LENGTH];
        put_ce_of(next, area, (area->used / ISO_BLOCK + 1) * ISO_BLOCK, fields, len);
        area_put(area, next, CE_LENGTH);
        area_next_sector(area);
    }
}

static size_t evened(size_t len)
{
    return len % 2 != 0 ? len + PD_LENGTH : len;
}

/* The name whole, or in two fields, of which the first fills what the record has for it. */
static void add_name(struct fields *f, const char *name, size_t room, bool whole)
{
    size_t len = strlen(name), first = room - PX_LENGTH - CE_LENGTH - NM_HEAD;
    if (whole || evened(NM_HEAD + len) <= NM_HEAD + first) {
        add_nm(f, name, len, false);
        return;
    }
    if (first >= len)
        first = len - 1;
    first -= (NM_HEAD + first) % 2;
    add_nm(f, name, first, true);
    add_nm(f, name + first, len - first, false);
}

static size_t sl_length(const char *target)
{
    struct fields f;
    f.len = 0;
    add_sl(&f, target);
    return f.len;
}

static bool fits_whole(const struct susp_node *n, size_t room)
{
    size_t len = PX_LENGTH + TF_LENGTH + NM_HEAD + strlen(n->name);
    return evened(len) <= room && (n->target == NULL || evened(len + sl_length(n->target)) <= room);
}

static void collect(const struct susp_node *n, size_t room, struct fields *f)
{
    if (n->is_root)
        add_sp(f);
    add_px(f, n);
    if (n->name != NULL)
        add_name(f, n->name, room, fits_whole(n, room));
    add_tf(f, n);
    if (n->target != NULL)
        add_sl(f, n->target);
    if (n->is_root)
        add_er(f);
}

/* Of whole fields: all but the last. */
static size_t without_last(const uint8_t *fields, size_t len)
{
    size_t at = 0;
    while (at + first_length(fields + at) < len)
        at += first_length(fields + at);
    return at;
}

size_t susp_put(const struct susp_node *n, size_t room, uint8_t *record, struct susp_area *area)
{
    struct fields f;
    f.len = 0;
    collect(n, room, &f);
    size_t here = f.len;
    if (evened(f.len) > room) {
        here = fitting(f.bytes, f.len, room - CE_LENGTH);
        while (evened(here) + CE_LENGTH > room)
            here = without_last(f.bytes, here);
    }
    memcpy(record, f.bytes, here);
    size_t used = evened(here);
    if (used > here)
        memcpy(record + here, "PD\5\1\0", PD_LENGTH);
    if (here == f.len)
        return used;
    continue_at(area, f.bytes + here, f.len - here, record + used);
    return used + CE_LENGTH;
}
