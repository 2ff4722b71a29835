/* Entries are sorted by path.  One walk over them makes nodes in path order, directories that no
 * entry names among them: a stack has the directories that are open.  A second walk gives the nodes
 * their numbers, level by level: siblings stay neighbours, since they are so in path order. */
#include "vdisc/iso_tree.h"

#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/buf.h"
#include "common/mem.h"
#include "vdisc/iso_date.h"
#include "vdisc/iso_path.h"
#include "vdisc/text_order.h"

#define ENTRIES_MAX_DEFAULT 50000000u
#define MODE_FILE 0444u
#define MODE_DIRECTORY 0555u
#define MODE_LINK 0777u
#define FIRST_BLOCK 4096

/* An entry with its clean path. */
struct clean {
    const char *path;
    const struct iso_entry *entry;
};

/* While nodes are in path order; `parent` of a node is a number of this order. */
struct growing {
    struct iso_node *nodes;
    uint32_t *depth;
    size_t count, room;
    uint32_t *open; /* numbers of the directories above the last node; [0] is the root */
    size_t open_count, open_room;
    size_t max;
    struct arena *texts;
};

static const char *path_of(const void *context, uint32_t i)
{
    const struct clean *all = context;
    return all[i].path;
}

static int compare(const void *context, uint32_t a, uint32_t b)
{
    return iso_path_compare(path_of(context, a), path_of(context, b));
}

static int check_entry(const struct iso_entry *e, struct error *err)
{
    if (e->mtime_s != ISO_NO_TIME && !iso_date_fits(e->mtime_s))
        return error_set(err, E_INVALID,
                         "path '%.200s': an image has times from 1900 to 2155 alone", e->path);
    if (e->kind != ISO_LINK)
        return 0;
    size_t len = strlen(e->target);
    if (len == 0 || len > ISO_LINK_MAX)
        return error_set(err, E_IMAGE_NAME,
                         "path '%.200s': the target of a link has 1 to %d bytes, not %zu", e->path,
                         ISO_LINK_MAX, len);
    return 0;
}

static int of_line(const struct iso_entry *e, int rc, struct error *err)
{
    return rc == 0 || e->line == 0 ? rc : error_wrap(err, "line %llu", (unsigned long long)e->line);
}

static int clean_entries(const struct iso_entry *entries, size_t count,
                         const struct iso_tree_options *o, struct arena *texts, struct clean *clean,
                         struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        int rc = check_entry(&entries[i], err);
        if (rc == 0)
            rc = iso_path_clean(entries[i].path, o->names, texts, &clean[i].path, err);
        if (rc != 0)
            return of_line(&entries[i], rc, err);
        clean[i].entry = &entries[i];
    }
    return 0;
}

static int64_t date_of(const struct iso_entry *entries, size_t count,
                       const struct iso_tree_options *o)
{
    int64_t newest = ISO_NO_TIME;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].mtime_s > newest)
            newest = entries[i].mtime_s;
    }
    if (o->date_s != ISO_NO_TIME)
        return o->date_s;
    return newest != ISO_NO_TIME ? newest : 0;
}

static int too_many(const struct growing *g, struct error *err)
{
    return error_set(
        err, E_IMAGE_TOO_LARGE,
        "an image of more than %zu entries (vdisc_entries_max), directories included: make "
        "several images",
        g->max);
}

/* A node of the name, below the innermost open directory. */
static struct iso_node *add_node(struct growing *g, const char *name, size_t len)
{
    if (g->count == g->room) {
        g->room = g->room == 0 ? 64 : g->room * 2;
        g->nodes = xrealloc(g->nodes, g->room * sizeof *g->nodes);
        g->depth = xrealloc(g->depth, g->room * sizeof *g->depth);
    }
    g->depth[g->count] = (uint32_t)g->open_count;
    struct iso_node *n = &g->nodes[g->count++];
    *n = (struct iso_node){.name = arena_strndup(g->texts, name, len)};
    n->parent = g->open_count > 0 ? g->open[g->open_count - 1] : 0;
    return n;
}

