/* The storage engine of a target, for the power cut test (powercut.py): a workload that says in the
 * recorder's log what it does, and a look at what a cut of power has left of it.
 *
 *   powercut-store work DIR MARKS SEED OPERATIONS [FAULTS]
 *   powercut-store check DIR < NAMES
 *
 * `work` opens a store on DIR and runs that many operations in some threads: PUT, overwrite and
 * DELETE in a bucket with durability sync, in one with async, in ever new buckets, documents
 * replaced by file_replace(), and samples pushed into a lane of a ring.  One more thread flushes
 * the file system now and then, and marks the index as whole, as a target does where nothing
 * changes for some time.  Each operation has a number, from which its size and every byte follow.
 * Marks:
 *
 *   B number put|delete bucket name      begins        A number ok|missing     was acknowledged
 *   S number                             a flush begins    E number               … has ended
 *
 * `check` opens the store, reads "bucket name" a line, and answers with a line for each:
 * "= bucket name number" (this operation's object is there, whole), "- bucket name" (nothing is),
 * "! bucket name text" (something else is).  Then "L bucket name" for all that is listed, and
 * "T n", the number of files left in tmp/.  A document is a name in bucket 0; a sample is one in
 * bucket 9, and is called by its number. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/rng.h"
#include "io/file.h"
#include "target/store/list.h"
#include "target/store/object.h"
#include "target/store/sweep.h"
#include "tests/powercut/bytes.h"
#include "tests/powercut/samples.h"

enum {
    BUCKET_SYNC = 7,
    BUCKET_ASYNC = 8,
    BUCKET_NEW = 100,
    THREADS = 4,
    OWN_NAMES = 6,
    SHARED_NAMES = 3,
    OPERATIONS_PER_BUCKET = 40, /* then another one is new */
    FLUSH_EVERY = 60,           /* operations */
    DOCUMENT_BYTES = 6000,
};

static struct mountpaths *mountpaths;
static struct object_store *store;

/* --- the store -------------------------------------------------------------------------------- */

static void fixed_map(void *ctx, uint64_t *term, uint64_t *map_version)
{
    (void)ctx;
    *term = *map_version = 1;
}

static bool no_job(void *ctx, const char *job_id)
{
    (void)ctx;
    (void)job_id;
    return false;
}

static void open_store(const char *dir)
{
    static const struct object_env env = {.map = fixed_map, .job_committed = no_job};
    const struct mountpaths_config config = {.target_id = "t1",
                                             .list = dir,
                                             .index_map_size = 64 << 20,
                                             .disk_depth = 64,
                                             .readers = 1,
                                             .readers_queue = 64};
    struct error err = ERROR_INIT;
    if (mountpaths_open(&config, &mountpaths, &err) != 0)
        die("open", &err);
    store = object_store_new(
        &(struct object_store_config){.mountpaths = mountpaths,
                                      .env = &env,
                                      .put_buffer_bytes = 65536,
                                      .put_memory_bytes = 8 << 20,
                                      .grow = {.first = 1 << 20, .most = 16 << 20},
                                      .allocate = {.first = 64 << 20, .most = 1 << 30}});
}

static void close_store(void)
{
    object_store_free(store);
    mountpaths_close(mountpaths);
}

/* --- work ------------------------------------------------------------------------------------- */

struct work {
    const char *dir;
    int marks_fd;
    uint64_t seed, operations;
    atomic_ullong next; /* numbers of operations, from 1 */
    atomic_bool ended;
    pthread_rwlock_t busy; /* held by who is at an operation */
};

struct worker {
    struct work *work;
    unsigned index;
    struct rng rng;
    pthread_t thread;
};

__attribute__((format(printf, 2, 3))) static void mark(const struct work *w, const char *format,
                                                       ...)
{
    char line[128];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (pwrite(w->marks_fd, line, (size_t)len, 0) != len)
        die("mark", NULL);
}

