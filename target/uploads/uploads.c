#include "target/uploads/uploads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/param.h"
#include "common/rng.h"
#include "hrw/hrw.h"
#include "io/file.h"
#include "io/pool.h"
#include "target/node/target.h"
#include "target/node/thread_classes.h"

struct uploads {
    struct target *target;
    struct pool *keepers;
    struct pool *assemblers;
    uint64_t since_ms; /* the start of this target */
    atomic_bool stopped;
    pthread_mutex_t lock; /* of the list, and of references; not held while the disk works */
    pthread_cond_t loaded;
    struct upload *first;
    pthread_mutex_t count_lock; /* of what follows; taken alone */
    uint64_t open;              /* uploads on the open mountpaths that are not completed … */
    uint64_t counted;           /* … which were counted with the roster's generation; 0: never */
};

/* --- all of them ------------------------------------------------------------------------------ */

struct counting {
    const struct mountpath *mp;
    uint64_t open;
};

static bool count_open(void *ctx, const char *id)
{
    struct counting *c = ctx;
    c->open += upload_dir_is_open(c->mp, id);
    return true;
}

/* Of a mountpath that cannot be read none can be completed. */
static uint64_t count_all(const struct mountpath_set *set)
{
    struct counting c = {.open = 0};
    for (size_t i = 0; i < set->count; i++) {
        c.mp = set->all[i];
        (void)upload_dir_each(c.mp, count_open, &c, NULL);
    }
    return c.open;
}

int uploads_new(struct target *t, struct uploads **out, struct error *err)
{
    struct uploads *all = xcalloc(1, sizeof *all);
    all->target = t;
    all->since_ms = (uint64_t)clock_wall_ms();
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->loaded, NULL);
    pthread_mutex_init(&all->count_lock, NULL);
    int code = thread_class_new(THREADS_KEEPER, &t->params, &all->keepers, err);
    if (code == 0)
        code = thread_class_new(THREADS_ASSEMBLER, &t->params, &all->assemblers, err);
    if (code == 0)
        *out = all;
    else
        uploads_free(all);
    return code;
}

void uploads_stop(struct uploads *all)
{
    atomic_store(&all->stopped, true);
}

bool uploads_stopped(const struct uploads *all)
{
    return atomic_load(&all->stopped);
}