static void add_directory(struct growing *g, const char *name, size_t len, int64_t date_s)
{
    struct iso_node *n = add_node(g, name, len);
    n->kind = ISO_DIRECTORY;
    n->mode = MODE_DIRECTORY;
    n->mtime_s = date_s;
    if (g->open_count == g->open_room) {
        g->open_room = g->open_room == 0 ? 16 : g->open_room * 2;
        g->open = xrealloc(g->open, g->open_room * sizeof *g->open);
    }
    g->open[g->open_count++] = (uint32_t)(g->count - 1);
}

static bool has_name(const struct iso_node *n, const char *name, size_t len)
{
    return strncmp(n->name, name, len) == 0 && n->name[len] == '\0';
}

/* Leaves open the directories that `path` is below, and adds those that are missing. *leaf: the
 * last part. */
static int open_parents(struct growing *g, const char *path, int64_t date_s, const char **leaf,
                        struct error *err)
{
    size_t depth = 1;
    const char *part = path;
    for (const char *slash; (slash = strchr(part, '/')) != NULL; part = slash + 1, depth++) {
        size_t len = (size_t)(slash - part);
        if (depth < g->open_count && has_name(&g->nodes[g->open[depth]], part, len))
            continue;
        g->open_count = depth;
        const struct iso_node *last = &g->nodes[g->count - 1];
        if (last->kind != ISO_DIRECTORY && last->parent == g->open[depth - 1] &&
            has_name(last, part, len))
            return error_set(err, E_IMAGE_NAME,
                             "path '%.200s': its directory '%.*s' is the path of a file, too", path,
                             (int)(slash - path), path);
        if (g->count >= g->max)
            return too_many(g, err);
        add_directory(g, part, len, date_s);
    }
    g->open_count = depth;
    *leaf = part;
    return 0;
}

static void set_attributes(struct iso_node *n, const struct iso_entry *e, int64_t date_s)
{
    const uint32_t modes[] = {MODE_FILE, MODE_DIRECTORY, MODE_LINK};
    n->kind = e->kind;
    n->mtime_s = e->mtime_s != ISO_NO_TIME ? e->mtime_s : date_s;
    n->mode = e->kind == ISO_LINK || e->mode == ISO_NO_MODE ? modes[e->kind] : e->mode & 07777;
    n->uid = e->uid;
    n->gid = e->gid;
    n->size = e->kind == ISO_FILE ? e->size : 0;
    n->content = e->content;
}

static int add_entry(struct growing *g, const struct clean *s, int64_t date_s, struct error *err)
{
    const struct iso_entry *e = s->entry;
    if (s->path[0] == '\0' && e->kind != ISO_DIRECTORY)
        return error_set(err, E_IMAGE_NAME, "path '%.200s' is the root: it must be a directory",
                         e->path);
    if (s->path[0] == '\0') {
        set_attributes(&g->nodes[0], e, date_s);
        return 0;
    }
    const char *leaf = NULL;
    int rc = open_parents(g, s->path, date_s, &leaf, err);
    if (rc != 0)
        return rc;
    if (g->count >= g->max)
        return too_many(g, err);
    if (e->kind == ISO_DIRECTORY)
        add_directory(g, leaf, strlen(leaf), date_s);
    else
        add_node(g, leaf, strlen(leaf));
    struct iso_node *n = &g->nodes[g->count - 1];
    set_attributes(n, e, date_s);
    if (e->kind == ISO_LINK)
        n->target = arena_strdup(g->texts, e->target);
    return 0;
}

static int twice(const struct clean *first, const struct clean *again, struct error *err)
{
    char where[48] = "";
    if (first->entry->line > 0)
        snprintf(where, sizeof where, ", first in line %llu",
                 (unsigned long long)first->entry->line);
    error_set(err, E_IMAGE_NAME, "path '%.200s' is there twice%s: remove one of them", again->path,
              where);
    return of_line(again->entry, E_IMAGE_NAME, err);
}

