#include "api/ctl/archive/shard_plan.h"

#include <stdlib.h>
#include <string.h>

#include "api/ctl/names/name.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "sort/shard/record.h"
#include "sort/shard/tar_header.h"
#include "sort/shard/tar_make.h"

/* --- names ------------------------------------------------------------------------------------ */

static int check_stem(const char *below, struct error *err)
{
    const char *base = name_base(below);
    const char *dot = strchr(base, '.');
    if (dot == base)
        return error_set(err, E_NAME,
                         "its name begins with a dot, so that it has no record; move it away");
    if (dot == NULL || dot[1] == '\0')
        return error_set(err, E_NAME,
                         "its name has no extension, so that readers pass over it; add one");
    return 0;
}

/* "a/0001/x.jpg" is "a/0001.x.jpg". */
static int name_by_dir(const char *below, char **member, struct error *err)
{
    const char *base = name_base(below);
    if (base == below)
        return error_set(err, E_NAME,
                         "it is in no directory of its own: each directory is a record");
    if (base[0] == '.')
        return error_set(err, E_NAME, "its name begins with a dot; move it away");
    _cleanup_free_ char *directory = xstrndup(below, (size_t)(base - below) - 1);
    if (strchr(name_base(directory), '.') != NULL)
        return error_set(err, E_NAME,
                         "the name of its directory has a dot, which would end the record's key; "
                         "rename the directory");
    *member = xprintf("%s.%s", directory, base);
    return 0;
}

static int check_text(const char *name, struct error *err)
{
    return utf8_valid(name, strlen(name)) ? 0 : error_set(err, E_NAME, "the name is not UTF-8");
}

static int name_member(const char *below, bool by_dir, char **member, struct error *err)
{
    if (by_dir)
        return name_by_dir(below, member, err);
    int rc = check_stem(below, err);
    if (rc == 0)
        *member = xstrdup(below);
    return rc;
}

/* Owns member. */
static struct shard_file *append(struct shard_plan *p, const char *path, char *member)
{
    if (p->count == p->room) {
        p->room = p->room * 2 + 64;
        p->files = xrealloc(p->files, p->room * sizeof *p->files);
    }
    struct shard_file *f = &p->files[p->count++];
    *f = (struct shard_file){
        .path = xstrdup(path),
        .member = member,
        .key_len = record_key_len(member, strlen(member), SORT_KEY_FIRST_DOT),
    };
    return f;
}

int shard_plan_add(struct shard_plan *p, const char *path, const char *below, bool by_dir,
                   struct shard_file **added, struct error *err)
{
    char *member = NULL;
    int rc = check_text(below, err);
    if (rc == 0)
        rc = name_member(below, by_dir, &member, err);
    if (rc == 0)
        *added = append(p, path, member);
    return rc;
}

int shard_plan_add_plain(struct shard_plan *p, const char *path, const char *member,
                         struct shard_file **added, struct error *err)
{
    int rc = check_text(member, err);
    if (rc == 0)
        *added = append(p, path, xstrdup(member));
    return rc;
}

/* --- order and shards ------------------------------------------------------------------------- */

static int compare_keys(const struct shard_file *a, const struct shard_file *b)
{
    size_t len = a->key_len < b->key_len ? a->key_len : b->key_len;
    int order = memcmp(a->member, b->member, len);
    return order != 0 ? order : (a->key_len > b->key_len) - (a->key_len < b->key_len);
}

static int compare(const void *left, const void *right)
{
    const struct shard_file *a = left, *b = right;
    int order = compare_keys(a, b);
    return order != 0 ? order : strcmp(a->member, b->member);
}

/* Bytes that the file takes in a tar. */
static uint64_t tar_size(const struct shard_file *f, struct buf *headers)
{
    const struct tar_made m = {.path = f->member,
                               .path_len = strlen(f->member),
                               .type = '0',
                               .size = f->size,
                               .mtime = f->mtime};
    buf_clear(headers);
    tar_make_headers(headers, &m);
    return headers->len + tar_padded(f->size);
}

static void end_shard(struct shard_plan *p, size_t end)
{
    p->ends = xrealloc(p->ends, (p->shards + 1) * sizeof *p->ends);
    p->ends[p->shards++] = end;
}

void shard_plan_cut(struct shard_plan *p, uint64_t shard_size)
{
    _cleanup_(buf_done)
    struct buf headers = BUF_INIT;
    uint64_t size = 0;
    if (p->count == 0)
        return;
    qsort(p->files, p->count, sizeof *p->files, compare);
    for (size_t i = 0; i < p->count; i++) {
        bool record_begins = i > 0 && compare_keys(&p->files[i - 1], &p->files[i]) != 0;
        if (record_begins && size >= shard_size) {
            end_shard(p, i);
            size = 0;
        }
        size += tar_size(&p->files[i], &headers);
    }
    end_shard(p, p->count);
}

void shard_plan_done(struct shard_plan *p)
{
    for (size_t i = 0; i < p->count; i++) {
        free(p->files[i].path);
        free(p->files[i].member);
    }
    free(p->files);
    free(p->ends);
    *p = (struct shard_plan){0};
}
