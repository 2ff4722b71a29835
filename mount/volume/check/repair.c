#include "mount/volume/check/repair.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "mount/volume/counters.h"
#include "mount/volume/format.h"
#include "mount/volume/quotas.h"
#include "mount/volume/steps.h"

enum { NAMES_PAGE = 500 };

struct repair {
    const struct check_finding *finding;
    uint64_t directory; /* lost+found */
};

static int no_repair(struct txn *t, struct repair *r)
{
    (void)t;
    (void)r;
    return -ENOTSUP;
}

/* A counter that is as it was found. */
static int add_to(struct txn *t, const struct meta_key *key, size_t offset,
                  const struct check_finding *f)
{
    struct meta_value value;
    int rc = txn_get(t, key, &value);
    if (rc != 0)
        return rc;
    if (!value.found || meta_field(&value, offset) != f->is)
        return -ESTALE;
    txn_expect_equal(t, key, offset, f->is);
    txn_add(t, key, offset, f->should - f->is);
    return 0;
}

/* An inode's attribute, which has not changed since the check. */
static int get_same(struct txn *t, const struct repair *r, const struct meta_key *key,
                    struct meta_value *value)
{
    int rc = txn_get(t, key, value);
    if (rc != 0)
        return rc;
    if (!value->found || value->stamp != r->finding->stamp)
        return -ESTALE;
    txn_expect(t, key, value);
    return 0;
}

static int repair_nlink(struct txn *t, struct repair *r)
{
    const struct meta_key key = meta_key_point(META_ATTR, r->finding->id);
    struct meta_value value;
    int rc = get_same(t, r, &key, &value);
    return rc != 0 ? rc : add_to(t, &key, ATTR_NLINK, r->finding);
}

/* -ESTALE: the directory does not have so many; only_directories: so many that are directories. */
static int count_names(struct txn *t, uint64_t directory, bool only_directories, int64_t should)
{
    struct meta_item page = {.ask = META_PAGE, .limit = NAMES_PAGE};
    int64_t count = 0;
    page.key = (struct meta_key){.kind = META_ENTRY, .id = directory};
    do {
        int rc = txn_read(t, &page, 1);
        if (rc != 0)
            return rc;
        for (size_t i = 0; i < page.count; i++)
            count += !only_directories || S_ISDIR(entry_type(&page.rows[i].value));
        if (page.count > 0)
            page.key = page.rows[page.count - 1].key;
        page.after = true;
    } while (page.more);
    return count == should ? 0 : -ESTALE;
}

/* Names come and go while the check reads.  Each change of them raises the time of the inode's last
 * change, so they are counted between two looks at it. */
static int repair_names(struct txn *t, struct repair *r, bool only_directories, int64_t should,
                        size_t offset)
{
    const struct meta_key key = meta_key_point(META_ATTR, r->finding->id);
    struct meta_value before;
    int rc = txn_get(t, &key, &before);
    if (rc == 0)
        rc = count_names(t, r->finding->id, only_directories, should);
    if (rc == 0)
        txn_expect_equal(t, &key, ATTR_CTIME, meta_field(&before, ATTR_CTIME));
    return rc == 0 ? add_to(t, &key, offset, r->finding) : rc;
}

static int repair_entries(struct txn *t, struct repair *r)
{
    return repair_names(t, r, false, r->finding->should, ATTR_ENTRIES);
}

static int repair_links(struct txn *t, struct repair *r)
{
    return repair_names(t, r, true, r->finding->should - 2, ATTR_NLINK);
}

static int repair_parent(struct txn *t, struct repair *r)
{
    const struct meta_key key = meta_key_point(META_ATTR, r->finding->id);
    struct meta_value value;
    int rc = get_same(t, r, &key, &value);
    if (rc != 0)
        return rc;
    if (meta_field(&value, ATTR_PARENT) != r->finding->is)
        return -ESTALE;
    txn_set_number(t, &key, ATTR_PARENT, r->finding->should);
    return 0;
}

static int repair_use(struct txn *t, struct repair *r)
{
    const struct check_finding *f = r->finding;
    const struct meta_key key = counters_use_key();
    const bool bytes = f->kind == CHECK_USE_BYTES;
    int rc = add_to(t, &key, bytes ? USE_BYTES : USE_INODES, f);
    if (rc == 0)
        txn_add(t, &key, bytes ? USE_BYTES_LEFT : USE_INODES_LEFT, f->is - f->should);
    return rc;
}

