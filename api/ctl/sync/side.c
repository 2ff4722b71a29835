#include "api/ctl/sync/side.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/ctl/files/walk.h"
#include "common/mem.h"

struct side {
    const struct side_problems *problems;
    struct sync_entry *files; /* their names are owned */
    size_t count, room, at;
    struct dfc_list *list; /* NULL: of files */
    size_t prefix_len;
    struct sync_entry entry; /* of the list */
};

/* ---- files ---- */

static bool add_file(void *context, const char *path, const char *below, uint64_t size)
{
    struct side *s = context;
    struct stat own, st;
    if (sync_is_unfinished(below))
        return true;
    if (lstat(path, &own) != 0 || stat(path, &st) != 0) {
        struct error e;
        error_errno(&e, errno, "cannot be read");
        s->problems->problem(s->problems->context, path, &e);
        return true;
    }
    if (s->count == s->room) {
        s->room = s->room * 2 + 256;
        s->files = xrealloc(s->files, s->room * sizeof *s->files);
    }
    s->files[s->count++] = (struct sync_entry){
        .name = xstrdup(below),
        .size = size,
        .modified_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000,
        .checksum_type = "",
        .checksum = "",
        .local = true,
        .link = S_ISLNK(own.st_mode),
    };
    return true;
}

static void add_problem(void *context, const char *path, const struct error *err)
{
    struct side *s = context;
    s->problems->problem(s->problems->context, path, err);
}

static int by_name(const void *a, const void *b)
{
    const struct sync_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

struct side *side_of_files(const char *directory, const struct side_problems *p)
{
    struct stat st;
    struct side *s = xcalloc(1, sizeof *s);
    const struct walk_visitor visitor = {add_file, add_problem, s};
    s->problems = p;
    if (stat(directory, &st) != 0 && errno == ENOENT)
        return s;
    walk_directory(directory, &visitor);
    if (s->count > 0)
        qsort(s->files, s->count, sizeof *s->files, by_name);
    return s;
}

/* ---- objects ---- */

int side_of_objects(struct dfc_client *client, const struct object_name *prefix, struct side **out,
                    struct dfc_error *err)
{
    /* Also contents of images and of plogs: else a copy lacks them, or --delete removes them. */
    const struct dfc_list_options options = {.prefix = prefix->key, .internal = true};
    struct side *s = xcalloc(1, sizeof *s);
    s->prefix_len = strlen(prefix->key);
    int rc = dfc_list_open(client, prefix->bucket, &options, &s->list, err);
    if (rc == DFC_OK)
        *out = s;
    else
        free(s);
    return rc;
}

static int next_object(struct side *s, const struct sync_entry **entry, struct dfc_error *err)
{
    const struct dfc_entry *e;
    int rc = dfc_list_next(s->list, &e, err);
    if (rc <= 0)
        return rc;
    s->entry = (struct sync_entry){
        .name = e->name + s->prefix_len,
        .size = e->size,
        .modified_ms = e->modified_ms,
        .checksum_type = e->checksum_type != NULL ? e->checksum_type : "",
        .checksum = e->checksum != NULL ? e->checksum : "",
    };
    *entry = &s->entry;
    return 1;
}

/* ---- both ---- */

int side_next(struct side *s, const struct sync_entry **entry, struct dfc_error *err)
{
    if (s->list != NULL)
        return next_object(s, entry, err);
    if (s->at == s->count)
        return 0;
    *entry = &s->files[s->at++];
    return 1;
}

void side_free(struct side *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->count; i++)
        free((char *)s->files[i].name);
    free(s->files);
    dfc_list_close(s->list);
    free(s);
}
