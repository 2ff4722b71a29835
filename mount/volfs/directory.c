/* Directories of a volume: a page of names at a time.  Offsets count entries; 0 and 1 are "." and
 * "..".  A page begins behind the last name of the one before, so names that come and go meanwhile
 * move no other.
 *
 * The kernel drops the end of a reply that its caller has no room for, and goes back to it with the
 * next call.  So a reply ends with its page: the page stays until a call begins behind it, and what
 * was dropped is in it.
 *
 * So a page may be of any age, and its reader may go back in it.  Each entry says how old its
 * attributes are, and has none if this client has changed them since. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "mount/volfs/volfs_parts.h"

enum { PAGE = 500, DOTS = 2 };

/* The entry with this number is the first one behind the name. */
struct place {
    uint64_t number; /* of the ledger; 0: none */
    uint64_t index;
    char name[META_NAME_MAX + 1];
};

struct volfs_directory {
    struct handle handle; /* first */
    struct volfs *v;
    uint64_t ino, parent;
    struct arena *arena; /* of the page */
    struct volume_name *names;
    size_t count;
    uint64_t first;            /* which entry the page begins with */
    uint64_t read_ms, changes; /* when it was read; volume_changes() of then */
    bool more;
    char last[META_NAME_MAX + 1];  /* name of the page */
    char after[META_NAME_MAX + 1]; /* the page begins behind it */
    bool restored;                 /* no page was read yet */
    struct place places[2];        /* the newest first */
};

static void directory_close(struct handle *h)
{
    struct volfs_directory *d = (struct volfs_directory *)h;
    arena_free(d->arena);
    free(d);
}

static struct volfs_directory *directory_new(struct volfs *v, uint64_t ino, uint64_t parent)
{
    struct volfs_directory *d = xcalloc(1, sizeof *d);
    d->v = v;
    d->ino = ino;
    d->parent = parent;
    d->arena = arena_new(65536);
    d->more = true;
    return d;
}

int volfs_opendir(struct volfs *v, uint64_t ino, struct volfs_directory **directory)
{
    struct attr a;
    int rc = volume_getattr(v->volume, ino, &a);
    if (rc != 0)
        return rc;
    struct volfs_directory *d = directory_new(v, ino, a.parent);
    const struct ledger_record r = {.kind = LEDGER_DIRECTORY, .node = ino, .size = a.parent};
    rc = handles_add(&v->handles, &d->handle, &r, directory_close);
    if (rc != 0)
        directory_close(&d->handle);
    else
        *directory = d;
    return rc;
}

void volfs_restore_directory(struct volfs *v, uint64_t number, const struct ledger_record *r)
{
    struct volfs_directory *d = directory_new(v, r->node, r->size);
    d->restored = true;
    handles_restore(&v->handles, &d->handle, number, r->inode, directory_close);
}

uint64_t volfs_directory_id(const struct volfs_directory *d)
{
    return d->handle.id;
}

struct volfs_directory *volfs_directory_of(struct volfs *v, uint64_t id)
{
    return (struct volfs_directory *)handles_of(&v->handles, id);
}

static int next_page(struct volfs_directory *d)
{
    arena_reset(d->arena);
    memcpy(d->after, d->last, sizeof d->after);
    d->first += d->count;
    d->count = 0;
    d->read_ms = clock_ms();
    d->changes = volume_changes(d->v->volume);
    int rc = volume_readdir(d->v->volume, d->ino, d->last, PAGE, d->arena, &d->names, &d->count,
                            &d->more);
    if (rc == 0 && d->count > 0)
        snprintf(d->last, sizeof d->last, "%s", d->names[d->count - 1].name);
    return rc;
}

/* ---- places: where a reader goes on after a crash ----
 *
 * A call that comes again begins where the last reply ended, or where the one before it did.  That
 * is found by name, not by number: names may have come and gone. */

static void drop_place(struct volfs_directory *d, struct place *p)
{
    if (p->number != 0)
        ledger_remove(d->v->ledger, p->number);
    *p = (struct place){.number = 0};
}

static void drop_places(struct volfs_directory *d)
{
    drop_place(d, &d->places[0]);
    drop_place(d, &d->places[1]);
}

