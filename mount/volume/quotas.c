#include "mount/volume/quotas.h"

#include <errno.h>
#include <sys/stat.h>

#include "mount/volume/trash.h"

enum { READS_MOST = 8 }; /* an inode's quota is set anew less often */

/* ---- what is there ---- */

bool quotas_decode(const struct meta_value *value, uint64_t id, struct quota *out)
{
    *out = (struct quota){
        .id = id,
        .directory = (uint64_t)meta_field(value, QUOTA_DIRECTORY),
        .whole = meta_field(value, QUOTA_WHOLE) != 0,
        .inodes = meta_field(value, QUOTA_INODES),
        .bytes = meta_field(value, QUOTA_BYTES),
        .inodes_left = meta_field(value, QUOTA_INODES_LEFT),
        .bytes_left = meta_field(value, QUOTA_BYTES_LEFT),
        .inodes_limit = meta_field(value, QUOTA_INODES_LIMIT),
        .bytes_limit = meta_field(value, QUOTA_BYTES_LIMIT),
    };
    return value->size >= QUOTA_SIZE;
}

static int take(const struct meta_value *value, uint64_t id, struct quota *out)
{
    *out = (struct quota){0};
    if (id == 0 || !value->found)
        return 0;
    return quotas_decode(value, id, out) ? 0 : -EIO;
}

int quotas_get(struct txn *t, uint64_t id, struct quota *out)
{
    const struct meta_key key = quotas_key(id);
    struct meta_value value = {0};
    int rc = id != 0 ? txn_get(t, &key, &value) : 0;
    return rc == 0 ? take(&value, id, out) : rc;
}

int quotas_read(struct txn *t, struct meta_item *items, size_t count, size_t of, struct quota *out)
{
    uint64_t id = 0;
    *out = (struct quota){0};
    for (unsigned i = 0; i < READS_MOST; i++) {
        struct attr a;
        items[count] = (struct meta_item){.ask = META_GET, .key = quotas_key(id)};
        int rc = txn_read(t, items, count + (id != 0));
        if (rc != 0 || !attr_decode(&items[of].value, &a)) /* the caller looks at the attribute */
            return rc;
        if (a.quota == id)
            return take(&items[count].value, id, out);
        id = a.quota;
    }
    return -EIO;
}

void quotas_expect(struct txn *t, const struct meta_key *inode, const struct attr *a)
{
    txn_expect_equal(t, inode, attr_quota_at(a->mode), (int64_t)a->quota);
}

/* ---- use ---- */

int64_t quotas_bytes(const struct attr *a)
{
    return S_ISREG(a->mode) ? a->length : 0;
}

int64_t quotas_sum(int64_t bytes, int64_t more)
{
    int64_t sum;
    return __builtin_add_overflow(bytes, more, &sum) ? INT64_MAX : sum;
}

int quotas_check(const struct quota *q, int64_t inodes, int64_t bytes)
{
    const bool room = (inodes <= 0 || q->inodes_left >= inodes) && //
                      (bytes <= 0 || q->bytes_left >= bytes);
    return q->id == 0 || room ? 0 : -EDQUOT;
}

static void count_field(struct txn *t, const struct quota *q, size_t used, size_t left,
                        int64_t more)
{
    const struct meta_key key = quotas_key(q->id);
    if (more == 0 || q->id == 0)
        return;
    txn_add(t, &key, used, more);
    txn_add(t, &key, left, -more);
}

void quotas_count(struct txn *t, const struct quota *q, int64_t inodes, int64_t bytes)
{
    count_field(t, q, QUOTA_INODES, QUOTA_INODES_LEFT, inodes);
    count_field(t, q, QUOTA_BYTES, QUOTA_BYTES_LEFT, bytes);
}