/* Limit and use of the same moment say how much is left. */
static int repair_use_left(struct txn *t, struct repair *r)
{
    const bool bytes = r->finding->kind == CHECK_USE_BYTES_LEFT;
    const size_t used = bytes ? USE_BYTES : USE_INODES;
    const size_t left = bytes ? USE_BYTES_LEFT : USE_INODES_LEFT;
    struct volume_format limits;
    struct error err = ERROR_INIT;
    struct meta_item items[] = {
        {.ask = META_GET, .key = counters_use_key()},
        {.ask = META_GET, .key = meta_key_point(META_FORMAT, 0)},
    };
    const struct meta_value *use = &items[0].value;
    int rc = txn_read(t, items, 2);
    if (rc != 0)
        return rc;
    if (format_parse(&items[1].value, &limits, &err) != 0)
        return txn_engine_error("format", &err);
    const int64_t should =
        counters_left(bytes ? limits.max_bytes : limits.max_inodes, meta_field(use, used));
    txn_expect(t, &items[1].key, &items[1].value);
    txn_expect_equal(t, &items[0].key, used, meta_field(use, used));
    txn_expect_equal(t, &items[0].key, left, meta_field(use, left));
    txn_set_number(t, &items[0].key, left, should);
    return 0;
}

static int repair_quota(struct txn *t, struct repair *r)
{
    static const struct {
        enum check_kind kind;
        size_t field;
    } rows[] = {
        {CHECK_QUOTA_INODES, QUOTA_INODES},
        {CHECK_QUOTA_BYTES, QUOTA_BYTES},
        {CHECK_QUOTA_INODES_LEFT, QUOTA_INODES_LEFT},
        {CHECK_QUOTA_BYTES_LEFT, QUOTA_BYTES_LEFT},
    };
    const struct meta_key key = quotas_key(r->finding->id);
    size_t i = 0;
    while (rows[i].kind != r->finding->kind)
        i++;
    return add_to(t, &key, rows[i].field, r->finding);
}

/* It counts for nobody. */
static int repair_quota_gone(struct txn *t, struct repair *r)
{
    const uint64_t id = r->finding->id;
    const struct meta_key key = quotas_key(id);
    struct meta_value value, of_directory;
    struct attr a;
    int rc = txn_get(t, &key, &value);
    if (rc != 0)
        return rc;
    const struct meta_key directory =
        meta_key_point(META_ATTR, (uint64_t)meta_field(&value, QUOTA_DIRECTORY));
    rc = txn_get(t, &directory, &of_directory);
    if (rc == 0 && (!value.found || (attr_decode(&of_directory, &a) && a.quota == id)))
        rc = -ESTALE;
    txn_expect(t, &key, &value);
    txn_delete(t, &key);
    return rc;
}

/* What it counted moves with it. */
static int repair_quota_of(struct txn *t, struct repair *r)
{
    const struct meta_key key = meta_key_point(META_ATTR, r->finding->id);
    const uint64_t should = (uint64_t)r->finding->should;
    struct meta_value value;
    struct quota was, is;
    struct attr a;
    int rc = txn_get(t, &key, &value);
    if (rc != 0)
        return rc;
    if (!attr_decode(&value, &a) || a.quota != (uint64_t)r->finding->other || a.nlink == 0)
        return -ESTALE;
    rc = quotas_get(t, a.quota, &was);
    if (rc == 0)
        rc = quotas_get(t, should, &is);
    if (rc != 0 || is.id != should)
        return rc != 0 ? rc : -ESTALE;
    txn_expect(t, &key, &value);
    quotas_expect(t, &key, &a);
    txn_expect_equal(t, &key, ATTR_LENGTH, a.length);
    txn_set_number(t, &key, attr_quota_at(a.mode), (int64_t)should);
    quotas_count(t, &was, -1, -quotas_bytes(&a));
    return quotas_count_past(t, &is, 1, quotas_bytes(&a));
}

static int repair_dangling(struct txn *t, struct repair *r)
{
    const struct check_finding *f = r->finding;
    const struct meta_key entry = steps_entry(f->other, f->name);
    const struct meta_key parent = meta_key_point(META_ATTR, f->other);
    const struct meta_key inode = meta_key_point(META_ATTR, f->id);
    struct meta_item items[] = {{.ask = META_GET, .key = entry}, {.ask = META_GET, .key = inode}};
    int rc = txn_read(t, items, 2);
    if (rc != 0)
        return rc;
    if (meta_entry_inode(&items[0].value) != f->id || items[1].value.found)
        return -ESTALE;
    txn_expect(t, &entry, &items[0].value);
    txn_expect(t, &inode, &items[1].value);
    txn_delete(t, &entry);
    txn_add(t, &parent, ATTR_ENTRIES, -1);
    if (S_ISDIR(entry_type(&items[0].value)))
        txn_add(t, &parent, ATTR_NLINK, -1);
    return 0;
}

