/* Walking the index in order.  The cursor remembers the nodes it has descended through; the name
 * in its buffer holds the 503 bytes of each link on the way, which is all it needs to go back to a
 * link and on behind it. */
#include "target/index/index_parts.h"

#include <assert.h>

#include "common/mem.h"
#include "target/index/tree.h"

struct index_cursor {
    struct index *index;
    struct index_env *env;
    struct index_reader reader;
    uint64_t path[TREE_LEVELS];
    size_t depth;
    char name[TREE_LEVELS * TREE_CHUNK + 1];
    struct index_record record;
    bool moved; /* `name` is where it stood before, in the node of last_depth */
    size_t last_depth;
    uint64_t last_node;
    uint64_t visited;
};

/* LMDB's error; what is the file's fault makes the index stale. */
static int reading_failed(struct index *x, int rc, struct error *err)
{
    struct error why = ERROR_INIT;
    int code = index_error(x, rc, "read the index", &why);
    if (index_rc_is_damage(rc))
        index_damaged(x, code, &why);
    if (err != NULL)
        *err = why;
    return code;
}

static int cursor_begin(struct index_cursor *c, struct index *x, struct error *err)
{
    c->index = x;
    int rc = index_reader_begin(x, &c->env, &c->reader);
    return rc == 0 ? 0 : reading_failed(x, rc, err);
}

static void cursor_end(struct index_cursor *c)
{
    index_reader_end(c->index, c->env, &c->reader);
}

int index_cursor_open(struct index *x, struct index_cursor **out, struct error *err)
{
    struct index_cursor *c = xcalloc(1, sizeof *c);
    int code = cursor_begin(c, x, err);
    if (code != 0)
        index_cursor_close(c);
    else
        *out = c;
    return code;
}

void index_cursor_close(struct index_cursor *c)
{
    if (c == NULL)
        return;
    cursor_end(c);
    free(c);
}

const char *index_cursor_name(const struct index_cursor *c)
{
    return c->name;
}

const struct index_record *index_cursor_record(const struct index_cursor *c)
{
    return &c->record;
}

/* To the first key of the present node that is not less than `rest`. */
static int to_key(struct index_cursor *c, const char *rest, size_t len, MDB_val *key,
                  MDB_val *value)
{
    struct tree_key k;
    tree_key_set(&k, c->path[c->depth], rest, len);
    *key = (MDB_val){.mv_data = k.bytes, .mv_size = k.len};
    return mdb_cursor_get(c->reader.at, key, value, MDB_SET_RANGE);
}

static int to_next(struct index_cursor *c, MDB_val *key, MDB_val *value)
{
    return mdb_cursor_get(c->reader.at, key, value, MDB_NEXT);
}

/* The node is at its end: to the key behind the link that led into it. */
static int leave_node(struct index_cursor *c, MDB_val *key, MDB_val *value)
{
    c->depth--;
    int rc = to_key(c, c->name + c->depth * TREE_CHUNK, TREE_CHUNK, key, value);
    return rc == 0 ? to_next(c, key, value) : rc;
}

/* The link's chunk is already in the name. */
static int enter_node(struct index_cursor *c, const MDB_val *link)
{
    if (c->depth + 1 == TREE_LEVELS)
        return MDB_CORRUPTED;
    int rc = tree_link_node(link, &c->path[c->depth + 1]);
    if (rc == 0)
        c->depth++;
    return rc;
}

/* Entries of a node grow, or the cursor has strayed into pages that are not its own. */
static bool grows(const struct index_cursor *c, const char *rest, size_t len)
{
    if (!c->moved || c->depth != c->last_depth || c->path[c->depth] != c->last_node)
        return true;
    const char *before = c->name + c->depth * TREE_CHUNK;
    size_t before_len = strlen(before);
    int order = memcmp(before, rest, len < before_len ? len : before_len);
    return order < 0 || (order == 0 && before_len < len);
}

static int take_leaf(struct index_cursor *c, const MDB_val *value, struct error *err)
{
    struct error why = ERROR_INIT;
    int code =
        index_value_decode(c->path[0], c->name, value->mv_data, value->mv_size, &c->record, &why);
    c->moved = true;
    c->last_depth = c->depth;
    c->last_node = c->path[c->depth];
    if (code == 0)
        return 1;
    error_wrap(&why, "read the index '%s'", c->index->dir);
    if (err != NULL)
        *err = why;
    return index_damaged(c->index, code, &why);
}

