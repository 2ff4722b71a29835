#include "target/sort/built.h"

#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/buf.h"
#include "common/log.h"
#include "target/disk/job_files.h"
#include "target/disk/crash_state.h"
#include "target/disk/mountpaths.h"
#include "target/copies/object_bytes.h"
#include "target/node/target.h"

static const char list_name[] = "built";

/* Before its name. */
struct entry {
    struct sort_digest order;
    uint64_t size;
    struct checksum_value checksum;
};

/* All but its order. */
static int look(const struct sort_part *p, const char *name, struct entry *e, struct error *err)
{
    struct object found;
    int code = object_open_marked(p->target->store, p->plan->output_bucket_id, name, p->job->id,
                                  &found, err);
    if (code != 0)
        return code;
    struct attr shown;
    code = object_bytes_attr(&found, &shown, err);
    memset(e, 0, sizeof *e); /* also what lies between the members */
    e->size = shown.size;
    e->checksum = shown.checksum;
    close(found.fd);
    return code;
}

static void put(struct buf *out, const struct entry *e, const char *name, size_t len)
{
    uint64_t size = sizeof *e + len;
    buf_append(out, &size, sizeof size);
    size_t begin = out->len;
    buf_append(out, e, sizeof *e);
    buf_append(out, name, len);
    uint64_t sum = XXH3_64bits(out->data + begin, size);
    buf_append(out, &sum, sizeof sum);
}

int sort_built_add(const struct sort_part *p, const char *name, const struct sort_digest *order,
                   struct error *err)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    struct entry e;
    int code = look(p, name, &e, err);
    if (code != 0 || e.checksum.type == CHECKSUM_NONE)
        return code;
    e.order = *order;
    put(&text, &e, name, strlen(name));
    return job_files_append(p->target->mountpaths, p->job->id, list_name, text.data, text.len, err);
}

/* The next entry, whole; false: there is none. */
static bool next(const struct buf *text, size_t *at, struct entry *e,
                 char name[static ATTR_NAME_MAX + 1])
{
    uint64_t size, sum;
    if (text->len - *at < sizeof size + sizeof *e + sizeof sum)
        return false;
    memcpy(&size, text->data + *at, sizeof size);
    const char *body = text->data + *at + sizeof size;
    size_t left = text->len - *at - sizeof size - sizeof sum;
    if (size > left || size < sizeof *e || size > sizeof *e + ATTR_NAME_MAX)
        return false;
    memcpy(&sum, body + size, sizeof sum);
    if (sum != XXH3_64bits(body, size))
        return false;
    memcpy(e, body, sizeof *e);
    memcpy(name, body + sizeof *e, size - sizeof *e);
    name[size - sizeof *e] = '\0';
    *at += sizeof size + size + sizeof sum;
    return true;
}

static bool stands(const struct sort_part *p, const struct entry *e, const char *name)
{
    struct entry here;
    return look(p, name, &here, NULL) == 0 && here.size == e->size &&
           checksum_equal(&here.checksum, &e->checksum);
}

/* Then what was written without sync may be torn: the outputs, and the list itself. */
static bool power_was_lost(const struct target *t)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(t->mountpaths);
    bool lost = false;
    for (size_t i = 0; i < set->count && !lost; i++)
        lost = set->all[i]->crash_state != NULL && crash_state_power_lost(set->all[i]->crash_state);
    return lost;
}

/* What stands is what the list has from now on, without what a crash has cut short. */
int sort_built_each(const struct sort_part *p,
                    void (*each)(void *arg, const struct sort_digest *order), void *arg,
                    struct error *err)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT, kept = BUF_INIT;
    struct entry e;
    char name[ATTR_NAME_MAX + 1];
    size_t at = 0, count = 0;
    int code = job_files_read(p->target->mountpaths, p->job->id, list_name, &text, err);
    if (code == E_NOT_FOUND)
        return 0;
    bool torn = power_was_lost(p->target);
    while (code == 0 && !torn && next(&text, &at, &e, name)) {
        if (!stands(p, &e, name))
            continue;
        each(arg, &e.order);
        put(&kept, &e, name, strlen(name));
        count++;
    }
    if (code != 0)
        return code;
    log_info("outputs of an earlier run are kept", lstr("job", p->job->id), lu64("count", count));
    return job_files_write(p->target->mountpaths, p->job->id, list_name, kept.data, kept.len, err);
}