void uploads_free(struct uploads *all)
{
    if (all == NULL)
        return;
    pool_free(all->assemblers);
    pool_free(all->keepers);
    pthread_mutex_destroy(&all->count_lock);
    pthread_cond_destroy(&all->loaded);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

int uploads_run(struct uploads *all, void (*fn)(void *arg), void *arg, struct error *err)
{
    return pool_submit(all->keepers, fn, arg, err);
}

int uploads_run_long(struct uploads *all, void (*fn)(void *arg), void *arg, struct error *err)
{
    return pool_submit(all->assemblers, fn, arg, err);
}

int upload_not_found(const char *id, struct error *err)
{
    return error_set(
        err, E_NOT_FOUND,
        "there is no upload '%.40s' of this object: it was completed, aborted or swept", id);
}

/* --- one comes into being --------------------------------------------------------------------- */

/* Mountpaths come and go with their uploads: with another roster all are counted anew. */
static int take_turn(struct uploads *all, const struct mountpath_set *set, struct error *err)
{
    uint64_t max = param_live(all->target->params.uploads_max);
    pthread_mutex_lock(&all->count_lock);
    if (all->counted != set->roster->generation) {
        all->open = count_all(set);
        all->counted = set->roster->generation;
    }
    bool has_room = all->open < max;
    all->open += has_room;
    pthread_mutex_unlock(&all->count_lock);
    return has_room ? 0
                    : error_set(err, E_OVERLOAD,
                                "%llu uploads are open at target '%s', as many as --uploads-max "
                                "allows: complete or abort some",
                                (unsigned long long)max, all->target->id);
}

/* One on a mountpath that has come since the count was not counted. */
static void give_turn_back(struct uploads *all)
{
    pthread_mutex_lock(&all->count_lock);
    all->open -= all->open > 0;
    pthread_mutex_unlock(&all->count_lock);
}

static void make_id(const struct uploads *all, char text[static UPLOAD_ID_CHARS + 1])
{
    struct upload_id id = {.time_ms = (uint64_t)clock_wall_ms(), .seed = hrw_seed(all->target->id)};
    random_bytes(id.random, sizeof id.random);
    upload_id_text(&id, text);
}

int uploads_begin(struct uploads *all, const struct upload_about *about,
                  char id[static UPLOAD_ID_CHARS + 1], struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(all->target->mountpaths);
    struct mountpath *mp;
    int code = mountpath_set_pick(set, about->bucket_id, about->object, &mp, err);
    if (code == 0)
        code =
            object_check_room(all->target->store, about->bucket_id, about->object, 0, false, err);
    if (code == 0)
        code = take_turn(all, set, err);
    if (code != 0)
        return code;
    make_id(all, id);
    code = mountpath_failed(mp, upload_dir_make(mp, id, about, err));
    if (code != 0)
        give_turn_back(all);
    return code;
}

/* --- one that somebody works on --------------------------------------------------------------- */

static void upload_free(struct upload *u)
{
    if (u->body_fd >= 0)
        close(u->body_fd);
    if (u->log_fd >= 0)
        close(u->log_fd);
    upload_about_clear(&u->about);
    json_decref(u->done);
    free(u->body_path);
    mountpath_set_unref(u->set);
    pthread_mutex_destroy(&u->lock);
    free(u);
}

static int open_file(const struct upload *u, const char *file, int *fd, struct error *err)
{
    _cleanup_free_ char *path = upload_dir_file(u->mp, u->id, file);
    *fd = open(path, O_RDWR | O_CLOEXEC);
    return *fd >= 0 ? 0 : error_errno(err, errno, "open '%s'", path);
}

static int read_log(const struct upload *u, struct part_table *out, struct error *err)
{
    struct stat st;
    if (fstat(u->log_fd, &st) != 0)
        return error_errno(err, errno, "the log of upload '%s'", u->id);
    _cleanup_free_ char *log = xmalloc((size_t)st.st_size + 1);
    int code = file_pread_full(u->log_fd, log, (size_t)st.st_size, 0, err);
    return code != 0 ? code : part_log_read(log, (size_t)st.st_size, upload_record(u), out, err);
}

static int load_parts(struct upload *u, struct error *err)
{
    struct part_table table;
    int code = open_file(u, "body", &u->body_fd, err);
    if (code == 0)
        code = open_file(u, "parts", &u->log_fd, err);
    if (code == 0)
        code = read_log(u, &table, err);
    if (code != 0)
        return code;
    u->unit = table.unit;
    u->log_bytes = table.log_bytes;
    u->sides = table.sides_used;
    for (size_t i = 0; i < table.count; i++)
        u->sent[table.parts[i].number / 8] |= (unsigned char)(1 << table.parts[i].number % 8);
    memcpy(u->stored, u->sent, sizeof u->stored);
    part_table_clear(&table);
    return 0;
}

/* Has the body the object's name? */
static bool is_object(const struct upload *u, const struct stat *body)
{
    struct object_path path;
    struct stat st;
    object_path_set(&path, u->about.bucket_id, u->about.object);
    return fstatat(u->mp->obj_fd, path.text, &st, 0) == 0 && st.st_ino == body->st_ino;
}

/* Was the body made an object, before a crash?  With another second name it is just being made one:
 * tmp/ is empty after a start. */
static int finish_after_crash(struct upload *u, struct error *err)
{
    struct stat st;
    unsigned char raw[ATTR_ENCODED_MAX];
    struct attr attr;
    char version[VERSION_TEXT_MAX], etag[VERSION_TEXT_MAX + 2];
    if (fstat(u->body_fd, &st) != 0)
        return error_errno(err, errno, "the body of upload '%s'", u->id);
    if (st.st_nlink < 2)
        return 0;
    if (!is_object(u, &st))
        return error_set(err, E_NOT_READY, "it is being completed; ask again");
    ssize_t len = fgetxattr(u->body_fd, ATTR_XATTR, raw, sizeof raw);
    if (len < 0)
        return error_errno(err, errno, "the attribute of upload '%s'", u->id);
    int code = attr_decode(raw, (size_t)len, &attr, err);
    if (code != 0)
        return code;
    const char *tag = attr_meta_find(&attr, ATTR_MD5);
    const char *sum = attr_meta_find(&attr, OBJECT_SUM);
    log_info("upload is completed after a crash", lstr("id", u->id), lstr("name", attr.name));
    snprintf(etag, sizeof etag, "\"%s\"", version_format(&attr.version, version));
    upload_finish(
        u, upload_reply(version, etag, attr.size, tag != NULL ? tag : "", sum != NULL ? sum : ""));
    return 0;
}

static int load_from(struct upload *u, struct error *err)
{
    int code = upload_dir_read(u->mp, u->id, &u->about, err);
    if (code == 0)
        code = upload_dir_read_done(u->mp, u->id, &u->done, err);
    if (u->done != NULL)
        u->state = UPLOAD_OVER;
    if (code != 0 || u->done != NULL)
        return code;
    upload_about_sums(&u->about, &u->sums);
    code = load_parts(u, err);
    if (code == E_CORRUPT) {
        log_warn("the log of an upload's parts is damaged", lstr("id", u->id), lerr(err));
        u->state = UPLOAD_DAMAGED;
        code = 0;
    }
    return code != 0 ? code : finish_after_crash(u, err);
}

/* One that is not open may have it. */
static int refuse_unknown(const struct upload *u, struct error *err)
{
    int code = mountpath_set_check_whole(u->set, err);
    return code != 0 ? error_wrap(err, "upload '%s'", u->id) : upload_not_found(u->id, err);
}

/* On whichever mountpath it lies: the name's may be another one by now. */
static int load(struct upload *u, struct error *err)
{
    int code = E_NOT_FOUND;
    for (size_t i = 0; i < u->set->count && code == E_NOT_FOUND; i++) {
        struct error why = ERROR_INIT;
        u->mp = u->set->all[i];
        code = load_from(u, &why);
        if (code != 0 && code != E_NOT_FOUND)
            error_set(err, code, "upload '%s': %s", u->id, why.message);
    }
    return code != E_NOT_FOUND ? code : refuse_unknown(u, err);
}

static struct upload *find_locked(struct uploads *all, const char *id)
{
    struct upload *u = all->first;
    while (u != NULL && strcmp(u->id, id) != 0)
        u = u->next;
    return u;
}

static struct upload *add_locked(struct uploads *all, const char *id)
{
    struct upload *u = xcalloc(1, sizeof *u);
    *u = (struct upload){
        .all = all, .body_fd = -1, .log_fd = -1, .error = ERROR_INIT, .next = all->first};
    snprintf(u->id, sizeof u->id, "%s", id);
    pthread_mutex_init(&u->lock, NULL);
    u->set = mountpaths_current(all->target->mountpaths);
    all->first = u;
    return u;
}

static void unlink_locked(struct upload *u)
{
    struct upload **at = &u->all->first;
    while (*at != NULL && *at != u)
        at = &(*at)->next;
    if (*at != NULL)
        *at = u->next;
}

/* With a reference. */
static void wait_loaded_locked(struct upload *u)
{
    while (!u->is_loaded)
        pthread_cond_wait(&u->all->loaded, &u->all->lock);
}

/* The first one to come loads it, and others wait for that.  What cannot be loaded leaves the list:
 * the next call tries again. */
static struct upload *get_loaded(struct uploads *all, const char *id)
{
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&all->lock);
    struct upload *u = find_locked(all, id);
    bool is_first = u == NULL;
    if (is_first)
        u = add_locked(all, id);
    u->refs++;
    if (!is_first)
        wait_loaded_locked(u);
    pthread_mutex_unlock(&all->lock);
    if (!is_first)
        return u;
    (void)load(u, &err);
    pthread_mutex_lock(&all->lock);
    u->error = err;
    u->is_loaded = true;
    if (err.code != 0)
        unlink_locked(u);
    pthread_cond_broadcast(&all->loaded);
    pthread_mutex_unlock(&all->lock);
    return u;
}

