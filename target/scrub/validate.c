#include "target/scrub/validate.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/pool.h"
#include "target/disk/object_files.h"
#include "target/scrub/validate_bytes.h"
#include "target/scrub/validate_file.h"
#include "target/scrub/validate_mend.h"
#include "target/scrub/validate_names.h"
#include "target/store/summary.h"

enum { NICE = 10, WALKERS_MAX = 8 };

/* --- where it is ------------------------------------------------------------------------------ */

static void enter(struct walk *w, enum scrub_phase phase)
{
    w->at.phase = phase;
    w->at.bucket_id = w->at.fan = 0;
    w->at.name[0] = '\0';
    w->bucket_id = 0;
    walk_save(w);
}

static void go_on(struct walk *w)
{
    struct error err = ERROR_INIT;
    if (w->scrub != NULL && scrub_cursor_load(&w->at, w->mp, w->scrub->job_id, w->part, &err) != 0)
        log_warn("a scrub begins anew", lstr("mountpath", w->mp->path), lerr(&err));
    w->saved_ms = clock_ms();
}

/* --- the files -------------------------------------------------------------------------------- */

static void looked_at(const struct walk *w)
{
    validate_part_looked_at(w->part);
    if (w->scrub != NULL)
        metric_add(metric_get(M_scrub_objects_total, NULL), 1);
}

static int walk_file(void *ctx, const char *path, struct error *err)
{
    struct walk *w = ctx;
    struct file f;
    if (walk_shall_end(w))
        return error_set(err, E_CANCELLED, "stopping");
    walk_yield(w, FILE_COSTS);
    enum look look = walk_look(w, path, &f);
    if (look == LOOK_WRONG)
        look = walk_look_again(w, path, &f);
    if (look == LOOK_GONE || !walk_bucket_lives(w))
        return 0;
    if (look == LOOK_WRONG && !f.read)
        walk_nameless_add(w, path, &f);
    if (!f.read || attr_is_tombstone(&f.attr))
        return 0;
    looked_at(w);
    bool sound = look == LOOK_WELL || walk_mends_index(f.what) || w->scrub == NULL;
    if (!w->config->checksums || f.attr.checksum.type == CHECKSUM_NONE || !sound ||
        (uint64_t)f.st.st_size != f.attr.size)
        return 0;
    return walk_check_bytes(w, path, &f) ? 0 : error_set(err, E_CANCELLED, "stopping");
}

/* --- all of it -------------------------------------------------------------------------------- */

/* What keeps the index from being read belongs to this mountpath alone. */
static void cannot_look(const struct walk *w, const struct error *why)
{
    if (why->code != E_CANCELLED)
        walk_found(w, VALIDATE_not_looked_at, "", why->message);
}

static int id_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int walk_bucket_files(struct walk *w, uint64_t id, struct error *err)
{
    int code = 0;
    if (id != w->at.bucket_id)
        w->at.fan = 0;
    w->bucket_id = w->at.bucket_id = id;
    while (w->at.fan < OBJECT_FANS && code == 0 && walk_bucket_lives(w)) {
        code = object_files_each_of(w->mp, id, (unsigned)w->at.fan, &w->stop->wanted, walk_file, w,
                                    err);
        if (code == 0) {
            w->at.fan++;
            walk_save_now_and_then(w);
        }
    }
    return code;
}

static int walk_all_files(struct walk *w, struct error *err)
{
    _cleanup_free_ uint64_t *ids = NULL;
    size_t count = 0;
    int code = mountpath_buckets(w->mp, &ids, &count, err);
    if (count > 0)
        qsort(ids, count, sizeof *ids, id_compare);
    for (size_t i = 0; i < count && code == 0; i++) {
        if (ids[i] >= w->at.bucket_id)
            code = walk_bucket_files(w, ids[i], err);
    }
    w->bucket_id = 0;
    return code;
}

