#include "vdisc/iso_read.h"

#include <string.h>
#include <sys/stat.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "vdisc/iso_date.h"

#define DESCRIPTORS_MAX 64
#define DEPTH_MAX 2048 /* a path of 4095 bytes has no more parts */
#define SMALLEST_RECORD 34

static int damaged(struct error *err, const char *what)
{
    return error_set(err, E_IMAGE_DAMAGED, "the image is damaged: %s", what);
}

static int read_block(const struct iso_reader *r, uint64_t lba, uint8_t to[static ISO_BLOCK],
                      struct error *err)
{
    if ((lba + 1) * ISO_BLOCK > r->source.size)
        return damaged(err, "a directory is behind the image's end");
    return r->source.read(r->source.context, lba * ISO_BLOCK, to, ISO_BLOCK, err);
}

/* --- opening ---------------------------------------------------------------------------------- */

static int find_rock_ridge(struct iso_reader *r, struct error *err)
{
    uint8_t block[ISO_BLOCK];
    struct susp_found *found = calloc(1, sizeof *found);
    if (found == NULL)
        return error_set(err, E_NOMEM, "out of memory");
    int rc = read_block(r, r->root_lba, block, err);
    if (rc == 0 && block[0] >= SMALLEST_RECORD)
        rc = susp_read(&r->source, block + SMALLEST_RECORD, block[0] - SMALLEST_RECORD, found, err);
    r->rock_ridge = found->has_sp;
    r->skip = found->skip;
    r->root_mode = found->has_px ? found->mode & 07777 : 0555;
    r->root_uid = found->uid;
    r->root_gid = found->gid;
    r->root_mtime_s = found->has_time ? found->mtime_s : iso_date_get(block + 18);
    free(found);
    return rc;
}

int iso_reader_open(struct iso_reader *r, const struct iso_source *s, struct error *err)
{
    uint8_t block[ISO_BLOCK];
    *r = (struct iso_reader){.source = *s};
    for (uint64_t i = 0; i < DESCRIPTORS_MAX; i++) {
        if ((ISO_SYSTEM_BLOCKS + i + 1) * ISO_BLOCK > s->size)
            break;
        int rc = read_block(r, ISO_SYSTEM_BLOCKS + i, block, err);
        if (rc != 0)
            return rc;
        if (memcmp(block + 1, "CD001", 5) != 0 || block[0] == 255)
            break;
        if (block[0] != 1)
            continue;
        if (block[128] != (ISO_BLOCK & 0xff) || block[129] != ISO_BLOCK >> 8)
            return error_set(err, E_UNSUPPORTED, "the image has blocks of another size than %u",
                             ISO_BLOCK);
        r->blocks = iso_get32(block + 80);
        r->root_lba = iso_get32(block + 156 + 2);
        r->root_size = iso_get32(block + 156 + 10);
        return find_rock_ridge(r, err);
    }
    return damaged(err, "it has no ISO 9660 volume descriptor");
}

void iso_reader_root(const struct iso_reader *r, struct iso_found *root)
{
    *root = (struct iso_found){.kind = ISO_DIRECTORY,
                               .lba = r->root_lba,
                               .size = r->root_size,
                               .mode = r->root_mode,
                               .uid = r->root_uid,
                               .gid = r->root_gid,
                               .mtime_s = r->root_mtime_s};
}

/* --- records ---------------------------------------------------------------------------------- */

/* A file of several sections comes as several records. */
struct listing {
    const struct iso_reader *reader;
    struct iso_found entry; /* as far as it is known */
    bool more;              /* the next record is a section of it */
    struct susp_found found;
    uint64_t base; /* of the block, in the image */
    uint64_t at;   /* of the present record, in the image */
    uint8_t block[ISO_BLOCK];
};

/* Without Rock Ridge: "NAME.EXT;1" is NAME.EXT, and "NAME.;1" is NAME. */
static void plain_name(const uint8_t *ident, size_t len, char *name)
{
    const uint8_t *version = memchr(ident, ';', len);
    size_t n = version != NULL ? (size_t)(version - ident) : len;
    if (n > 1 && ident[n - 1] == '.')
        n--;
    n = n <= ISO_NAME_MAX ? n : ISO_NAME_MAX;
    memcpy(name, ident, n);
    name[n] = '\0';
}