static int grow(struct growing *g, const struct clean *all, size_t count, int64_t date_s,
                struct error *err)
{
    const struct text_order by_path = {
        .text = path_of, .rank = iso_path_rank, .compare = compare, .context = all};
    _cleanup_free_ uint32_t *order = text_order_make(&by_path, (uint32_t)count);
    int rc = 0;
    add_directory(g, "", 0, date_s);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const struct clean *c = &all[order[i]];
        const struct clean *last = i > 0 ? &all[order[i - 1]] : NULL;
        if (last != NULL && strcmp(c->path, last->path) == 0)
            rc = twice(last, c, err);
        else
            rc = of_line(c->entry, add_entry(g, c, date_s, err), err);
    }
    return rc;
}

/* place[i]: the number of the i-th node of path order. */
static uint32_t *number_nodes(const struct growing *g)
{
    uint32_t deepest = 0;
    for (size_t i = 0; i < g->count; i++)
        deepest = g->depth[i] > deepest ? g->depth[i] : deepest;
    uint32_t *next = xcalloc((size_t)deepest + 2, sizeof *next); /* of each level */
    uint32_t *place = xcalloc(g->count, sizeof *place);
    for (size_t i = 0; i < g->count; i++)
        next[g->depth[i] + 1]++;
    for (uint32_t d = 1; d <= deepest; d++)
        next[d] += next[d - 1];
    for (size_t i = 0; i < g->count; i++)
        place[i] = next[g->depth[i]]++;
    free(next);
    return place;
}

static void note_child(struct iso_tree *t, uint32_t number)
{
    struct iso_node *parent = &t->nodes[t->nodes[number].parent];
    if (parent->count++ == 0)
        parent->first = number;
    parent->directories += t->nodes[number].kind == ISO_DIRECTORY;
}

static void number_tree(struct iso_tree *t, const struct growing *g)
{
    _cleanup_free_ uint32_t *place = number_nodes(g);
    t->count = (uint32_t)g->count;
    t->nodes = xcalloc(g->count, sizeof *t->nodes);
    t->files = xcalloc(g->count, sizeof *t->files);
    for (uint32_t i = 0; i < t->count; i++) {
        t->nodes[place[i]] = g->nodes[i];
        t->nodes[place[i]].parent = place[g->nodes[i].parent];
        if (g->nodes[i].kind == ISO_FILE)
            t->files[t->file_count++] = place[i];
    }
    for (uint32_t i = 1; i < t->count; i++)
        note_child(t, i);
}

int iso_tree_new(const struct iso_entry *entries, size_t count,
                 const struct iso_tree_options *options, struct iso_tree **tree, struct error *err)
{
    uint64_t max = options->entries_max != 0 ? options->entries_max : ENTRIES_MAX_DEFAULT;
    _cleanup_(iso_tree_freep)
    struct iso_tree *t = xcalloc(1, sizeof *t);
    t->texts = arena_new(FIRST_BLOCK);
    _cleanup_arena_ struct arena *paths = arena_new(FIRST_BLOCK);
    struct growing g = {.texts = t->texts, .max = max < UINT32_MAX ? (size_t)max : UINT32_MAX};
    if (count >= g.max)
        return too_many(&g, err);
    t->date_s = date_of(entries, count, options);
    if (!iso_date_fits(t->date_s))
        return error_set(err, E_INVALID, "the image's date: an image has times from 1900 to 2155");
    struct clean *clean = xcalloc(count + 1, sizeof *clean);
    int rc = clean_entries(entries, count, options, paths, clean, err);
    if (rc == 0)
        rc = grow(&g, clean, count, t->date_s, err);
    free(clean);
    if (rc == 0)
        number_tree(t, &g);
    free(g.nodes);
    free(g.depth);
    free(g.open);
    if (rc == 0)
        *tree = steal(t);
    return rc;
}

void iso_tree_free(struct iso_tree *t)
{
    if (t == NULL)
        return;
    arena_free(t->texts);
    free(t->nodes);
    free(t->files);
    free(t);
}

static void put_path(const struct iso_tree *t, uint32_t node, struct buf *out)
{
    if (node == 0)
        return;
    put_path(t, t->nodes[node].parent, out);
    buf_putc(out, '/');
    buf_puts(out, t->nodes[node].name);
}

char *iso_tree_path(const struct iso_tree *t, uint32_t node)
{
    struct buf path = BUF_INIT;
    put_path(t, node, &path);
    if (node == 0)
        buf_putc(&path, '/');
    return buf_steal(&path);
}