static int walk_all_names(struct walk *w, struct error *err)
{
    /* The one that it is in once more. */
    uint64_t id = w->at.bucket_id > 0 ? w->at.bucket_id - 1 : 0;
    int code = index_check(w->mp->index, err), there = 0;
    while (code == 0 && !walk_shall_end(w) &&
           (there = index_next_bucket(w->mp->index, id, &id, err)) == 1) {
        if (id != w->at.bucket_id)
            w->at.name[0] = '\0';
        w->bucket_id = w->at.bucket_id = id;
        if (walk_bucket_lives(w))
            code = walk_names(w, err);
    }
    w->bucket_id = 0;
    return code == 0 && there < 0 ? there : code;
}

struct run {
    const struct validate_config *config;
    struct job_stop *stop;
    struct validate_report *report;
    const struct mountpath_set *set;
};

/* Where it may not, it goes on as it is. */
static void lower_priority(const struct walk *w)
{
    enum { WHO_PROCESS = 1, CLASS_IDLE = 3, CLASS_SHIFT = 13 };
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    if (w->scrub != NULL)
        syscall(SYS_ioprio_set, WHO_PROCESS, 0, CLASS_IDLE << CLASS_SHIFT);
}

static void walk_phases(struct walk *w)
{
    struct error why = ERROR_INIT;
    if (w->at.phase == SCRUB_FILES) {
        if (walk_all_files(w, &why) != 0)
            cannot_look(w, &why);
        if (!walk_shall_end(w))
            enter(w, SCRUB_NAMES);
    }
    why = ERROR_INIT;
    if (w->at.phase == SCRUB_NAMES && !walk_shall_end(w)) {
        if (walk_all_names(w, &why) != 0)
            cannot_look(w, &why);
        if (walk_shall_end(w))
            return;
        walk_nameless_rest(w);
        enter(w, SCRUB_DONE);
    }
}

static int walk_mountpath(void *ctx, size_t i, struct error *err)
{
    const struct run *r = ctx;
    struct walk w = {.config = r->config,
                     .scrub = r->config->scrub,
                     .stop = r->stop,
                     .set = r->set,
                     .mp = r->set->all[i],
                     .part = validate_report_part(r->report, r->set->all[i]->path)};
    (void)err;
    lower_priority(&w);
    go_on(&w);
    walk_phases(&w);
    scrub_cursor_done(&w.at);
    return 0;
}

static void tell_of_absent(const struct run *r)
{
    for (size_t i = 0; i < r->set->roster->count; i++) {
        const struct roster_member *m = &r->set->roster->members[i];
        struct validate_part *part = validate_report_part(r->report, m->path);
        if (r->set->each[i] != NULL)
            continue;
        validate_part_reset(part);
        validate_part_add(part, VALIDATE_not_looked_at, 0, "",
                          m->why != NULL ? m->why : "it is not open");
    }
}

static void expect(const struct run *r)
{
    struct summary sum;
    uint64_t objects = 0;
    if (summary_make(object_store_mountpaths(r->config->store), NULL, &sum, NULL) != 0)
        return; /* only the progress is not known */
    for (size_t i = 0; i < sum.count; i++)
        objects += sum.rows[i].objects + sum.rows[i].slices;
    validate_report_expect(r->report, objects);
    summary_done(&sum);
}

/* *again: the mountpaths have changed. */
static int run_once(const struct validate_config *config, struct job_stop *stop,
                    struct validate_report *report, bool *again, struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(object_store_mountpaths(config->store));
    struct run r = {.config = config, .stop = stop, .report = report, .set = set};
    unsigned width = set->count < WALKERS_MAX ? (unsigned)set->count : WALKERS_MAX;
    expect(&r);
    tell_of_absent(&r);
    int code =
        set->count == 0 ? 0 : parallel_for("validate", width, set->count, walk_mountpath, &r, err);
    *again = code == 0 && config->scrub != NULL && !stop->wanted && !mountpath_set_is_current(set);
    return code;
}

int validate_run(const struct validate_config *config, struct job_stop *stop,
                 struct validate_report *report, struct error *err)
{
    bool again = true;
    int code = 0;
    while (again)
        code = run_once(config, stop, report, &again, err);
    validate_report_end(report);
    if (code == 0 && stop->wanted)
        return error_set(err, E_ABORTED, "it was stopped");
    return code;
}