static void set_kind(struct iso_found *e, const struct susp_found *f, bool directory)
{
    e->kind = directory ? ISO_DIRECTORY : ISO_FILE;
    e->mode = directory ? 0555 : 0444;
    if (!f->has_px)
        return;
    e->mode = f->mode & 07777;
    e->uid = f->uid;
    e->gid = f->gid;
    if (S_ISLNK(f->mode) && !directory)
        e->kind = ISO_LINK;
}

static int check_name(const struct iso_found *e, struct error *err)
{
    if (e->name[0] == '\0' || strchr(e->name, '/') != NULL || strcmp(e->name, ".") == 0 ||
        strcmp(e->name, "..") == 0)
        return error_set(err, E_IMAGE_DAMAGED, "the image is damaged: a file is named '%s'",
                         e->name);
    return 0;
}

static int begin_entry(struct listing *l, const uint8_t *record, struct error *err)
{
    struct iso_found *e = &l->entry;
    const size_t ident_len = record[32];
    const size_t su = ISO_RECORD_FIXED + ident_len + (ident_len % 2 == 0) + l->reader->skip;
    memset(e, 0, sizeof *e);
    memset(&l->found, 0, sizeof l->found);
    int rc = 0;
    if (l->reader->rock_ridge && su < record[0])
        rc = susp_read(&l->reader->source, record + su, record[0] - su, &l->found, err);
    if (rc != 0)
        return rc;
    if (l->found.name_len > 0)
        memcpy(e->name, l->found.name, l->found.name_len + 1);
    else
        plain_name(record + ISO_RECORD_FIXED, ident_len, e->name);
    set_kind(e, &l->found, (record[25] & ISO_FLAG_DIRECTORY) != 0);
    memcpy(e->target, l->found.target, l->found.target_len + 1);
    e->mtime_s = l->found.has_time ? l->found.mtime_s : iso_date_get(record + 18);
    e->lba = iso_get32(record + 2);
    e->size = iso_get32(record + 10);
    e->record = l->at;
    return strlen(e->name) == l->found.name_len || l->found.name_len == 0
               ? check_name(e, err)
               : damaged(err, "a name has a zero byte");
}

static int continue_entry(struct listing *l, const uint8_t *record, struct error *err)
{
    struct iso_found *e = &l->entry;
    if (e->size % ISO_BLOCK != 0 || iso_get32(record + 2) != e->lba + e->size / ISO_BLOCK)
        return damaged(err, "the sections of a file are not neighbours");
    e->size += iso_get32(record + 10);
    return 0;
}

static bool is_dot(const uint8_t *record)
{
    return record[32] == 1 && record[ISO_RECORD_FIXED] <= 1;
}

static int take_record(struct listing *l, const uint8_t *record, iso_visit *visit, void *context,
                       struct error *err)
{
    if (is_dot(record))
        return 0;
    int rc = l->more ? continue_entry(l, record, err) : begin_entry(l, record, err);
    l->more = (record[25] & ISO_FLAG_MORE) != 0;
    l->entry.next = l->at + record[0];
    return rc != 0 || l->more ? rc : visit(context, &l->entry, err);
}

static int take_block(struct listing *l, size_t from, iso_visit *visit, void *context,
                      struct error *err)
{
    const uint8_t *block = l->block;
    int rc = 0;
    for (size_t at = from; rc == 0 && at < ISO_BLOCK && block[at] != 0; at += block[at]) {
        if (block[at] < SMALLEST_RECORD || at + block[at] > ISO_BLOCK ||
            ISO_RECORD_FIXED + block[at + 32] > block[at])
            return damaged(err, "a directory record is cut");
        l->at = l->base + at;
        rc = take_record(l, block + at, visit, context, err);
    }
    return rc;
}