/* Takes the leaf or link under the cursor: 1 on a leaf, 0 to go on from *key, or an error. */
static int take_entry(struct index_cursor *c, const char *rest, size_t len, MDB_val *key,
                      MDB_val *value, int *rc, struct error *err)
{
    char *name = c->name + c->depth * TREE_CHUNK;
    c->visited++;
    if (len > TREE_CHUNK || !grows(c, rest, len)) {
        *rc = MDB_CORRUPTED;
        return 0;
    }
    memcpy(name, rest, len);
    name[len] = '\0';
    if (len < TREE_CHUNK)
        return take_leaf(c, value, err);
    c->moved = false;
    *rc = enter_node(c, value);
    if (*rc == 0)
        *rc = to_key(c, "", 0, key, value);
    return 0;
}

/* From LMDB's answer to the next leaf. */
static int settle(struct index_cursor *c, int rc, MDB_val *key, MDB_val *value, struct error *err)
{
    for (;;) {
        const char *rest;
        size_t len;
        if (rc == 0 && tree_key_in_node(key, c->path[c->depth], &rest, &len)) {
            int code = take_entry(c, rest, len, key, value, &rc, err);
            if (code != 0)
                return code;
        } else if (rc != 0 && rc != MDB_NOTFOUND) {
            return reading_failed(c->index, rc, err);
        } else if (c->depth == 0) {
            return 0;
        } else {
            rc = leave_node(c, key, value);
        }
    }
}

/* Is the key exactly `rest` in the present node? */
static bool is_key(const struct index_cursor *c, const MDB_val *key, const char *rest, size_t len)
{
    const char *found;
    size_t found_len;
    return tree_key_in_node(key, c->path[c->depth], &found, &found_len) && found_len == len &&
           memcmp(found, rest, len) == 0;
}

int index_cursor_seek(struct index_cursor *c, uint64_t bucket_id, const char *name, bool after,
                      struct error *err)
{
    MDB_val key, value;
    size_t len = strlen(name);
    c->path[0] = bucket_id;
    c->depth = 0;
    c->moved = false;
    while (len >= TREE_CHUNK) {
        int rc = to_key(c, name, TREE_CHUNK, &key, &value);
        if (rc != 0 || !is_key(c, &key, name, TREE_CHUNK))
            return settle(c, rc, &key, &value, err);
        memcpy(c->name + c->depth * TREE_CHUNK, name, TREE_CHUNK);
        rc = enter_node(c, &value);
        if (rc != 0)
            return reading_failed(c->index, rc, err);
        name += TREE_CHUNK;
        len -= TREE_CHUNK;
    }
    int rc = to_key(c, name, len, &key, &value);
    if (rc == 0 && after && is_key(c, &key, name, len))
        rc = to_next(c, &key, &value);
    return settle(c, rc, &key, &value, err);
}

int index_cursor_next(struct index_cursor *c, struct error *err)
{
    MDB_val key, value;
    return settle(c, to_next(c, &key, &value), &key, &value, err);
}

uint64_t index_cursor_visited(const struct index_cursor *c)
{
    return c->visited;
}

/* The name that the cursor stands on, if it is this one; the cursor's texts are its own. */
static int take_found(const struct index_cursor *c, const char *name, struct index_record *rec,
                      char job[static ATTR_JOB_MAX + 1])
{
    if (strcmp(c->name, name) != 0)
        return 0;
    *rec = c->record;
    if (rec->job != NULL) {
        snprintf(job, ATTR_JOB_MAX + 1, "%s", rec->job);
        rec->job = job;
    }
    return 1;
}

int index_find(struct index *x, uint64_t bucket_id, const char *name, struct index_record *rec,
               char job[static ATTR_JOB_MAX + 1], struct error *err)
{
    struct index_cursor c = {0}; /* on the stack: each PUT of a new name comes here */
    int found = cursor_begin(&c, x, err);
    if (found == 0)
        found = index_cursor_seek(&c, bucket_id, name, false, err);
    if (found == 1)
        found = take_found(&c, name, rec, job);
    cursor_end(&c);
    return found;
}

/* --- all of it -------------------------------------------------------------------------------- */

struct verify {
    struct index_cursor *c;
    struct tree_key before;
    size_t entries;
};