struct deletion {
    sem_t ended;
    struct error err;
};

static void deletion_ended(void *arg, const struct attr *attr, const struct error *err)
{
    struct deletion *d = arg;
    (void)attr;
    d->err = *err;
    sem_post(&d->ended);
}

static int delete_object(uint64_t bucket, const char *name, enum durability durability,
                         struct error *err)
{
    struct deletion d = {.err = ERROR_INIT};
    sem_init(&d.ended, 0, 0);
    object_delete(store, bucket, name, durability, NULL, NULL, deletion_ended, &d);
    while (sem_wait(&d.ended) != 0)
        ;
    sem_destroy(&d.ended);
    *err = d.err;
    return d.err.code;
}

static int put_object(uint64_t bucket, const char *name, enum durability durability,
                      uint64_t number, struct error *err)
{
    char meta[64];
    int meta_len = snprintf(meta, sizeof meta, "number%c%" PRIu64, '\0', number) + 1;
    const struct object_put_spec spec = {.bucket_id = bucket,
                                         .name = name,
                                         .size = size_of(number),
                                         .durability = durability,
                                         .checksum = CHECKSUM_XXH3,
                                         .meta = meta,
                                         .meta_len = (size_t)meta_len};
    struct object_put *p;
    _cleanup_free_ char *bytes = bytes_of(number, spec.size);
    int code = object_put_begin(store, &spec, &p, err);
    if (code != 0)
        return code;
    for (size_t at = 0, n; at < spec.size; at += n) {
        n = spec.size - at < 65536 ? spec.size - at : 65536;
        if ((code = object_put_write(p, bytes + at, n, err)) != 0) {
            object_put_abort(p);
            return code;
        }
    }
    return object_put_commit_wait(p, err);
}

static char *document_path(const char *dir, const char *name)
{
    return xprintf("%s/.dfc/jobs/%s", dir, name);
}

static int replace_document(const struct work *w, const char *name, uint64_t number,
                            struct error *err)
{
    _cleanup_free_ char *path = document_path(w->dir, name);
    _cleanup_free_ char *bytes = bytes_of(number, DOCUMENT_BYTES);
    memcpy(bytes, &number, sizeof number);
    return file_replace(path, bytes, DOCUMENT_BYTES, 0600, err);
}

struct operation {
    uint64_t number, bucket;
    bool deletes;
    char name[32];
};

/* Names of the thread's own, and some for which all contend. */
static void choose(struct worker *me, struct operation *op)
{
    struct rng *r = &me->rng;
    static const uint64_t buckets[] = {BUCKET_SYNC,  BUCKET_SYNC,      BUCKET_SYNC,
                                       BUCKET_ASYNC, BUCKET_ASYNC,     BUCKET_ASYNC,
                                       BUCKET_NEW,   BUCKET_DOCUMENTS, BUCKET_RING};
    op->bucket = buckets[rng_below(r, sizeof buckets / sizeof *buckets)];
    op->deletes = rng_below(r, 4) == 0 && op->bucket != BUCKET_DOCUMENTS;
    if (op->bucket == BUCKET_NEW) {
        op->bucket += op->number / OPERATIONS_PER_BUCKET;
        op->deletes = false;
    }
    if (op->bucket == BUCKET_RING) {
        op->deletes = false;
        snprintf(op->name, sizeof op->name, "%" PRIu64, op->number);
    } else if (rng_below(r, 4) == 0 && op->bucket != BUCKET_DOCUMENTS)
        snprintf(op->name, sizeof op->name, "shared-%u", (unsigned)rng_below(r, SHARED_NAMES));
    else
        snprintf(op->name, sizeof op->name, "t%u-%u", me->index, (unsigned)rng_below(r, OWN_NAMES));
}

