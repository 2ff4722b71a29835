#include "target/index/session.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "hrw/hrw.h"
#include "io/file.h"
#include "target/format/attr.h"
#include "target/index/guard.h"

/* More than the locks under which names are changed (store/internal.h). */
enum { SLOTS = 1280, FILE_MODE = 0640, BOOT_MAX = 48 };
enum { WATCH_BITS = 1 << 17, WORD_BITS = 64 }; /* a thousandth of 100 changes is found changed */
enum { DISTRUST_INDEX = 1, DISTRUST_SLOTS = 2 };

#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000U /* Linux 6.8; before, an id may be used again after umount */
#endif

/* Whose a session is; compared byte by byte. */
struct identity {
    char format[16];
    char boot[BOOT_MAX];
    uint64_t device, file_system, mount, file;
};

/* A slot's name is whole before it is used, and stays so until it is not: the process may end
 * between any two instructions. */
struct slot {
    _Atomic uint32_t used;
    uint64_t bucket_id;
    char name[ATTR_NAME_MAX + 1];
};

struct shared {
    struct identity identity;
    _Atomic uint32_t complete;
    _Atomic uint32_t distrusted;
    struct slot slots[SLOTS];
    _Atomic uint64_t watch; /* its number; 0: none */
    uint64_t changed[WATCH_BITS / WORD_BITS];
};

struct index_session {
    struct shared *shared;
    pthread_mutex_t lock;   /* of the fields below and the slots */
    pthread_cond_t settled; /* something was, and somebody waits */
    unsigned waiting;
    uint64_t changes;
    size_t top; /* behind the last slot in use */
    size_t used;
    uint64_t began[SLOTS]; /* by slot: `changes` when it was taken into use */
};

/* --- whose it is ------------------------------------------------------------------------------ */

static int read_boot(char boot[static BOOT_MAX], struct error *err)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    int code = file_read_all("/proc/sys/kernel/random/boot_id", BOOT_MAX - 1, &text, err);
    if (code == 0)
        snprintf(boot, BOOT_MAX, "%s", buf_str(&text));
    return code;
}

/* An identity that cannot be told is like no other: all zero, which is never equal. */
static int identity_of(int fd, struct identity *id, struct error *err)
{
    struct statx sx;
    struct statfs fs;
    *id = (struct identity){.format = INDEX_FORMAT};
    int code = read_boot(id->boot, err);
    if (code != 0)
        return code;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID | STATX_MNT_ID_UNIQUE, &sx) != 0 ||
        fstatfs(fd, &fs) != 0)
        return error_errno(err, errno, "ask whose file a session is");
    if ((sx.stx_mask & (STATX_MNT_ID | STATX_MNT_ID_UNIQUE)) == 0)
        return error_set(err, E_UNSUPPORTED, "the kernel does not tell mounts apart");
    id->device = (uint64_t)sx.stx_dev_major << 32 | sx.stx_dev_minor;
    memcpy(&id->file_system, &fs.f_fsid, sizeof id->file_system);
    id->mount = sx.stx_mnt_id;
    id->file = sx.stx_ino;
    return 0;
}

/* --- opening ---------------------------------------------------------------------------------- */