int quotas_count_past(struct txn *t, const struct quota *q, int64_t inodes, int64_t bytes)
{
    const struct meta_key key = quotas_key(q->id);
    if (q->id == 0)
        return 0;
    if (quotas_sum(q->bytes, bytes) == INT64_MAX)
        return -EFBIG;
    if (bytes > 0) /* other clients count meanwhile */
        txn_expect_at_least(t, &key, QUOTA_BYTES_LEFT, q->bytes_limit - INT64_MAX + bytes);
    quotas_count(t, q, inodes, bytes);
    return 0;
}

void quotas_charge(struct txn *t, const struct quota *q, int64_t inodes, int64_t bytes)
{
    const struct meta_key key = quotas_key(q->id);
    if (q->id != 0 && inodes > 0)
        txn_expect_at_least(t, &key, QUOTA_INODES_LEFT, inodes);
    if (q->id != 0 && bytes > 0)
        txn_expect_at_least(t, &key, QUOTA_BYTES_LEFT, bytes);
    quotas_count(t, q, inodes, bytes);
}

int quotas_resize(struct txn *t, const struct meta_key *inode, const struct attr *a,
                  const struct quota *q, int64_t length)
{
    const int64_t more = length - a->length;
    quotas_expect(t, inode, a);
    if (q->id == 0)
        return 0;
    txn_expect_equal(t, inode, ATTR_LENGTH, a->length);
    quotas_charge(t, q, 0, more);
    return quotas_check(q, 0, more);
}

int quotas_drop(struct txn *t, uint64_t ino, const struct attr *a)
{
    const struct meta_key inode = meta_key_point(META_ATTR, ino);
    struct quota q;
    if (!attr_is_directory(a) && a->nlink > 1)
        return 0;
    quotas_expect(t, &inode, a);
    if (a->quota == 0)
        return 0;
    int rc = quotas_get(t, a->quota, &q);
    if (rc != 0)
        return rc;
    txn_set_number(t, &inode, attr_quota_at(a->mode), 0);
    if (q.id != 0 && q.directory == ino) { /* it ends with its directory */
        const struct meta_key key = quotas_key(q.id);
        txn_delete(t, &key);
    } else if (q.id != 0) {
        if (S_ISREG(a->mode))
            txn_expect_equal(t, &inode, ATTR_LENGTH, a->length);
        quotas_count(t, &q, -1, -quotas_bytes(a));
    }
    return 0;
}

/* ---- borders ---- */

/* The number that counts: of one that is gone, 0.  What it was when the attribute was read differs
 * from another one then, too. */
static int living(struct txn *t, const struct quotas_place *p, struct quota *out)
{
    return quotas_get(t, p->attr->quota, out);
}

int quotas_check_link(struct txn *t, const struct quotas_place *inode,
                      const struct quotas_place *directory)
{
    struct quota of, there;
    quotas_expect(t, inode->key, inode->attr);
    quotas_expect(t, directory->key, directory->attr);
    if (inode->attr->quota == directory->attr->quota)
        return 0;
    int rc = living(t, inode, &of);
    if (rc == 0)
        rc = living(t, directory, &there);
    return rc == 0 && of.id != there.id ? -EXDEV : rc;
}

int quotas_check_move(struct txn *t, const struct quotas_place *inode,
                      const struct quotas_place *from, const struct quotas_place *to)
{
    struct quota of, here, there;
    quotas_expect(t, inode->key, inode->attr);
    quotas_expect(t, from->key, from->attr);
    quotas_expect(t, to->key, to->attr);
    if (inode->attr->quota == to->attr->quota && from->attr->quota == to->attr->quota)
        return 0;
    int rc = living(t, inode, &of);
    if (rc == 0)
        rc = living(t, from, &here);
    if (rc == 0)
        rc = living(t, to, &there);
    if (rc != 0)
        return rc;
    const uint64_t own = of.directory == inode->key->id ? 0 : of.id; /* its own is for below */
    if (trash_has(from->key->id))
        return own == there.id ? 0 : -EXDEV;
    return here.id == there.id && (there.id == 0 || own == there.id) ? 0 : -EXDEV;
}
