#include "plog/file.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

enum {
    SEGMENT_BYTES = 16 << 20,
    REFRESH_MS = 20000,
    WINDOW = 4 << 20, /* that is painted at once */
    CACHED = 16,      /* blocks of PLOG_BLOCK bytes, a MiB */
};

struct block {
    size_t segment;
    uint64_t number, used; /* used: when, by the file's count; 0: empty */
    size_t len;
    char *data;
};

struct plog_file {
    struct plog_store st;
    struct plog_file_how how;
    char *object;
    struct plog_session session;
    char id[PLOG_ID_CHARS + 1];    /* of the plog that is read; "": not known yet */
    struct plog_segment segment;   /* what is not stored yet */
    struct plog_segment_name name; /* of the segment, if it is sealed */
    bool is_sealed, is_dirty;      /* is_dirty: something is not synced */
    struct plog_unsynced unsynced;
    uint64_t refreshed_ms;
    bool has_look, is_fixed; /* is_fixed: the look stays */
    struct plog_look look;
    struct block *blocks; /* of the look's segments; how.cached of them */
    uint64_t reads;
};

/* --- opening ---------------------------------------------------------------------------------- */

static void forget_look(struct plog_file *f)
{
    plog_look_done(&f->look);
    f->has_look = false;
    for (size_t i = 0; i < f->how.cached; i++)
        f->blocks[i].used = 0;
}

void plog_file_renew(struct plog_file *f)
{
    if (!f->is_fixed)
        forget_look(f);
}

void plog_file_drop(struct plog_file *f)
{
    if (f == NULL)
        return;
    forget_look(f);
    for (size_t i = 0; i < f->how.cached; i++)
        free(f->blocks[i].data);
    free(f->blocks);
    plog_segment_done(&f->segment);
    free(f->object);
    free(f);
}

/* Without a call. */
static void open_by_token(struct plog_file *f)
{
    plog_session_open_token(&f->st, f->how.token, &f->session);
    f->session.object = f->object;
    f->how.token = NULL; /* it is the caller's */
}

static int open_to_write(struct plog_file *f, struct error *err)
{
    char now[PLOG_ID_CHARS + 1];
    if (f->how.token != NULL) {
        open_by_token(f);
        return 0;
    }
    struct plog_open open = f->how.open;
    int code = E_NOT_FOUND;
    if (f->how.truncate && !(open.create && open.exclusive))
        code = plog_head_replace(&f->st, f->object, open.id, now, err);
    const bool is_cut = code == E_PRECONDITION; /* others have it open */
    if (code != 0 && !is_cut && code != E_NOT_FOUND)
        return code;
    if (code == 0 && open.id != NULL)
        open.id = now;
    code = plog_session_open(&f->st, f->object, &open, &f->session, err);
    if (code != 0 || !is_cut)
        return code;
    /* Stored now: a cut that waited would hide what others write and sync after this open. */
    plog_segment_cut(&f->segment, 0);
    f->is_dirty = true;
    return plog_file_sync(f, err);
}

/* Another plog may have the name by now: its bytes are not this file's. */
static int look(struct plog_file *f, struct error *err)
{
    if (f->has_look)
        return 0;
    const int code = plog_look(&f->st, f->object, &f->look, err);
    if (code != 0)
        return code;
    const char *id = f->how.write ? f->session.id : f->id;
    if (id[0] != '\0' && strcmp(id, f->look.head.id) != 0) {
        plog_look_done(&f->look);
        return error_set(err, E_PRECONDITION, "'%s' has been replaced; open it again", f->object);
    }
    memcpy(f->id, f->look.head.id, sizeof f->id);
    f->has_look = true;
    return 0;
}

static struct plog_file *new_file(const struct plog_store *st, const char *object,
                                  const struct plog_file_how *how)
{
    struct plog_file *f = xcalloc(1, sizeof *f);
    f->st = *st;
    f->how = *how;
    f->object = xstrdup(object);
    snprintf(f->id, sizeof f->id, "%s", how->open.id != NULL ? how->open.id : "");
    f->how.segment_bytes = how->segment_bytes > 0 ? how->segment_bytes : SEGMENT_BYTES;
    f->how.cached = how->cached > 0 ? how->cached : CACHED;
    f->how.refresh_ms = how->refresh_ms > 0 ? how->refresh_ms : REFRESH_MS;
    f->blocks = xcalloc(f->how.cached, sizeof *f->blocks);
    f->refreshed_ms = how->clock_ms(st->ctx);
    return f;
}

