#include "cluster/bucket_props.h"

#include <string.h>

#include "cluster/backend.h"
#include "cluster/ec_shape.h"
#include "common/jsonx.h"

#define LRU_MIN_AGE_MAX_MS (3650ULL * 24 * 3600 * 1000)
#define VALIDATE_INTERVAL_MAX_MS (3650ULL * 24 * 3600 * 1000)

static const char *const durability_names[] = {
    [DURABILITY_SYNC] = "sync",
    [DURABILITY_ASYNC] = "async",
};

const char *durability_name(enum durability d)
{
    return durability_names[d];
}

int durability_from_name(const char *name, enum durability *d, struct error *err)
{
    for (size_t i = 0; i < sizeof durability_names / sizeof durability_names[0]; i++) {
        if (strcmp(durability_names[i], name) == 0) {
            *d = (enum durability)i;
            return 0;
        }
    }
    return error_set(err, E_INVALID, "'%.32s' is not a durability: sync or async", name);
}

static const char *const quorum_names[] = {[WRITE_ALL] = "all", [WRITE_MAJORITY] = "majority"};
static const char *const read_names[] = {[READ_ANY] = "any", [READ_ACTING] = "acting"};

const char *write_quorum_name(enum write_quorum q)
{
    return quorum_names[q];
}

const char *read_from_name(enum read_from f)
{
    return read_names[f];
}

static const char *const write_policy_names[] = {
    [WRITE_POLICY_NONE] = "none",
    [WRITE_POLICY_THROUGH] = "through",
    [WRITE_POLICY_BACK] = "back",
};

const char *write_policy_name(enum write_policy p)
{
    return write_policy_names[p];
}