static int repair_orphan(struct txn *t, struct repair *r)
{
    const struct meta_key inode = meta_key_point(META_ATTR, r->finding->id);
    const struct meta_key parent = meta_key_point(META_ATTR, r->directory);
    struct meta_value value, there;
    struct attr a;
    uint8_t bytes[ENTRY_BYTES];
    char name[32];
    snprintf(name, sizeof name, "%llu", (unsigned long long)r->finding->id);
    const struct meta_key entry = steps_entry(r->directory, name);
    int rc = get_same(t, r, &inode, &value);
    if (rc == 0)
        rc = txn_get(t, &entry, &there);
    if (rc != 0)
        return rc;
    if (there.found || !attr_decode(&value, &a) || a.nlink == 0)
        return -ESTALE;
    entry_encode(a.mode, r->finding->id, bytes);
    txn_expect(t, &entry, &there);
    txn_expect_at_least(t, &parent, ATTR_NLINK, 1);
    txn_put(t, &entry, bytes, sizeof bytes);
    txn_add(t, &parent, ATTR_ENTRIES, 1);
    if (S_ISDIR(a.mode))
        txn_add(t, &parent, ATTR_NLINK, 1);
    else
        txn_set_number(t, &inode, ATTR_NLINK, 1);
    txn_set_number(t, &inode, ATTR_PARENT, (int64_t)r->directory);
    return 0;
}

static int repair_unqueued(struct txn *t, struct repair *r)
{
    const struct meta_key inode = meta_key_point(META_ATTR, r->finding->id);
    struct meta_value value;
    int rc = txn_get(t, &inode, &value);
    if (rc != 0)
        return rc;
    if (!value.found || meta_field(&value, ATTR_NLINK) != 0)
        return -ESTALE;
    txn_expect(t, &inode, &value);
    steps_queue_unlinked(t, r->finding->id);
    return 0;
}

/* Without a key a slice has one entry. */
static int repair_shared(struct txn *t, struct repair *r)
{
    const struct check_finding *f = r->finding;
    const struct meta_key key = meta_key_point(META_SHARED, f->id);
    struct meta_value value;
    uint8_t bytes[8];
    int rc = txn_get(t, &key, &value);
    if (rc != 0)
        return rc;
    if ((value.found ? meta_field(&value, 0) : 1) != f->is)
        return -ESTALE;
    if (value.found)
        txn_expect_equal(t, &key, 0, f->is);
    else
        txn_expect(t, &key, &value);
    meta_field_put(bytes, 0, f->should);
    txn_put(t, &key, bytes, sizeof bytes);
    return 0;
}

/* gc finds the blocks then. */
static int repair_unnamed(struct txn *t, struct repair *r)
{
    const struct meta_key key = meta_key_point(META_SHARED, r->finding->id);
    struct meta_value value;
    int rc = txn_get(t, &key, &value);
    if (rc != 0)
        return rc;
    if (!value.found || meta_field(&value, 0) != r->finding->is)
        return -ESTALE;
    txn_expect_equal(t, &key, 0, r->finding->is);
    txn_delete(t, &key);
    return 0;
}

static int repair_garbage(struct txn *t, struct repair *r)
{
    const struct meta_key key = meta_key_number(META_GARBAGE, r->finding->other, r->finding->id);
    txn_delete(t, &key);
    return 0;
}

static int decide(struct txn *t, void *op)
{
    static int (*const repairs[])(struct txn *, struct repair *) = {
#define CHECK(name, repair, text) repair,
#include "mount/volume/check/check.def"
#undef CHECK
    };
    struct repair *r = op;
    return repairs[r->finding->kind](t, r);
}

static int need_lost_found(struct volume *v, uint64_t *directory)
{
    static const char name[] = "lost+found";
    const struct volume_new what = {.mode = S_IFDIR | 0700};
    struct volume_inode made;
    int rc = volume_create(v, VOLUME_ROOT, name, &what, &made);
    if (rc == -EEXIST)
        rc = volume_lookup(v, VOLUME_ROOT, name, &made);
    *directory = made.ino;
    return rc;
}

int repair_finding(struct volume *v, const struct check_finding *f)
{
    struct repair r = {.finding = f};
    int rc = f->kind == CHECK_ORPHAN ? need_lost_found(v, &r.directory) : 0;
    return rc == 0 ? txn_run(v, decide, &r) : rc;
}