int plog_file_open(const struct plog_store *st, const char *object, const struct plog_file_how *how,
                   struct plog_file **out, struct error *err)
{
    struct plog_file *f = new_file(st, object, how);
    const int code = how->write ? open_to_write(f, err) : look(f, err);
    if (code != 0) {
        plog_file_drop(f);
        return code;
    }
    *out = f;
    return 0;
}

struct plog_file *plog_file_of_look(const struct plog_store *st, const char *object,
                                    const struct plog_file_how *how, struct plog_look *l)
{
    struct plog_file *f = new_file(st, object, how);
    f->how.write = false;
    f->look = *l;
    f->has_look = f->is_fixed = true;
    *l = (struct plog_look){.map = NULL};
    return f;
}

/* --- writing ---------------------------------------------------------------------------------- */

static int need_write(const struct plog_file *f, struct error *err)
{
    return f->how.write ? 0 : error_set(err, E_INVALID, "'%s' is open for reading", f->object);
}

/* The segment is stored; if not, it stays sealed, and the next call stores it under its name. */
static int store_segment(struct plog_file *f, struct error *err)
{
    char name[PLOG_NAME_MAX], etag[PLOG_ETAG_MAX];
    if (!f->is_sealed && plog_segment_empty(&f->segment))
        return 0;
    if (!f->is_sealed) {
        const int code = plog_session_begin(&f->st, &f->session, &f->name, err);
        if (code != 0)
            return code;
        plog_segment_seal(&f->segment, &f->name);
        f->is_sealed = true;
    }
    plog_name_segment(name, f->session.id, &f->name);
    const int code = f->st.send != NULL ? f->st.send(f->st.ctx, name, &f->segment.bytes, err)
                                        : f->st.put(f->st.ctx, name, f->segment.bytes.data,
                                                    f->segment.bytes.len, NULL, etag, err);
    if (code != 0) {
        error_wrap(err, "store '%s'", name);
        return code;
    }
    plog_segment_done(&f->segment);
    f->is_sealed = false;
    return 0;
}

/* All segments are durable. */
static int store_all(struct plog_file *f, struct error *err)
{
    const int code = store_segment(f, err);
    return code == 0 && f->st.flush != NULL ? f->st.flush(f->st.ctx, err) : code;
}

int plog_file_refresh(struct plog_file *f, struct error *err)
{
    const uint64_t now_ms = f->how.clock_ms(f->st.ctx);
    if (!f->how.write || now_ms - f->refreshed_ms < f->how.refresh_ms)
        return 0;
    f->refreshed_ms = now_ms;
    return plog_session_refresh(&f->st, &f->session, err);
}

/* Before something is added to the segment. */
static int get_ready(struct plog_file *f, struct error *err)
{
    int code = plog_file_refresh(f, err);
    if (code == 0 && (f->is_sealed || f->segment.bytes.len >= f->how.segment_bytes))
        code = store_segment(f, err);
    return code;
}

int plog_file_write(struct plog_file *f, const void *data, size_t len, uint64_t offset,
                    struct error *err)
{
    int code = need_write(f, err);
    if (code == 0 && (offset > PLOG_OFFSET_MAX || len > PLOG_OFFSET_MAX - offset))
        code = error_set(err, E_TOO_LARGE, "'%s': a file has at most 2^63 - 1 bytes", f->object);
    for (size_t done = 0; done < len && code == 0;) {
        code = get_ready(f, err);
        if (code != 0)
            break;
        const size_t room = f->how.segment_bytes - f->segment.bytes.len;
        const size_t part = len - done < room ? len - done : room;
        plog_segment_write(&f->segment, (const char *)data + done, part, offset + done);
        f->is_dirty = true;
        done += part;
        f->unsynced.end = offset + done > f->unsynced.end ? offset + done : f->unsynced.end;
    }
    return code;
}

int plog_file_cut(struct plog_file *f, uint64_t length, struct error *err)
{
    int code = need_write(f, err);
    if (code == 0 && length > PLOG_OFFSET_MAX)
        code = error_set(err, E_TOO_LARGE, "'%s': a file has at most 2^63 - 1 bytes", f->object);
    if (code == 0)
        code = get_ready(f, err);
    if (code != 0)
        return code;
    plog_segment_cut(&f->segment, length);
    f->is_dirty = true;
    f->unsynced = (struct plog_unsynced){.cuts = true, .end = length};
    return 0;
}