static int write_policy_from_name(const char *name, enum write_policy *p, struct error *err)
{
    for (size_t i = 0; i < sizeof write_policy_names / sizeof write_policy_names[0]; i++) {
        if (strcmp(write_policy_names[i], name) == 0) {
            *p = (enum write_policy)i;
            return 0;
        }
    }
    return error_set(err, E_INVALID,
                     "field 'props.write_policy': '%.32s' is not none, through or back", name);
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

bool bucket_props_equal(const struct bucket_props *a, const struct bucket_props *b)
{
    return a->copies == b->copies && a->ec_data == b->ec_data && a->ec_parity == b->ec_parity &&
           a->ec_min_size == b->ec_min_size && a->durability == b->durability &&
           a->checksum == b->checksum && a->verify_on_read == b->verify_on_read &&
           same_text(a->backend, b->backend) && a->lru_off == b->lru_off &&
           a->lru_min_age_ms == b->lru_min_age_ms && a->write_quorum == b->write_quorum &&
           a->read_from == b->read_from && a->write_policy == b->write_policy &&
           a->validate == b->validate && a->validate_interval_ms == b->validate_interval_ms &&
           a->stale_off == b->stale_off && a->range_fetch == b->range_fetch;
}

/* Can what is written here get to the backend? */
static int check_write_policy(const struct bucket_props *p, struct error *err)
{
    if (p->write_policy == WRITE_POLICY_NONE)
        return 0;
    if (p->backend == NULL)
        return error_set(err, E_INVALID,
                         "field 'write_policy' is of buckets with a backend, and this bucket has "
                         "none");
    if (!backend_is_written(p->backend))
        return error_set(err, E_UNSUPPORTED,
                         "field 'write_policy': this release writes to s3 and gs alone");
    return 0;
}

static bool is_of_backends(const struct bucket_props *p)
{
    return p->validate != VALIDATE_NEVER || p->validate_interval_ms > 0 || p->stale_off ||
           p->range_fetch != RANGE_FETCH_SIZE;
}

/* The copies are of what says where the slices are, and of smaller objects: both survive the same.
 */
static int check_ec(const struct bucket_props *p, struct error *err)
{
    if (p->ec_data == 0 && p->ec_parity == 0)
        return 0;
    if (p->ec_data < 1 || p->ec_data > EC_DATA_SLICES_MAX || p->ec_parity < 1 ||
        p->ec_parity >= COPIES_MAX)
        return error_set(err, E_INVALID, "field 'ec': data is 1 to %d, parity 1 to %d",
                         EC_DATA_SLICES_MAX, COPIES_MAX - 1);
    if (p->copies != p->ec_parity + 1)
        return error_set(err, E_INVALID,
                         "field 'copies': with ec %u+%u it is %u (small objects are whole copies, "
                         "one more than parity): leave it out, or leave 'ec' out for copies alone",
                         p->ec_data, p->ec_parity, p->ec_parity + 1);
    if (p->backend != NULL)
        return error_set(err, E_UNSUPPORTED,
                         "field 'ec': this release has no objects in slices in a bucket with a "
                         "backend");
    if (p->write_quorum == WRITE_MAJORITY)
        return error_set(err, E_UNSUPPORTED,
                         "field 'ec': where objects are in slices all owners are written to: "
                         "write_quorum all");
    return 0;
}

int bucket_props_check(const struct bucket_props *p, struct error *err)
{
    if (p->copies == 0)
        return error_set(err, E_INVALID, "field 'copies' must be at least 1");
    if (p->copies > COPIES_MAX)
        return error_set(err, E_INVALID, "field 'copies' must be at most %d", COPIES_MAX);
    int sliced = check_ec(p, err);
    if (sliced != 0)
        return sliced;
    if (p->write_quorum == WRITE_MAJORITY && (p->copies == 1 || p->ec_data > 0))
        return error_set(err, E_INVALID,
                         "field 'write_quorum': majority is for buckets with several whole copies");
    if (p->copies > 1 && p->backend != NULL)
        return error_set(err, E_UNSUPPORTED,
                         "field 'copies': what a bucket with a backend has can be read again, and "
                         "this release keeps 1 copy of it");
    if (p->lru_min_age_ms > LRU_MIN_AGE_MAX_MS)
        return error_set(err, E_INVALID, "field 'lru_min_age' is more than ten years");
    if (p->backend == NULL && (p->lru_off || p->lru_min_age_ms > 0))
        return error_set(err, E_INVALID,
                         "field 'lru': only objects that can be read again from a "
                         "backend are evicted, and this bucket has none");
    if (p->backend == NULL && is_of_backends(p))
        return error_set(err, E_INVALID,
                         "fields 'validate', 'stale' and 'range_fetch' are for buckets with a "
                         "backend, and this one has none");
    if (p->validate_interval_ms > VALIDATE_INTERVAL_MAX_MS)
        return error_set(err, E_INVALID, "field 'validate_interval' is more than ten years");
    if (p->validate == VALIDATE_INTERVAL && p->validate_interval_ms == 0)
        return error_set(err, E_INVALID,
                         "field 'validate_interval' says how long what the "
                         "backend was asked about counts as fresh; give it with "
                         "'validate': \"interval\"");
    int r = p->backend != NULL ? backend_check(p->backend, err) : 0;
    return r != 0 ? r : check_write_policy(p, err);
}

static const char *const validate_words[VALIDATE_MODES] = {"never", "open", "interval"};
static const char *const range_fetch_words[RANGE_FETCHES] = {"size", "never", "prefetch"};

json_t *bucket_props_to_json(const struct bucket_props *p)
{
    json_t *doc = json_pack("{s:I, s:s, s:s, s:b}", "copies", (json_int_t)p->copies, "durability",
                            durability_name(p->durability), "checksum", checksum_name(p->checksum),
                            "verify_on_read", (int)p->verify_on_read);
    if (p->copies > 1 || p->write_quorum != WRITE_ALL || p->read_from != READ_ACTING) {
        json_object_set_new(doc, "write_quorum", json_string(write_quorum_name(p->write_quorum)));
        json_object_set_new(doc, "read_from", json_string(read_from_name(p->read_from)));
    }
    if (p->ec_data > 0)
        json_object_set_new(doc, "ec",
                            json_pack("{s:I, s:I, s:I}", "data", (json_int_t)p->ec_data, "parity",
                                      (json_int_t)p->ec_parity, "min_size",
                                      (json_int_t)p->ec_min_size));
    if (p->backend == NULL)
        return doc;
    json_object_set_new(doc, "backend", json_string(p->backend));
    json_object_set_new(doc, "lru", json_boolean(!p->lru_off));
    json_object_set_new(doc, "lru_min_age", json_integer((json_int_t)p->lru_min_age_ms));
    json_object_set_new(doc, "write_policy", json_string(write_policy_name(p->write_policy)));
    json_object_set_new(doc, "validate", json_string(validate_words[p->validate]));
    json_object_set_new(doc, "validate_interval",
                        json_integer((json_int_t)p->validate_interval_ms));
    json_object_set_new(doc, "stale", json_boolean(!p->stale_off));
    json_object_set_new(doc, "range_fetch", json_string(range_fetch_words[p->range_fetch]));
    return doc;
}

static int copies_from_json(json_t *doc, struct bucket_props *p, struct error *err)
{
    uint64_t copies = p->copies;
    int r = json_get_u64(doc, "props", "copies", &copies, err);
    if (r != 0)
        return r;
    if (copies > UINT32_MAX)
        return error_set(err, E_INVALID, "field 'props.copies' is out of range");
    p->copies = (uint32_t)copies;
    return 0;
}

/* With it come copies, unless they are given, too: bucket_props_check() looks at these. */
static int ec_from_json(json_t *doc, struct bucket_props *p, struct error *err)
{
    json_t *ec = json_object_get(doc, "ec");
    struct ec_shape shape = {.min_size = p->ec_data > 0 ? p->ec_min_size : EC_MIN_SIZE_DEFAULT};
    if (ec == NULL || json_is_null(ec))
        return 0;
    int r = ec_shape_from_json(ec, &shape, err);
    if (r != 0)
        return r;
    p->ec_data = shape.data < UINT32_MAX ? (uint32_t)shape.data : UINT32_MAX;
    p->ec_parity = shape.parity < UINT32_MAX ? (uint32_t)shape.parity : UINT32_MAX;
    p->ec_min_size = shape.min_size;
    if (json_object_get(doc, "copies") == NULL)
        p->copies = p->ec_parity < COPIES_MAX ? p->ec_parity + 1 : COPIES_MAX;
    return 0;
}

/* The field's value as the place of its name among the words; what is absent stays. */
static int word_from_json(json_t *doc, const char *field, const char *const *words, size_t count,
                          unsigned *at, struct error *err)
{
    const char *word = words[*at];
    _cleanup_(buf_done)
    struct buf known = BUF_INIT;
    int r = json_get_str(doc, "props", field, &word, err);
    if (r != 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0) {
            *at = (unsigned)i;
            return 0;
        }
        buf_printf(&known, "%s%s", i > 0 ? " or " : "", words[i]);
    }
    return error_set(err, E_INVALID, "field 'props.%s': '%.32s' is not %s", field, word,
                     buf_str(&known));
}