static int run(const struct work *w, const struct operation *op, struct error *err)
{
    enum durability d = op->bucket == BUCKET_ASYNC ? DURABILITY_ASYNC : DURABILITY_SYNC;
    if (op->bucket == BUCKET_DOCUMENTS)
        return replace_document(w, op->name, op->number, err);
    if (op->bucket == BUCKET_RING)
        return samples_push(op->number, err);
    return op->deletes ? delete_object(op->bucket, op->name, d, err)
                       : put_object(op->bucket, op->name, d, op->number, err);
}

static void *worker_main(void *arg)
{
    struct worker *me = arg;
    struct work *w = me->work;
    struct operation op;
    while ((op.number = atomic_fetch_add(&w->next, 1)) <= w->operations) {
        struct error err = ERROR_INIT;
        choose(me, &op);
        pthread_rwlock_rdlock(&w->busy);
        mark(w, "B %" PRIu64 " %s %" PRIu64 " %s", op.number, op.deletes ? "delete" : "put",
             op.bucket, op.name);
        int code = run(w, &op, &err);
        pthread_rwlock_unlock(&w->busy);
        if (code != 0 && (!op.deletes || code != E_OBJECT_NOT_FOUND))
            die(op.name, &err);
        mark(w, "A %" PRIu64 " %s", op.number, code == 0 ? "ok" : "missing");
    }
    return NULL;
}

/* As a target does when nothing has changed for some time: the index gets its marker, which stands
 * until the next change. */
static void checkpoint(struct work *w)
{
    struct error err = ERROR_INIT;
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(mountpaths);
    pthread_rwlock_wrlock(&w->busy);
    if (index_checkpoint(set->all[0]->index, &err) != 0)
        die("checkpoint", &err);
    pthread_rwlock_unlock(&w->busy);
}

static void *flusher_main(void *arg)
{
    static const atomic_bool never = false;
    struct work *w = arg;
    struct error err = ERROR_INIT;
    for (uint64_t flushed = 0, at; !atomic_load(&w->ended); usleep(1000)) {
        if ((at = atomic_load(&w->next)) < flushed + FLUSH_EVERY)
            continue;
        flushed = at;
        mark(w, "S %" PRIu64, at);
        if (sweep_flush(store, &never, &err) != 0)
            die("flush", &err);
        mark(w, "E %" PRIu64, at);
        checkpoint(w);
    }
    return NULL;
}

static int work(int argc, char **argv)
{
    struct error err = ERROR_INIT;
    struct work w = {.dir = argv[0], .next = 1};
    if (argc < 4 || parse_u64(argv[2], &w.seed, &err) != 0 ||
        parse_u64(argv[3], &w.operations, &err) != 0)
        die("arguments", &err);
    if (argc > 4 && fault_configure(argv[4], &err) != 0)
        die("faults", &err);
    w.marks_fd = open(argv[1], O_WRONLY | O_CLOEXEC);
    if (w.marks_fd < 0)
        die(argv[1], NULL);
    open_store(w.dir);
    samples_make_lane(mountpaths);
    pthread_rwlock_init(&w.busy, NULL);
    pthread_t flusher;
    struct worker workers[THREADS];
    pthread_create(&flusher, NULL, flusher_main, &w);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.work = &w, .index = i};
        rng_seed(&workers[i].rng, w.seed * THREADS + i);
        pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    atomic_store(&w.ended, true);
    pthread_join(flusher, NULL);
    pthread_rwlock_destroy(&w.busy);
    samples_close();
    close_store();
    return 0;
}

/* --- check ------------------------------------------------------------------------------------ */

static void check_document(const char *dir, const char *name)
{
    _cleanup_free_ char *path = document_path(dir, name);
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    struct error err = ERROR_INIT;
    int code = file_read_all(path, 1 << 20, &text, &err);
    uint64_t number = 0;
    if (code == E_NOT_FOUND)
        printf("- 0 %s\n", name);
    else if (code != 0)
        printf("! 0 %s %s\n", name, err.message);
    else if (text.len < sizeof number)
        printf("! 0 %s torn: %zu bytes\n", name, text.len);
    else
        say_bytes(BUCKET_DOCUMENTS, name, (memcpy(&number, text.data, sizeof number), number),
                  text.data, text.len, DOCUMENT_BYTES);
}