int plog_file_share(struct plog_file *f, struct plog_token *token, struct error *err)
{
    const int code = need_write(f, err);
    return code == 0 ? plog_session_share(&f->st, &f->session, token, err) : code;
}

int plog_file_push(struct plog_file *f, struct error *err)
{
    return f->is_dirty ? store_segment(f, err) : 0;
}

size_t plog_file_held(const struct plog_file *f)
{
    return f->segment.bytes.len;
}

void plog_file_rename(struct plog_file *f, const char *object)
{
    char *before = f->object;
    f->object = xstrdup(object);
    f->session.object = f->object;
    free(before);
}

const char *plog_file_object(const struct plog_file *f)
{
    return f->object;
}

const char *plog_file_id(const struct plog_file *f)
{
    return f->how.write ? f->session.id : f->has_look ? f->look.head.id : "";
}

struct plog_unsynced plog_file_unsynced(const struct plog_file *f)
{
    return f->unsynced;
}

int plog_file_sync(struct plog_file *f, struct error *err)
{
    if (!f->is_dirty)
        return 0;
    int code = store_all(f, err);
    if (code == 0)
        code = plog_session_sync(&f->st, &f->session, err);
    if (code != 0)
        return code;
    f->is_dirty = false;
    f->unsynced = (struct plog_unsynced){.end = 0};
    f->refreshed_ms = f->how.clock_ms(f->st.ctx);
    plog_file_renew(f);
    return 0;
}