/* The records of the blocks in [from, end). */
static int take_blocks(const struct iso_reader *r, uint64_t from, uint64_t end, iso_visit *visit,
                       void *context, struct error *err)
{
    struct listing *l = calloc(1, sizeof *l);
    if (l == NULL)
        return error_set(err, E_NOMEM, "out of memory");
    l->reader = r;
    int rc = 0;
    for (uint64_t at = from; rc == 0 && at < end; at = l->base + ISO_BLOCK) {
        l->base = at - at % ISO_BLOCK;
        rc = read_block(r, at / ISO_BLOCK, l->block, err);
        if (rc == 0)
            rc = take_block(l, at % ISO_BLOCK, visit, context, err);
    }
    if (rc == 0 && l->more)
        rc = damaged(err, "the last section of a file is missing");
    free(l);
    return rc;
}

int iso_reader_list_from(const struct iso_reader *r, const struct iso_found *directory,
                         uint64_t next, iso_visit *visit, void *context, struct error *err)
{
    const uint64_t begin = (uint64_t)directory->lba * ISO_BLOCK;
    return take_blocks(r, next > begin ? next : begin, begin + directory->size, visit, context,
                       err);
}

int iso_reader_list(const struct iso_reader *r, const struct iso_found *directory, iso_visit *visit,
                    void *context, struct error *err)
{
    return iso_reader_list_from(r, directory, 0, visit, context, err);
}

#define FOUND_IT 1

static int copy_entry(void *context, const struct iso_found *entry, struct error *err)
{
    (void)err;
    *(struct iso_found *)context = *entry;
    return FOUND_IT;
}

int iso_reader_record(const struct iso_reader *r, uint64_t record, struct iso_found *out,
                      struct error *err)
{
    int rc = take_blocks(r, record, r->source.size, copy_entry, out, err);
    return rc == FOUND_IT ? 0 : rc != 0 ? rc : damaged(err, "a record is behind its directory");
}

/* --- paths ------------------------------------------------------------------------------------ */

struct search {
    const char *part;
    size_t len;
    struct iso_found *out;
};

static int compare_part(void *context, const struct iso_found *entry, struct error *err)
{
    struct search *s = context;
    (void)err;
    if (strlen(entry->name) != s->len || memcmp(entry->name, s->part, s->len) != 0)
        return 0;
    *s->out = *entry;
    return FOUND_IT;
}

int iso_reader_find(const struct iso_reader *r, const char *path, struct iso_found *out,
                    struct error *err)
{
    iso_reader_root(r, out);
    for (const char *part = path; *part != '\0';) {
        size_t len = strcspn(part, "/");
        if (len > 0 && !(len == 1 && part[0] == '.')) {
            struct iso_found at = *out;
            struct search s = {.part = part, .len = len, .out = out};
            int rc = at.kind == ISO_DIRECTORY ? iso_reader_list(r, &at, compare_part, &s, err) : 0;
            if (rc == 0)
                return error_set(err, E_NOT_FOUND, "the image has no path '%s'", path);
            if (rc != FOUND_IT)
                return rc;
        }
        part += len + (part[len] == '/');
    }
    return 0;
}

struct walk {
    const struct iso_reader *reader;
    iso_walk_visit *visit;
    void *context;
    struct buf path;
    unsigned depth;
    uint64_t left; /* records that the image has room for: a circle of directories ends */
};

static int walk_entry(void *context, const struct iso_found *entry, struct error *err)
{
    struct walk *w = context;
    const size_t len = w->path.len;
    if (w->left-- == 0 || w->depth > DEPTH_MAX)
        return damaged(err, "its directories are a circle, or deeper than 2048");
    if (len > 0)
        buf_putc(&w->path, '/');
    buf_puts(&w->path, entry->name);
    int rc = w->visit(w->context, buf_str(&w->path), entry, err);
    w->depth++;
    if (rc == 0 && entry->kind == ISO_DIRECTORY)
        rc = iso_reader_list(w->reader, entry, walk_entry, w, err);
    w->depth--;
    w->path.len = len;
    buf_puts(&w->path, "");
    return rc;
}

int iso_reader_walk(const struct iso_reader *r, const struct iso_found *directory,
                    iso_walk_visit *visit, void *context, struct error *err)
{
    struct walk w = {.reader = r,
                     .visit = visit,
                     .context = context,
                     .left = r->source.size / SMALLEST_RECORD + 1};
    int rc = iso_reader_list(r, directory, walk_entry, &w, err);
    buf_done(&w.path);
    return rc;
}
