#include "vdisc/iso_names.h"

#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/mem.h"

#define CHARACTERS 30   /* of name and extension together (ECMA-119 7.5.1) */
#define EXTENSION_MAX 8 /* so that most of them is the name */
/* Of a long name, so that the record has more room for the name itself (iso_susp.h). */
#define LONG_NAME 106 /* bytes */
#define CHARACTERS_OF_LONG 8
#define EXTENSION_OF_LONG 3

/* An entry's name as it would be alone in its directory. */
struct wanted {
    char stem[CHARACTERS + 1];
    char extension[EXTENSION_MAX + 1];
    uint32_t node;
    uint8_t characters; /* of both at most */
    bool directory;
};

static char d_character(char c)
{
    if (c >= 'a' && c <= 'z')
        return (char)(c - 'a' + 'A');
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
}

static void put_characters(char *to, size_t max, const char *name, size_t len)
{
    size_t n = len < max ? len : max;
    for (size_t i = 0; i < n; i++)
        to[i] = d_character(name[i]);
    to[n] = '\0';
}

static void want(const struct iso_tree *t, uint32_t node, struct wanted *w)
{
    const char *name = t->nodes[node].name;
    bool is_long = strlen(name) > LONG_NAME;
    *w = (struct wanted){.node = node, .directory = t->nodes[node].kind == ISO_DIRECTORY};
    w->characters = is_long ? CHARACTERS_OF_LONG : CHARACTERS;
    const char *dot = w->directory ? NULL : strrchr(name, '.');
    if (dot == name)
        dot = NULL; /* ".profile" has no extension */
    if (dot != NULL)
        put_characters(w->extension, is_long ? EXTENSION_OF_LONG : EXTENSION_MAX, dot + 1,
                       strlen(dot + 1));
    put_characters(w->stem, w->characters - strlen(w->extension), name,
                   dot != NULL ? (size_t)(dot - name) : strlen(name));
}

/* Files and directories share one set: some readers do not show the dot. */
static int compare_texts(const struct wanted *a, const struct wanted *b)
{
    int order = strcmp(a->stem, b->stem);
    return order != 0 ? order : strcmp(a->extension, b->extension);
}

static int compare(const void *a, const void *b)
{
    const struct wanted *wa = a, *wb = b;
    int order = compare_texts(wa, wb);
    return order != 0 ? order : (wa->node > wb->node) - (wa->node < wb->node);
}

static int compare_key(const void *a, const void *b)
{
    return compare_texts(a, b);
}

static size_t put_base36(char out[static 8], uint32_t n)
{
    char reversed[8];
    size_t len = 0;
    do {
        reversed[len++] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[n % 36];
        n /= 36;
    } while (n > 0);
    for (size_t i = 0; i < len; i++)
        out[i] = reversed[len - 1 - i];
    out[len] = '\0';
    return len;
}

/* The stem gets a counter that no other of the directory has; so two such stems differ, and what
 * is behind the last '_' tells them from one another. */
static void make_unique(struct wanted *w, const struct wanted *all, size_t count, uint32_t *counter)
{
    char digits[8];
    const struct wanted was = *w;
    do {
        size_t taken = strlen(was.extension) + 1 + put_base36(digits, ++*counter);
        int room = taken < was.characters ? (int)(was.characters - taken) : 0;
        snprintf(w->stem, sizeof w->stem, "%.*s_%s", room, was.stem, digits);
    } while (bsearch(w, all, count, sizeof *all, compare_key) != NULL);
}

static const char *text_of(const struct wanted *w, struct arena *a)
{
    const size_t stem = strlen(w->stem), extension = strlen(w->extension);
    if (w->directory)
        return arena_strdup(a, w->stem);
    char *text = arena_bytes(a, stem + extension + 2);
    memcpy(text, w->stem, stem);
    text[stem] = '.';
    memcpy(text + stem + 1, w->extension, extension + 1);
    return text;
}

void iso_names_assign(const struct iso_tree *t, uint32_t directory, struct arena *a,
                      const char **ident)
{
    const struct iso_node *d = &t->nodes[directory];
    struct wanted *all = xcalloc((size_t)d->count + 1, sizeof *all);
    uint32_t counter = 0;
    for (uint32_t i = 0; i < d->count; i++)
        want(t, d->first + i, &all[i]);
    if (d->count > 0)
        qsort(all, d->count, sizeof *all, compare);
    for (uint32_t i = 0; i < d->count; i++) {
        struct wanted w = all[i];
        if (i > 0 && compare_texts(&all[i], &all[i - 1]) == 0)
            make_unique(&w, all, d->count, &counter);
        ident[w.node] = text_of(&w, a);
    }
    free(all);
}