int plog_file_close(struct plog_file *f, struct error *err)
{
    struct plog_watch watch = {.count = 0};
    enum plog_merge_result merged;
    int code = f->is_dirty ? store_all(f, err) : 0;
    if (code == 0 && f->how.write)
        code = plog_session_close(&f->st, &f->session, err);
    if (code != 0)
        return code;
    /* All is durable and seen.  A merge that fails is left to the next close, or to a recovery. */
    if (f->session.must_merge)
        (void)plog_merge(&f->st, f->object, &watch, 0, UINT64_MAX, &merged, NULL);
    plog_watch_done(&watch);
    plog_file_drop(f);
    return 0;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Bytes of a segment's data: a whole block, or any where the store compares with the checksums. */
static int read_data(struct plog_file *f, size_t segment, void *to, size_t len, uint64_t offset,
                     struct error *err)
{
    const struct plog_footer *footer = plog_map_segment(f->look.map, segment);
    const uint8_t *index = plog_map_index(f->look.map, segment);
    const unsigned long long number = offset / PLOG_BLOCK;
    char name[PLOG_NAME_MAX];
    const struct plog_data data = {.segment = name, .bytes = footer->name.bytes, .sums = index};
    plog_name_segment(name, f->look.head.id, &footer->name);
    int code = f->st.data != NULL ? f->st.data(f->st.ctx, &data, to, len, offset, err)
                                  : f->st.read(f->st.ctx, name, to, len, offset, err);
    if (code == 0 && f->st.data == NULL && !plog_index_block(footer, index, number, to, len))
        code = error_set(err, E_CORRUPT, "MiB %llu has not its checksum", number);
    if (code != 0)
        error_wrap(err, "'%s': segment '%s'", f->object, name);
    return code;
}

/* The block of a segment, compared with its checksum. */
static int read_block(struct plog_file *f, size_t segment, uint64_t number, struct block **out,
                      struct error *err)
{
    const struct plog_footer *footer = plog_map_segment(f->look.map, segment);
    const uint64_t left = footer->name.bytes - number * PLOG_BLOCK;
    struct block *b = &f->blocks[0];
    for (size_t i = 0; i < f->how.cached; i++) {
        struct block *other = &f->blocks[i];
        if (other->used > 0 && other->segment == segment && other->number == number) {
            other->used = ++f->reads;
            *out = other;
            return 0;
        }
        b = other->used < b->used ? other : b;
    }
    b->used = 0;
    b->data = b->data != NULL ? b->data : xmalloc(PLOG_BLOCK);
    b->len = left < PLOG_BLOCK ? (size_t)left : PLOG_BLOCK;
    const int code = read_data(f, segment, b->data, b->len, number * PLOG_BLOCK, err);
    if (code != 0)
        return code;
    b->segment = segment;
    b->number = number;
    b->used = ++f->reads;
    *out = b;
    return 0;
}

/* Through blocks of the file. */
static int read_extent(struct plog_file *f, const struct plog_extent *e, char *to,
                       struct error *err)
{
    for (uint64_t done = 0; done < e->length;) {
        const uint64_t at = e->physical + done, within = at % PLOG_BLOCK;
        struct block *b;
        const int code = read_block(f, e->segment, at / PLOG_BLOCK, &b, err);
        if (code != 0)
            return code;
        const uint64_t left = e->length - done;
        const uint64_t part = b->len - within < left ? b->len - within : left;
        memcpy(to + done, b->data + within, part);
        done += part;
    }
    return 0;
}

/* *end: at most so far; what was read ends there. */
static int read_window(struct plog_file *f, char *to, uint64_t from, uint64_t *end,
                       struct error *err)
{
    struct plog_extents e;
    int code = f->how.check != NULL ? f->how.check(f->st.ctx, err) : 0;
    if (code != 0)
        return code;
    *end = plog_map_paint(f->look.map, from, *end, &e);
    memset(to, 0, *end - from);
    const bool is_direct = f->st.data != NULL; /* the store keeps data */
    for (size_t i = 0; i < e.count && code == 0; i++) {
        const struct plog_extent *x = &e.items[i];
        char *at = to + (x->start - from);
        code = is_direct ? read_data(f, x->segment, at, (size_t)x->length, x->physical, err)
                         : read_extent(f, x, at, err);
    }
    plog_extents_done(&e);
    return code;
}

int plog_file_read(struct plog_file *f, void *to, size_t len, uint64_t offset, size_t *got,
                   struct error *err)
{
    *got = 0;
    int code = plog_file_sync(f, err);
    if (code == 0)
        code = look(f, err);
    if (code != 0)
        return code;
    const uint64_t size = plog_map_size(f->look.map);
    if (offset >= size)
        return 0;
    const uint64_t want = len < size - offset ? len : size - offset;
    for (uint64_t done = 0; done < want && code == 0;) {
        const uint64_t part = want - done < WINDOW ? want - done : WINDOW;
        uint64_t end = offset + done + part;
        code = read_window(f, (char *)to + done, offset + done, &end, err);
        done = end - offset;
    }
    *got = code == 0 ? (size_t)want : 0;
    return code;
}

/* What is wrong with the extent's bytes.  The store's own failure is an error of the walk. */
static int verify_extent(struct plog_file *f, const struct plog_extent *e, struct error *why)
{
    struct block *b;
    int code = 0;
    const uint64_t last = (e->physical + e->length - 1) / PLOG_BLOCK;
    for (uint64_t i = e->physical / PLOG_BLOCK; i <= last && code == 0; i++)
        code = read_block(f, e->segment, i, &b, why);
    return code;
}

static int walk_extent(struct plog_file *f, const struct plog_extent *e, bool verify,
                       plog_file_each *each, void *ctx, struct error *err)
{
    struct error why = ERROR_INIT;
    char name[PLOG_NAME_MAX];
    const int code = verify ? verify_extent(f, e, &why) : 0;
    if (code != 0 && code != E_CORRUPT && code != E_NOT_FOUND) {
        if (err != NULL)
            *err = why;
        return code;
    }
    plog_name_segment(name, f->look.head.id, &plog_map_segment(f->look.map, e->segment)->name);
    return each(ctx, e, name, code != 0 ? why.message : NULL);
}

int plog_file_walk(struct plog_file *f, bool verify, plog_file_each *each, void *ctx,
                   struct error *err)
{
    int code = plog_file_sync(f, err);
    if (code == 0)
        code = look(f, err);
    if (code != 0)
        return code;
    const uint64_t size = plog_map_size(f->look.map);
    for (uint64_t at = 0; code == 0 && plog_map_next(f->look.map, at, &at) && at < size;) {
        struct plog_extents e;
        const uint64_t end =
            plog_map_paint(f->look.map, at, size - at < WINDOW ? size : at + WINDOW, &e);
        for (size_t i = 0; i < e.count && code == 0; i++)
            code = walk_extent(f, &e.items[i], verify, each, ctx, err);
        plog_extents_done(&e);
        at = end;
    }
    return code;
}

int plog_file_stat(struct plog_file *f, struct plog_file_stat *out, struct error *err)
{
    int code = plog_file_sync(f, err);
    if (code == 0)
        code = look(f, err);
    if (code != 0)
        return code;
    *out = (struct plog_file_stat){.head = f->look.head,
                                   .size = plog_map_size(f->look.map),
                                   .bytes = plog_map_bytes(f->look.map),
                                   .segments = plog_map_segments(f->look.map),
                                   .records = f->look.records};
    return 0;
}