static void add_place(struct volfs_directory *d, uint64_t number, uint64_t index, const char *name)
{
    drop_place(d, &d->places[1]);
    d->places[1] = d->places[0];
    d->places[0] = (struct place){.number = number, .index = index};
    snprintf(d->places[0].name, sizeof d->places[0].name, "%s", name);
}

/* The reply ends before the entry with this number.  One behind all names is no place. */
static void note_place(struct volfs_directory *d, uint64_t index)
{
    if (index == 0 || index == d->places[0].index || index > d->first + d->count)
        return;
    const struct ledger_record r = {
        .kind = LEDGER_PLACE,
        .node = handles_number(&d->handle),
        .uses = index,
        .texts = {index > d->first ? d->names[index - 1 - d->first].name : d->after},
    };
    uint64_t number = ledger_add(d->v->ledger, &r);
    if (number != 0)
        add_place(d, number, index, r.texts[0]);
}

/* At most two of a handle; of those that a kill has left, the greatest. */
void volfs_restore_place(struct volfs *v, uint64_t number, const struct ledger_record *r)
{
    struct handle *h = r->node < v->handles.room ? v->handles.by_number[r->node] : NULL;
    struct volfs_directory *d =
        h != NULL && h->close == directory_close ? (struct volfs_directory *)h : NULL;
    if (d == NULL) {
        ledger_remove(v->ledger, number);
    } else if (r->uses >= d->places[0].index) {
        add_place(d, number, r->uses, r->texts[0]);
    } else {
        drop_place(d, &d->places[1]);
        d->places[1] = (struct place){.number = number, .index = r->uses};
        snprintf(d->places[1].name, sizeof d->places[1].name, "%s", r->texts[0]);
    }
}

/* The next page begins at the last place before the entry, or at the beginning. */
static void go_to(struct volfs_directory *d, uint64_t index)
{
    static const struct place beginning;
    const struct place *from = &beginning;
    for (size_t i = 0; i < 2; i++) {
        if (d->places[i].number != 0 && d->places[i].index <= index &&
            d->places[i].index >= from->index)
            from = &d->places[i];
    }
    d->first = from->index;
    d->count = 0;
    d->more = true;
    d->restored = false;
    memcpy(d->last, from->name, sizeof d->last);
}

void volfs_closedir(struct volfs_directory *d)
{
    drop_places(d);
    handles_remove(&d->v->handles, &d->handle);
    directory_close(&d->handle);
}

/* ---- reading ---- */

/* The page that has the entry, if there is one. */
static int find(struct volfs_directory *d, uint64_t index)
{
    if (index == 0)
        drop_places(d);
    if (index == 0 || index < d->first || d->restored)
        go_to(d, index);
    while (index >= d->first + d->count && d->more) {
        int rc = next_page(d);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static struct volfs_entry dot(const struct volfs_directory *d, uint64_t offset)
{
    return (struct volfs_entry){
        .name = offset == 0 ? "." : "..",
        .next = offset + 1,
        .st = {.st_ino = offset == 0 ? d->ino : d->parent, .st_mode = S_IFDIR},
    };
}

static struct volfs_entry entry_of(const struct volfs_directory *d, uint64_t offset,
                                   const struct volume_name *n)
{
    struct volfs_entry e = {
        .name = n->name,
        .next = offset + 1,
        .st = {.st_ino = n->ino, .st_mode = n->type},
        .age_ms = clock_ms() - d->read_ms,
    };
    const struct volume_inode inode = {n->ino, n->attr};
    if (!n->known)
        return e;
    volfs_stat(d->v, &inode, &e.st);
    /* Asked last: what is pending above may be committed at any moment. */
    e.known = !volume_is_changed(d->v->volume, n->ino, d->changes);
    return e;
}

int volfs_readdir(struct volfs_directory *d, uint64_t offset,
                  bool (*fill)(void *context, const struct volfs_entry *e), void *context)
{
    bool has_room = true;
    for (; has_room && offset < DOTS; offset += has_room) {
        const struct volfs_entry e = dot(d, offset);
        has_room = fill(context, &e);
    }
    if (!has_room)
        return 0;
    uint64_t index = offset - DOTS;
    int rc = find(d, index);
    for (; rc == 0 && has_room && index < d->first + d->count; index += has_room) {
        const struct volfs_entry e = entry_of(d, index + DOTS, &d->names[index - d->first]);
        has_room = fill(context, &e);
    }
    if (rc == 0)
        note_place(d, index);
    return rc;
}
