#include "mount/vfs/ledger.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/mem.h"

/* Numbers: LEDGER_FIRST + 2 * index + class. */
#define CLASSES 2

static const struct {
    uint64_t slot_bytes, slots;
} classes[CLASSES] = {{256, 1u << 26}, {4096, 1u << 22}};

#define HEAD_BYTES 4096u

struct slot {
    _Atomic uint32_t kind;
    uint16_t lens[LEDGER_TEXTS];
    uint16_t is_directory;
    uint64_t node;
    _Atomic uint64_t uses;
    uint64_t inode;
    uint64_t size;
    int64_t modified_s;
    char text[]; /* the texts, each with its NUL */
};

/* Slots from here on were never used. */
struct head {
    _Atomic uint64_t used[CLASSES];
    _Atomic uint64_t stamps;
};

struct ledger {
    int fd; /* -1: the caller's */
    char *memory;
    struct head *head;
    pthread_mutex_t lock; /* guards all below */
    uint64_t *free[CLASSES];
    uint64_t free_count[CLASSES], free_room[CLASSES];
};

static uint64_t class_begins(unsigned class)
{
    return HEAD_BYTES + (class == 0 ? 0 : classes[0].slot_bytes * classes[0].slots);
}

static uint64_t memory_bytes(void)
{
    return class_begins(CLASSES - 1) + classes[CLASSES - 1].slot_bytes * classes[CLASSES - 1].slots;
}

static struct slot *slot_at(const struct ledger *l, unsigned class, uint64_t index)
{
    return (struct slot *)(void *)(l->memory + class_begins(class) +
                                   index * classes[class].slot_bytes);
}

static struct slot *slot_of(const struct ledger *l, uint64_t number)
{
    assert(number >= LEDGER_FIRST);
    return slot_at(l, (unsigned)(number - LEDGER_FIRST) % CLASSES,
                   (number - LEDGER_FIRST) / CLASSES);
}

int ledger_memory(void)
{
    int fd = memfd_create("dfc-mount", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)memory_bytes()) != 0) {
        int errnum = errno;
        close(fd);
        errno = errnum;
        return -1;
    }
    return fd;
}

static void free_push(struct ledger *l, unsigned class, uint64_t index)
{
    if (l->free_count[class] == l->free_room[class]) {
        l->free_room[class] = l->free_room[class] > 0 ? 2 * l->free_room[class] : 64;
        l->free[class] = xrealloc(l->free[class], l->free_room[class] * sizeof *l->free[class]);
    }
    l->free[class][l->free_count[class]++] = index;
}

static void find_free(struct ledger *l)
{
    for (unsigned class = 0; class < CLASSES; class ++) {
        for (uint64_t i = atomic_load(&l->head->used[class]); i > 0; i--) {
            if (atomic_load(&slot_at(l, class, i - 1)->kind) == LEDGER_FREE)
                free_push(l, class, i - 1);
        }
    }
}

struct ledger *ledger_open(int fd)
{
    int own = fd < 0 ? ledger_memory() : -1;
    if (fd < 0 && own < 0)
        return NULL;
    void *memory = mmap(NULL, memory_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                        fd >= 0 ? fd : own, 0);
    if (memory == MAP_FAILED) {
        int errnum = errno;
        if (own >= 0)
            close(own);
        errno = errnum;
        return NULL;
    }
    struct ledger *l = xcalloc(1, sizeof *l);
    l->fd = own;
    l->memory = memory;
    l->head = memory;
    pthread_mutex_init(&l->lock, NULL);
    find_free(l);
    return l;
}

uint64_t ledger_stamp(struct ledger *l)
{
    return atomic_fetch_add(&l->head->stamps, 1) + 1;
}

void ledger_close(struct ledger *l)
{
    if (l == NULL)
        return;
    munmap(l->memory, memory_bytes());
    if (l->fd >= 0)
        close(l->fd);
    for (unsigned class = 0; class < CLASSES; class ++)
        free(l->free[class]);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static void slot_read(const struct slot *s, struct ledger_record *r)
{
    const char *text = s->text;
    *r = (struct ledger_record){
        .kind = atomic_load(&s->kind),
        .is_directory = s->is_directory != 0,
        .node = s->node,
        .uses = atomic_load(&s->uses),
        .inode = s->inode,
        .size = s->size,
        .modified_s = s->modified_s,
    };
    for (unsigned i = 0; i < LEDGER_TEXTS; i++) {
        r->texts[i] = text;
        text += s->lens[i] + 1;
    }
}

void ledger_each(struct ledger *l,
                 void (*visit)(void *context, uint64_t number, const struct ledger_record *r),
                 void *context)
{
    struct ledger_record r;
    for (unsigned class = 0; class < CLASSES; class ++) {
        const uint64_t used = atomic_load(&l->head->used[class]);
        for (uint64_t i = 0; i < used; i++) {
            slot_read(slot_at(l, class, i), &r);
            if (r.kind != LEDGER_FREE)
                visit(context, LEDGER_FIRST + CLASSES * i + class, &r);
        }
    }
}

static size_t text_bytes(const struct ledger_record *r)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < LEDGER_TEXTS; i++)
        bytes += (r->texts[i] != NULL ? strlen(r->texts[i]) : 0) + 1;
    return bytes;
}

static void slot_write(struct slot *s, const struct ledger_record *r)
{
    char *to = s->text;
    s->is_directory = r->is_directory;
    s->node = r->node;
    s->inode = r->inode;
    s->size = r->size;
    s->modified_s = r->modified_s;
    for (unsigned i = 0; i < LEDGER_TEXTS; i++) {
        const char *text = r->texts[i] != NULL ? r->texts[i] : "";
        s->lens[i] = (uint16_t)strlen(text);
        memcpy(to, text, s->lens[i] + 1u);
        to += s->lens[i] + 1;
    }
    atomic_store(&s->uses, r->uses);
    atomic_store(&s->kind, r->kind);
}

/* False: there is none. */
static bool take_index(struct ledger *l, unsigned class, uint64_t *index)
{
    if (l->free_count[class] > 0) {
        *index = l->free[class][--l->free_count[class]];
        return true;
    }
    *index = atomic_load(&l->head->used[class]);
    if (*index == classes[class].slots)
        return false;
    atomic_store(&l->head->used[class], *index + 1);
    return true;
}

uint64_t ledger_add(struct ledger *l, const struct ledger_record *r)
{
    uint64_t index, number = 0;
    const size_t needed = sizeof(struct slot) + text_bytes(r);
    unsigned class = needed <= classes[0].slot_bytes ? 0 : 1;
    if (needed > classes[class].slot_bytes)
        return 0;
    pthread_mutex_lock(&l->lock);
    if (take_index(l, class, &index)) {
        slot_write(slot_at(l, class, index), r);
        number = LEDGER_FIRST + CLASSES * index + class;
    }
    pthread_mutex_unlock(&l->lock);
    return number;
}

void ledger_uses(struct ledger *l, uint64_t number, uint64_t uses)
{
    atomic_store(&slot_of(l, number)->uses, uses);
}

void ledger_remove(struct ledger *l, uint64_t number)
{
    pthread_mutex_lock(&l->lock);
    atomic_store(&slot_of(l, number)->kind, LEDGER_FREE);
    free_push(l, (unsigned)(number - LEDGER_FIRST) % CLASSES, (number - LEDGER_FIRST) / CLASSES);
    pthread_mutex_unlock(&l->lock);
}