int uploads_get(struct uploads *all, const char *id, uint64_t bucket_id, const char *object,
                struct upload **out, struct error *err)
{
    struct upload_id parsed;
    _cleanup_(upload_unrefp)
    struct upload *u = NULL;
    int code = upload_id_parse(id, &parsed, err);
    if (code != 0)
        return code;
    u = get_loaded(all, id);
    if (u->error.code != 0)
        return error_set(err, u->error.code, "%s", u->error.message);
    if (u->about.bucket_id != bucket_id || strcmp(u->about.object, object) != 0)
        return upload_not_found(id, err);
    *out = steal(u);
    return 0;
}

struct upload *uploads_find(struct uploads *all, const char *id)
{
    pthread_mutex_lock(&all->lock);
    struct upload *u = find_locked(all, id);
    if (u != NULL && !u->is_loaded)
        u = NULL;
    if (u != NULL)
        u->refs++;
    pthread_mutex_unlock(&all->lock);
    return u;
}

struct upload *upload_ref(struct upload *u)
{
    pthread_mutex_lock(&u->all->lock);
    u->refs++;
    pthread_mutex_unlock(&u->all->lock);
    return u;
}

void upload_unref(struct upload *u)
{
    struct uploads *all = u->all;
    pthread_mutex_lock(&all->lock);
    bool last = --u->refs == 0;
    if (last)
        unlink_locked(u);
    pthread_mutex_unlock(&all->lock);
    if (last)
        upload_free(u);
}