static struct shared *map_shared(int fd)
{
    int flags = fd >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS;
    void *at = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, flags, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Writing through memory to blocks that the disk does not have would be a signal: they are there
 * before. */
static int open_file(const char *path, int *fd, struct error *err)
{
    struct stat st;
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    if (*fd < 0 || fstat(*fd, &st) != 0)
        return error_errno(err, errno, "open '%s'", path);
    int errnum = 0;
    if (st.st_size != sizeof(struct shared)) {
        if (ftruncate(*fd, 0) != 0)
            errnum = errno;
        if (errnum == 0)
            errnum = posix_fallocate(*fd, 0, sizeof(struct shared));
    }
    return errnum == 0 ? 0 : error_errno(err, errnum, "make '%s'", path);
}

/* NULL, or why what the session says of the index means nothing. */
static const char *why_broken(const struct shared *old, const struct identity *now)
{
    if (strcmp(old->identity.format, now->format) != 0)
        return "it is new, or of another release";
    if (memcmp(old->identity.boot, now->boot, sizeof now->boot) != 0)
        return "the machine was restarted without closing it";
    if (memcmp(&old->identity, now, sizeof *now) != 0)
        return "its file system was mounted anew without closing it";
    if (old->distrusted)
        return "the last process distrusted it, or died of a fault";
    if (!old->complete)
        return "it was not complete";
    return NULL;
}

static void count_slots(struct index_session *s)
{
    for (size_t i = 0; i < SLOTS; i++) {
        struct slot *slot = &s->shared->slots[i];
        slot->name[ATTR_NAME_MAX] = '\0';
        if (!slot->used)
            continue;
        s->used++;
        s->top = i + 1;
    }
}

static void free_slots(struct index_session *s)
{
    for (size_t i = 0; i < s->top; i++)
        s->shared->slots[i].used = 0;
    s->top = s->used = 0;
}

/* Blocks that are there need no new ones when they are written to through memory: not so where a
 * file system never writes in place (btrfs, ZFS), and a full disk would be a SIGBUS there. */
static int check_file_system(const char *dir, struct error *err)
{
    static const long in_place[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, TMPFS_MAGIC};
    struct statfs fs;
    if (statfs(dir, &fs) != 0)
        return error_errno(err, errno, "ask for the file system of '%s'", dir);
    for (size_t i = 0; i < sizeof in_place / sizeof *in_place; i++) {
        if ((long)fs.f_type == in_place[i])
            return 0;
    }
    return error_set(err, E_UNSUPPORTED, "its file system does not write in place");
}

/* A session that ends with the process: there, on a full disk, and with a kernel that cannot say
 * whose it is. */
static int open_anonymous(struct index_session *s, const char *dir, const struct error *why,
                          const char **broken, struct error *err)
{
    log_warn("a crash will cost a rebuild of the index", lstr("index", dir), lerr(why));
    *broken = "the last process kept no session";
    s->shared = map_shared(-1);
    return s->shared != NULL ? 0 : error_errno(err, errno, "map a session of '%s'", dir);
}

static int open_shared(struct index_session *s, const char *dir, const char **broken,
                       bool *distrusted, struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/session", dir);
    _cleanup_close_ int fd = -1;
    struct identity now;
    struct error why = ERROR_INIT;
    if (check_file_system(dir, &why) != 0 || open_file(path, &fd, &why) != 0 ||
        identity_of(fd, &now, &why) != 0) {
        if (unlink(path) != 0 && errno != ENOENT)
            return error_errno(err, errno, "remove '%s'", path);
        return open_anonymous(s, dir, &why, broken, err);
    }
    s->shared = map_shared(fd);
    if (s->shared == NULL)
        return error_errno(err, errno, "map '%s'", path);
    *broken = why_broken(s->shared, &now);
    /* On another boot, too: a torn file that says so is believed. */
    *distrusted = strcmp(s->shared->identity.format, now.format) == 0 && s->shared->distrusted;
    s->shared->identity = now;
    return 0;
}

int session_open(const char *dir, struct index_session **out, const char **broken, bool *distrusted,
                 struct error *err)
{
    struct index_session *s = xcalloc(1, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    condition_init(&s->settled);
    *distrusted = false;
    int code = open_shared(s, dir, broken, distrusted, err);
    if (code != 0) {
        session_close(s);
        return code;
    }
    count_slots(s);
    if (*broken != NULL) {
        s->shared->watch = 0;
        session_set_complete(s, false);
    }
    s->shared->distrusted = 0;
    index_guard_add(&s->shared->distrusted);
    *out = s;
    return 0;
}

void session_close(struct index_session *s)
{
    if (s == NULL)
        return;
    if (s->shared != NULL) {
        index_guard_remove(&s->shared->distrusted);
        munmap(s->shared, sizeof *s->shared);
    }
    pthread_cond_destroy(&s->settled);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* --- afterwards ------------------------------------------------------------------------------- */

void session_set_complete(struct index_session *s, bool complete)
{
    pthread_mutex_lock(&s->lock);
    if (!complete) {
        s->shared->complete = 0; /* first: without its intents it is not */
        free_slots(s);
    }
    s->shared->complete = complete;
    pthread_mutex_unlock(&s->lock);
}

void session_distrust(struct index_session *s)
{
    session_watch(s, 0);
    s->shared->distrusted |= DISTRUST_INDEX;
}

void session_trust(struct index_session *s)
{
    s->shared->distrusted &= ~(uint32_t)DISTRUST_INDEX;
}

/* The slot of the name, or the first free one where it has none; SLOTS: there is neither. */
static size_t find_slot(const struct index_session *s, uint64_t bucket_id, const char *name,
                        size_t *free_slot)
{
    *free_slot = SLOTS;
    for (size_t i = 0; i < s->top; i++) {
        const struct slot *slot = &s->shared->slots[i];
        if (!slot->used) {
            if (*free_slot == SLOTS)
                *free_slot = i;
        } else if (slot->bucket_id == bucket_id && strcmp(slot->name, name) == 0) {
            return i;
        }
    }
    if (*free_slot == SLOTS && s->top < SLOTS)
        *free_slot = s->top;
    return SLOTS;
}

static void use_slot(struct index_session *s, size_t i, uint64_t bucket_id, const char *name)
{
    struct slot *slot = &s->shared->slots[i];
    slot->bucket_id = bucket_id;
    memcpy(slot->name, name, strlen(name) + 1);
    atomic_store_explicit(&slot->used, 1, memory_order_release);
    s->began[i] = s->changes;
    s->used++;
    if (i >= s->top)
        s->top = i + 1;
}

/* --- the watch -------------------------------------------------------------------------------- */

static size_t watch_bit(uint64_t bucket_id, const char *name)
{
    return hrw_key(bucket_id, name, strlen(name)) % WATCH_BITS;
}

void session_watch(struct index_session *s, uint64_t number)
{
    pthread_mutex_lock(&s->lock);
    s->shared->watch = 0; /* the process may end between any two instructions */
    atomic_signal_fence(memory_order_seq_cst);
    memset(s->shared->changed, 0, sizeof s->shared->changed);
    s->shared->watch = number;
    pthread_mutex_unlock(&s->lock);
}

uint64_t session_watched(struct index_session *s)
{
    pthread_mutex_lock(&s->lock);
    uint64_t number = s->shared->watch;
    pthread_mutex_unlock(&s->lock);
    return number;
}

bool session_may_have_changed(struct index_session *s, uint64_t number, uint64_t bucket_id,
                              const char *name)
{
    size_t bit = watch_bit(bucket_id, name);
    pthread_mutex_lock(&s->lock);
    bool may = s->shared->watch != number ||
               (s->shared->changed[bit / WORD_BITS] >> bit % WORD_BITS & 1) != 0;
    pthread_mutex_unlock(&s->lock);
    return may;
}

void session_assume_changed(struct index_session *s, uint64_t bucket_id, const char *name)
{
    size_t bit = watch_bit(bucket_id, name);
    pthread_mutex_lock(&s->lock);
    s->shared->changed[bit / WORD_BITS] |= UINT64_C(1) << bit % WORD_BITS;
    pthread_mutex_unlock(&s->lock);
}

/* --- intents ---------------------------------------------------------------------------------- */

void session_intend(struct index_session *s, uint64_t bucket_id, const char *name)
{
    size_t unused;
    session_assume_changed(s, bucket_id, name);
    if (fault_skips("index.intend"))
        return;
    pthread_mutex_lock(&s->lock);
    s->changes++;
    bool known = find_slot(s, bucket_id, name, &unused) != SLOTS;
    if (!known && unused != SLOTS && strlen(name) <= ATTR_NAME_MAX)
        use_slot(s, unused, bucket_id, name);
    else if (!known)
        s->shared->distrusted |= DISTRUST_SLOTS;
    pthread_mutex_unlock(&s->lock);
}

void session_settle(struct index_session *s, uint64_t bucket_id, const char *name)
{
    size_t unused;
    (void)fault_errno("index.settle"); /* a place to be killed at */
    pthread_mutex_lock(&s->lock);
    size_t i = find_slot(s, bucket_id, name, &unused);
    if (i != SLOTS) {
        atomic_store_explicit(&s->shared->slots[i].used, 0, memory_order_release);
        s->used--;
    }
    while (s->top > 0 && !s->shared->slots[s->top - 1].used)
        s->top--;
    if (s->waiting > 0)
        pthread_cond_broadcast(&s->settled);
    pthread_mutex_unlock(&s->lock);
}

static bool any_under_way(const struct index_session *s, uint64_t changes)
{
    for (size_t i = 0; i < s->top; i++) {
        if (s->shared->slots[i].used && s->began[i] <= changes)
            return true;
    }
    return false;
}

bool session_wait_settled(struct index_session *s, uint64_t timeout_ms)
{
    uint64_t until_ms = clock_ms() + timeout_ms;
    struct timespec until = {.tv_sec = (time_t)(until_ms / 1000),
                             .tv_nsec = (long)(until_ms % 1000) * 1000000};
    int rc = 0;
    pthread_mutex_lock(&s->lock);
    uint64_t changes = s->changes;
    s->waiting++;
    while (any_under_way(s, changes) && rc == 0)
        rc = pthread_cond_timedwait(&s->settled, &s->lock, &until);
    bool all = !any_under_way(s, changes);
    s->waiting--;
    pthread_mutex_unlock(&s->lock);
    return all;
}

uint64_t session_changes(struct index_session *s, bool *idle)
{
    pthread_mutex_lock(&s->lock);
    uint64_t changes = s->changes;
    *idle = s->used == 0 && !s->shared->distrusted;
    pthread_mutex_unlock(&s->lock);
    return changes;
}

int session_each(struct index_session *s,
                 int (*fn)(void *ctx, uint64_t bucket_id, const char *name, struct error *err),
                 void *ctx, struct error *err)
{
    int code = 0;
    for (size_t i = s->top; i-- > 0 && code == 0;) {
        const struct slot *slot = &s->shared->slots[i];
        if (slot->used)
            code = fn(ctx, slot->bucket_id, slot->name, err);
    }
    return code;
}

int session_if_unchanged(struct index_session *s, uint64_t changes, int (*fn)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&s->lock);
    int code = s->changes == changes ? fn(ctx) : E_NOT_READY;
    pthread_mutex_unlock(&s->lock);
    return code;
}