static uint64_t number_of(const struct attr *a)
{
    size_t pos = 0;
    const char *name, *value;
    uint64_t number = 0;
    if (attr_meta_next(a, &pos, &name, &value))
        (void)parse_u64(value, &number, NULL); /* 0 is no operation's number */
    return number;
}

static void check_object(uint64_t bucket, const char *name)
{
    struct object o;
    struct error err = ERROR_INIT;
    int code = object_open(store, bucket, name, &o, &err);
    if (code == E_OBJECT_NOT_FOUND) {
        printf("- %" PRIu64 " %s\n", bucket, name);
        return;
    }
    _cleanup_free_ char *bytes = code == 0 ? xmalloc(o.attr.size + 1) : NULL;
    if (code == 0)
        code = file_pread_full(o.fd, bytes, o.attr.size, 0, &err);
    if (o.fd >= 0)
        close(o.fd);
    if (code != 0)
        printf("! %" PRIu64 " %s %s\n", bucket, name, err.message);
    else
        say_bytes(bucket, name, number_of(&o.attr), bytes, o.attr.size,
                  size_of(number_of(&o.attr)));
}

/* --- lists ------------------------------------------------------------------------------------ */

static void list_bucket(uint64_t bucket)
{
    const struct list_request req = {
        .bucket_id = bucket, .prefix = "", .delimiter = "", .start_after = "", .limit = 1000};
    struct list_page page;
    struct error err = ERROR_INIT;
    if (list_page(store, &req, &page, &err) != 0)
        die("list", &err);
    for (size_t i = 0; i < page.entry_count; i++)
        printf("L %" PRIu64 " %s\n", bucket, page.entries[i].name);
    list_page_done(&page);
}

static void list_all(void)
{
    _cleanup_free_ uint64_t *ids = NULL;
    size_t count = 0;
    struct error err = ERROR_INIT;
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(mountpaths);
    if (mountpath_buckets(set->all[0], &ids, &count, &err) != 0)
        die("buckets", &err);
    for (size_t i = 0; i < count; i++)
        list_bucket(ids[i]);
    samples_list();
}

static unsigned count_tmp(const char *dir)
{
    _cleanup_free_ char *path = xprintf("%s/.dfc/tmp", dir);
    DIR *d = opendir(path);
    if (d == NULL)
        die(path, NULL);
    unsigned count = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        count += e->d_name[0] != '.';
    closedir(d);
    return count;
}

static int check(const char *dir)
{
    uint64_t bucket;
    char name[64];
    struct error err = ERROR_INIT;
    if (fault_configure("life.boot=skip", &err) != 0) /* the machine itself goes on */
        die("faults", &err);
    open_store(dir);
    samples_open(mountpaths);
    while (scanf("%" SCNu64 " %63s", &bucket, name) == 2) {
        if (bucket == BUCKET_DOCUMENTS)
            check_document(dir, name);
        else if (bucket == BUCKET_RING)
            samples_check(name);
        else
            check_object(bucket, name);
    }
    list_all();
    printf("T %u\n", count_tmp(dir));
    samples_close();
    close_store();
    return 0;
}

int main(int argc, char **argv)
{
    log_set_level(LOG_OFF);
    if (argc >= 6 && strcmp(argv[1], "work") == 0)
        return work(argc - 2, argv + 2);
    if (argc == 3 && strcmp(argv[1], "check") == 0)
        return check(argv[2]);
    fprintf(stderr, "usage: %s work DIR MARKS SEED OPERATIONS [FAULTS] | check DIR\n", argv[0]);
    return 2;
}