/* Longer names stand in several nodes; their records are checked when they are listed. */
static int verify_record(const MDB_val *key, const MDB_val *value, struct error *err)
{
    uint64_t node = tree_key_node(key);
    char name[TREE_CHUNK + 1];
    struct index_record rec;
    size_t len = key->mv_size - 8;
    if (node >= TREE_NODE_FIRST || len >= TREE_CHUNK)
        return 0;
    memcpy(name, (const char *)key->mv_data + 8, len);
    name[len] = '\0';
    return index_value_decode(node, name, value->mv_data, value->mv_size, &rec, err);
}

static int verify_entry(struct verify *v, const MDB_val *key, const MDB_val *value,
                        struct error *err)
{
    if (key->mv_size < 8 || key->mv_size > TREE_KEY_MAX)
        return error_set(err, E_CORRUPT, "a key of the index has no length that keys have");
    const struct tree_key *before = &v->before;
    size_t same = before->len < key->mv_size ? before->len : key->mv_size;
    int order = memcmp(before->bytes, key->mv_data, same);
    if (order > 0 || (order == 0 && before->len >= key->mv_size))
        return error_set(err, E_CORRUPT, "the index's keys are out of order");
    v->before.len = key->mv_size;
    memcpy(v->before.bytes, key->mv_data, key->mv_size);
    v->entries++;
    return verify_record(key, value, err);
}

static int verify_all(struct verify *v, uint64_t changes, const atomic_bool *stop,
                      struct error *err)
{
    enum { LOOK_EVERY = 1024 };
    struct index *x = v->c->index;
    MDB_val key, value;
    MDB_stat st;
    bool idle;
    int rc = mdb_stat(v->c->reader.txn, v->c->env->dbi, &st);
    while (rc == 0 && (rc = to_next(v->c, &key, &value)) == 0) {
        int code = verify_entry(v, &key, &value, err);
        if (code != 0)
            return code;
        if (v->entries % LOOK_EVERY == 0 && (*stop || index_changes(x, &idle) != changes))
            return error_set(err, E_CANCELLED, "something else comes first");
    }
    if (rc != MDB_NOTFOUND)
        return reading_failed(x, rc, err);
    if (v->entries == st.ms_entries)
        return 0;
    return error_set(err, E_CORRUPT, "the index has %zu entries, not %zu", v->entries,
                     (size_t)st.ms_entries);
}

int index_verify(struct index *x, uint64_t changes, const atomic_bool *stop, struct error *err)
{
    struct error why = ERROR_INIT;
    struct verify v = {0};
    int code = index_cursor_open(x, &v.c, &why);
    if (code == 0)
        code = verify_all(&v, changes, stop, &why);
    index_cursor_close(v.c);
    if (code == 0)
        return 0;
    error_wrap(&why, "verify '%s'", x->dir);
    if (err != NULL)
        *err = why;
    return index_damaged(x, code, &why);
}

int index_next_bucket(struct index *x, uint64_t after, uint64_t *bucket_id, struct error *err)
{
    _cleanup_(index_cursor_closep)
    struct index_cursor *c = NULL;
    int code = index_cursor_open(x, &c, err);
    if (code != 0)
        return code;
    MDB_val key, value;
    c->path[0] = after + 1;
    int rc = to_key(c, "", 0, &key, &value);
    if (rc != 0 && rc != MDB_NOTFOUND)
        return reading_failed(x, rc, err);
    if (rc == MDB_NOTFOUND || tree_key_node(&key) >= TREE_NODE_FIRST)
        return 0;
    *bucket_id = tree_key_node(&key);
    return 1;
}

static int sum_bucket(struct index_cursor *c, uint64_t bucket_id, uint64_t *objects,
                      uint64_t *bytes, struct error *err)
{
    int found = index_cursor_seek(c, bucket_id, "", false, err);
    for (; found == 1; found = index_cursor_next(c, err)) {
        *objects += !c->record.tombstone;
        *bytes += c->record.sliced ? 0 : c->record.size; /* its slices count where they are */
    }
    return found;
}

int index_sum(struct index *x, uint64_t bucket_id, uint64_t *objects, uint64_t *bytes,
              struct error *err)
{
    *objects = *bytes = 0;
    _cleanup_(index_cursor_closep)
    struct index_cursor *c = NULL;
    int code = index_cursor_open(x, &c, err);
    if (code != 0 || bucket_id != 0)
        return code != 0 ? code : sum_bucket(c, bucket_id, objects, bytes, err);
    int found = 0;
    while (code == 0 && (found = index_next_bucket(x, bucket_id, &bucket_id, err)) == 1)
        code = sum_bucket(c, bucket_id, objects, bytes, err);
    return code != 0 ? code : found;
}
