#include "vdisc/iso_view.h"

#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "vdisc/iso_names.h"

#define JOLIET_CHARACTERS 64 /* UCS-2, two bytes each */
#define JOLIET_REFUSED "*/:;?\\"
#define FIRST_BLOCK 4096
#define PATH_RECORD_FIXED 8 /* ECMA-119 9.4, before the identifier */

static int check_joliet(const struct iso_tree *t, uint32_t node, struct error *err)
{
    const char *name = t->nodes[node].name;
    size_t characters = 0;
    const char *flaw = NULL;
    for (const char *at = name; *at != '\0' && flaw == NULL; characters++) {
        size_t len = utf8_sequence(at, strlen(at));
        uint32_t c = utf8_character(at, len);
        if (c < ' ' || (c < 0x80 && strchr(JOLIET_REFUSED, (int)c) != NULL))
            flaw = "one of * : ; ? \\ or a control character";
        else if (c > 0xffff)
            flaw = "a character beyond U+FFFF";
        at += len;
    }
    if (flaw == NULL && characters <= JOLIET_CHARACTERS)
        return 0;
    _cleanup_free_ char *path = iso_tree_path(t, node);
    return error_set(err, E_IMAGE_NAME, "path '%.200s': Joliet cannot hold a name with %s%s", path,
                     flaw != NULL ? flaw : "more than 64 characters",
                     ": rename it, or make the image without Joliet");
}

static int compare_idents(const void *a, const void *b, void *context)
{
    const char *const *ident = context;
    return strcmp(ident[*(const uint32_t *)a], ident[*(const uint32_t *)b]);
}

/* The records of a directory ascend by identifier (9.3).  Joliet's ascend by UCS-2, which is the
 * order of the names already. */
static void order_records(struct iso_view *v, const struct iso_tree *t, uint32_t directory)
{
    const struct iso_node *d = &t->nodes[directory];
    for (uint32_t i = 0; i < d->count; i++)
        v->order[d->first + i] = d->first + i;
    if (v->joliet || d->count == 0)
        return;
    iso_names_assign(t, directory, v->texts, v->ident);
    qsort_r(v->order + d->first, d->count, sizeof *v->order, compare_idents, v->ident);
}

static void add_place(struct iso_view *v, const struct iso_tree *t, uint32_t node, uint32_t parent)
{
    uint8_t ident[ISO_VIEW_IDENTIFIER_MAX + 8];
    size_t len = iso_view_identifier(v, t, node, ident);
    v->places[v->count] = (struct iso_place){.node = node, .parent = parent};
    v->place_of[node] = v->count++;
    v->path_bytes += PATH_RECORD_FIXED + len + len % 2;
}

static int check_names(const struct iso_view *v, const struct iso_tree *t, struct error *err)
{
    int rc = 0;
    for (uint32_t i = 1; v->joliet && rc == 0 && i < t->count; i++) {
        if (iso_view_shows(v, &t->nodes[i]))
            rc = check_joliet(t, i, err);
    }
    return rc;
}

int iso_view_init(struct iso_view *v, const struct iso_tree *t, bool joliet, struct error *err)
{
    uint32_t directories = 1;
    for (uint32_t i = 0; i < t->count; i++)
        directories += t->nodes[i].directories;
    *v = (struct iso_view){.joliet = joliet, .texts = arena_new(FIRST_BLOCK)};
    v->order = xcalloc(t->count, sizeof *v->order);
    v->place_of = xcalloc(t->count, sizeof *v->place_of);
    v->places = xcalloc(directories, sizeof *v->places);
    v->ident = joliet ? NULL : xcalloc(t->count, sizeof *v->ident);
    int rc = check_names(v, t, err);
    if (rc != 0)
        return rc;
    add_place(v, t, 0, 0);
    for (uint32_t i = 0; i < v->count; i++) {
        const struct iso_node *d = &t->nodes[v->places[i].node];
        order_records(v, t, v->places[i].node);
        for (uint32_t k = 0; k < d->count; k++) {
            uint32_t child = v->order[d->first + k];
            if (t->nodes[child].kind == ISO_DIRECTORY)
                add_place(v, t, child, i);
        }
    }
    return 0;
}

void iso_view_done(struct iso_view *v)
{
    free(v->order);
    free(v->ident);
    free(v->places);
    free(v->place_of);
    arena_free(v->texts);
    *v = (struct iso_view){0};
}

static size_t put_ucs2(uint8_t *to, const char *name, bool file)
{
    size_t used = 0;
    for (const char *at = name; *at != '\0'; used += 2) {
        size_t len = utf8_sequence(at, strlen(at));
        iso_put16_big(to + used, (uint16_t)utf8_character(at, len));
        at += len;
    }
    for (const char *at = file ? ";1" : ""; *at != '\0'; at++, used += 2)
        iso_put16_big(to + used, (uint8_t)*at);
    return used;
}

size_t iso_view_identifier(const struct iso_view *v, const struct iso_tree *t, uint32_t node,
                           uint8_t to[static ISO_VIEW_IDENTIFIER_MAX + 8])
{
    const struct iso_node *n = &t->nodes[node];
    bool file = n->kind != ISO_DIRECTORY;
    if (node == 0) {
        to[0] = 0;
        return 1;
    }
    if (v->joliet)
        return put_ucs2(to, n->name, file);
    const size_t len = strlen(v->ident[node]);
    memcpy(to, v->ident[node], len);
    memcpy(to + len, ";1", file ? 2 : 0);
    return len + (file ? 2 : 0);
}

bool iso_view_shows(const struct iso_view *v, const struct iso_node *n)
{
    return !v->joliet || n->kind != ISO_LINK;
}