size_t upload_record(const struct upload *u)
{
    return u->sums.is_asked ? PART_RECORD_SUM : PART_RECORD;
}

int upload_check_room(struct upload *u, uint64_t bytes, struct error *err)
{
    return object_check_room(u->all->target->store, u->about.bucket_id, u->about.object, bytes,
                             false, err);
}

int upload_parts(struct upload *u, struct part_table *out, struct error *err)
{
    pthread_mutex_lock(&u->lock);
    int code = u->state == UPLOAD_OVER ? upload_not_found(u->id, err) : read_log(u, out, err);
    pthread_mutex_unlock(&u->lock);
    return code;
}

struct target *upload_target(const struct upload *u)
{
    return u->all->target;
}

/* A record of the future was written by another clock. */
bool upload_part_is_old(const struct upload *u, const struct part *part)
{
    return part->time_ms < u->all->since_ms || part->time_ms > (uint64_t)clock_wall_ms();
}

int upload_open_part(const struct upload *u, const struct part *part, int *fd, uint64_t *offset,
                     struct error *err)
{
    char name[32];
    *offset = part->side == 0 ? (uint64_t)(part->number - 1) * part->unit : 0;
    *fd = u->body_fd;
    if (part->side == 0)
        return 0;
    snprintf(name, sizeof name, "side-%u", (unsigned)part->side);
    return open_file(u, name, fd, err);
}

void upload_close_part(const struct upload *u, int fd)
{
    if (fd >= 0 && fd != u->body_fd)
        close(fd);
}

/* --- the end ---------------------------------------------------------------------------------- */

int upload_check_open(const struct upload *u, struct error *err)
{
    if (u->state == UPLOAD_OVER)
        return upload_not_found(u->id, err);
    if (u->state == UPLOAD_COMPLETING)
        return error_set(err, E_NOT_READY, "upload '%s' is being completed; ask again", u->id);
    if (u->state == UPLOAD_DAMAGED)
        return error_set(err, E_CORRUPT,
                         "the log of the parts of upload '%s' is damaged: abort it, and begin "
                         "another one",
                         u->id);
    return 0;
}

int uploads_remove(struct uploads *all, const struct mountpath *mp, const char *id,
                   struct error *err)
{
    bool counted = upload_dir_is_open(mp, id);
    int code = upload_dir_remove(mp, id, err);
    if (code == 0 && counted)
        give_turn_back(all);
    return code;
}

int upload_abort(struct upload *u, struct error *err)
{
    pthread_mutex_lock(&u->lock);
    int code = u->state != UPLOAD_DAMAGED ? upload_check_open(u, err) : 0;
    if (code == 0)
        u->state = UPLOAD_OVER;
    pthread_mutex_unlock(&u->lock);
    if (code != 0)
        return code;
    code = mountpath_failed(u->mp, upload_dir_remove(u->mp, u->id, err));
    if (!upload_dir_has(u->mp, u->id, "about.json"))
        give_turn_back(u->all);
    return code;
}

json_t *upload_reply(const char *version, const char *etag, uint64_t size, const char *tag,
                     const char *sum)
{
    json_t *reply =
        json_pack("{ss sI ss}", "version", version, "size", (json_int_t)size, "tag", tag);
    json_object_set_new(reply, "etag", json_string_escaped(etag));
    if (*sum != '\0')
        json_object_set_new(reply, "sum", json_string(sum));
    return reply;
}

void upload_finish(struct upload *u, json_t *reply)
{
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&u->lock);
    u->state = UPLOAD_OVER;
    u->file = NULL;
    u->done = reply;
    pthread_mutex_unlock(&u->lock);
    if (mountpath_failed(u->mp, upload_dir_finish(u->mp, u->id, reply, &err)) != 0)
        log_warn("upload not closed", lstr("id", u->id), lerr(&err));
    if (upload_dir_has(u->mp, u->id, "done.json"))
        give_turn_back(u->all);
}