static int who_from_json(json_t *doc, struct bucket_props *p, struct error *err)
{
    unsigned quorum = p->write_quorum, from = p->read_from;
    int r = word_from_json(doc, "write_quorum", quorum_names, 2, &quorum, err);
    if (r == 0)
        r = word_from_json(doc, "read_from", read_names, 2, &from, err);
    p->write_quorum = (enum write_quorum)quorum;
    p->read_from = (enum read_from)from;
    return r;
}

/* The object form becomes the URL, in the document. */
static int backend_from_json(json_t *doc, struct bucket_props *p, struct error *err)
{
    json_t *value = json_object_get(doc, "backend");
    if (json_is_object(value)) {
        _cleanup_(buf_done)
        struct buf url = BUF_INIT;
        int r = backend_url_from_json(value, &url, err);
        if (r != 0)
            return r;
        json_object_set_new(doc, "backend", json_string(buf_str(&url)));
    }
    return json_get_str(doc, "props", "backend", &p->backend, err);
}

static int lru_from_json(json_t *doc, struct bucket_props *p, struct error *err)
{
    bool on = !p->lru_off;
    int r = json_get_bool(doc, "props", "lru", &on, err);
    p->lru_off = !on;
    return r != 0 ? r : json_get_duration_ms(doc, "props", "lru_min_age", &p->lru_min_age_ms, err);
}

static int write_policy_from_json(json_t *doc, struct bucket_props *p, struct error *err)
{
    const char *name = write_policy_name(p->write_policy);
    int r = json_get_str(doc, "props", "write_policy", &name, err);
    return r != 0 ? r : write_policy_from_name(name, &p->write_policy, err);
}

static int freshness_from_json(json_t *doc, struct bucket_props *p, struct error *err)
{
    unsigned validate = p->validate, range_fetch = p->range_fetch;
    bool stale = !p->stale_off;
    int r;
    if ((r = word_from_json(doc, "validate", validate_words, VALIDATE_MODES, &validate, err)) !=
            0 ||
        (r = json_get_duration_ms(doc, "props", "validate_interval", &p->validate_interval_ms,
                                  err)) != 0 ||
        (r = json_get_bool(doc, "props", "stale", &stale, err)) != 0 ||
        (r = word_from_json(doc, "range_fetch", range_fetch_words, RANGE_FETCHES, &range_fetch,
                            err)) != 0)
        return r;
    p->validate = validate;
    p->stale_off = !stale;
    p->range_fetch = range_fetch;
    return 0;
}

int bucket_props_from_json(json_t *doc, struct bucket_props *p, struct error *err)
{
    const char *durability = durability_name(p->durability);
    const char *checksum = checksum_name(p->checksum);
    int r;
    if ((r = copies_from_json(doc, p, err)) != 0 || (r = ec_from_json(doc, p, err)) != 0 ||
        (r = who_from_json(doc, p, err)) != 0 ||
        (r = json_get_str(doc, "props", "durability", &durability, err)) != 0 ||
        (r = json_get_str(doc, "props", "checksum", &checksum, err)) != 0 ||
        (r = json_get_bool(doc, "props", "verify_on_read", &p->verify_on_read, err)) != 0 ||
        (r = backend_from_json(doc, p, err)) != 0 || (r = lru_from_json(doc, p, err)) != 0 ||
        (r = write_policy_from_json(doc, p, err)) != 0 ||
        (r = freshness_from_json(doc, p, err)) != 0)
        return r;
    if ((r = durability_from_name(durability, &p->durability, err)) != 0)
        error_wrap(err, "field 'props.durability'");
    else if ((r = checksum_from_name(checksum, &p->checksum, err)) != 0)
        error_wrap(err, "field 'props.checksum'");
    return r;
}
