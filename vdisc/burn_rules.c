#include "vdisc/burn_rules.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/mem.h"
#include "vdisc/placing.h"

#define SUFFIX ".vdsc"

char *burn_rules_header_name(const char *key, const struct checksum_value *sha256)
{
    char hex[2 * CHECKSUM_MAX + 1];
    checksum_hex(sha256, hex);
    return xprintf("%s.%.16s" BURN_HEADER_SUFFIX, key, hex);
}

bool burn_rules_is_header(const char *name, const char *key)
{
    enum { HEX = 16, TAIL = 1 + HEX + sizeof BURN_HEADER_SUFFIX - 1 };
    const size_t len = strlen(name);
    if (len <= TAIL)
        return false;
    const char *tail = name + len - TAIL;
    if (tail[0] != '.' || strspn(tail + 1, "0123456789abcdef") != HEX ||
        strcmp(tail + 1 + HEX, BURN_HEADER_SUFFIX) != 0)
        return false;
    return key == NULL || (strlen(key) == len - TAIL && strncmp(name, key, len - TAIL) == 0);
}

int burn_rules_check_header(const char *bucket, const char *key, const char *sha256,
                            const uint8_t wanted[static TABLE_ID], struct error *err)
{
    struct checksum_value sum;
    int rc = checksum_parse(CHECKSUM_SHA256, sha256, &sum, err);
    if (rc != 0 || memcmp(sum.bytes, wanted, TABLE_ID) == 0)
        return rc;
    return error_set(err, E_OBJECT_EXISTS,
                     "object '%s/%s' exists, and is not the header of this image: remove it, or "
                     "take another name for the image",
                     bucket, key);
}

static bool is_internal(const char *key)
{
    static const char *const folders[] = {BURN_UNIQUE "/", BURN_PACKS "/", BURN_LEASES};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (strncmp(key, folders[i], strlen(folders[i])) == 0)
            return true;
    }
    return false;
}

bool burn_rules_is_image(const char *key)
{
    const size_t len = strlen(key), n = strlen(SUFFIX);
    return len > n && strcmp(key + len - n, SUFFIX) == 0 && !is_internal(key);
}

int burn_rules_check_name(const char *key, struct error *err)
{
    if (burn_rules_is_image(key))
        return 0;
    return error_set(err, E_NAME,
                     "'%.200s' is no name of an image: 'vdisc gc' would remove its contents; take "
                     "NAME.vdsc, outside of " BURN_UNIQUE "/, " BURN_PACKS "/ and " BURN_LEASES,
                     key);
}

int burn_rules_busy(const char *bucket, const char *key, const char *what, struct error *err)
{
    return error_set(err, E_OBJECT_RESERVED,
                     "%s is at work: repeat when it has ended; if it was killed, remove the object "
                     "'%s/%s'",
                     what, bucket, key);
}

/* --- rows ------------------------------------------------------------------------------------- */

int burn_rules_count(const struct plan *p, uint64_t rows_max, struct error *err)
{
    if (rows_max == 0 || plan_rows(p) <= rows_max)
        return 0;
    return error_set(
        err, E_IMAGE_TOO_LARGE,
        "the image has more than %llu entries (vdisc_entries_max): make several images",
        (unsigned long long)rows_max);
}

int burn_rules_not_empty(const struct plan *p, bool allowed, struct error *err)
{
    if (allowed || plan_rows(p) > 0)
        return 0;
    return error_set(err, E_NOTHING_MATCHED,
                     "there is no entry: the image would be empty (--allow-empty burns it)");
}

static int add_file(const struct burn_list *l, const struct burn_row *row, struct error *err)
{
    struct reference to;
    _cleanup_free_ char *host = NULL;
    int rc = reference_parse(row->address, &to, &host, err);
    if (rc == 0)
        rc = l->check(l->ctx, row->address, &to, host, err);
    const struct plan_part part = {
        .bucket = to.bucket, .key = to.key, .object_size = row->entry.size};
    if (rc == 0)
        plan_add(l->plan, PLAN_NEW, row, &part);
    reference_done(&to);
    return rc == 0 ? 0 : error_wrap(err, "line %llu", (unsigned long long)row->line);
}

int burn_list_row(void *list, uint64_t line, const char *const *fields, size_t count,
                  struct error *err)
{
    const struct burn_list *l = list;
    struct burn_row row;
    int rc = burn_row_parse(line, fields, count, &row, err);
    if (rc != 0)
        return rc > 0 ? 0 : rc;
    if (row.entry.kind == ISO_FILE)
        rc = add_file(l, &row, err);
    else
        plan_add(l->plan, PLAN_NEW, &row, NULL);
    return rc == 0 ? burn_rules_count(l->plan, l->rows_max, err) : rc;
}

/* Only a SHA-256 makes two objects one content. */
static void set_checksum(const struct burn_found *found, struct checksum_value *out)
{
    if (found->checksum_type == NULL || found->checksum == NULL ||
        strcmp(found->checksum_type, checksum_name(CHECKSUM_SHA256)) != 0 ||
        checksum_parse(CHECKSUM_SHA256, found->checksum, out, NULL) != 0)
        *out = (struct checksum_value){.type = CHECKSUM_NONE};
}

void burn_rules_add(struct plan *p, const char *bucket, const char *prefix, const char *name,
                    const struct burn_found *found)
{
    const char *path = name + strlen(prefix);
    const size_t len = strlen(path);
    const bool is_directory = len > 0 && path[len - 1] == '/' && found->size == 0;
    struct burn_row row = {
        .entry = {.path = path,
                  .kind = is_directory ? ISO_DIRECTORY : ISO_FILE,
                  .size = found->size,
                  .mtime_s = is_directory ? ISO_NO_TIME : found->modified_ms / 1000,
                  .mode = ISO_NO_MODE}};
    const struct plan_part part = {.bucket = bucket, .key = name, .object_size = found->size};
    if (len == 0)
        return;
    set_checksum(found, &row.checksum);
    plan_add(p, PLAN_NEW, &row, is_directory ? NULL : &part);
}

/* --- objects ---------------------------------------------------------------------------------- */

/* "line 7: " of an object that a list names. */
static const char *where(const struct plan_object *o, char out[static 32])
{
    out[0] = '\0';
    if (o->line > 0)
        snprintf(out, 32, "line %llu: ", (unsigned long long)o->line);
    return out;
}

int burn_rules_changed(const struct plan_object *o, const char *what, struct error *err)
{
    char line[32];
    return error_set(err, E_IMAGE_CHANGED,
                     "%sobject '%s/%s' %s: correct the list, or put the object again",
                     where(o, line), o->bucket, o->key, what);
}

int burn_rules_missing(const struct plan_object *o, const char *why, struct error *err)
{
    char line[32];
    _cleanup_free_ char *name = xprintf("object '%s/%s'", o->bucket, o->key);
    if (strncmp(why, name, strlen(name)) == 0)
        return error_set(err, E_OBJECT_NOT_FOUND, "%s%.700s", where(o, line), why);
    return error_set(err, E_OBJECT_NOT_FOUND, "%s%s: %.500s", where(o, line), name, why);
}

static int compare_lines(const void *a, const void *b, void *context)
{
    const struct plan_object *objects = context;
    const uint32_t na = *(const uint32_t *)a, nb = *(const uint32_t *)b;
    const uint64_t la = objects[na].line, lb = objects[nb].line;
    return la != lb ? (la > lb) - (la < lb) : (na > nb) - (na < nb);
}

uint32_t *burn_rules_order(const struct plan_object *objects, uint32_t count)
{
    uint32_t *order = xcalloc((size_t)count + 1, sizeof *order);
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof *order, compare_lines, (void *)objects);
    return order;
}

int burn_rules_size(const struct plan_object *o, uint64_t size, struct error *err)
{
    if (size == o->size)
        return 0;
    _cleanup_free_ char *what = xprintf("has %llu bytes, and the list says %llu",
                                        (unsigned long long)size, (unsigned long long)o->size);
    return burn_rules_changed(o, what, err);
}

char *burn_rules_pin(const struct checksum_value *sum)
{
    char hex[2 * CHECKSUM_MAX + 1];
    if (sum->type == CHECKSUM_NONE)
        return NULL;
    checksum_hex(sum, hex);
    return xprintf("%s:%s", checksum_name(sum->type), hex);
}

/* The list's checksum counts more than the store's, if it has another type. */
static int set_pin(struct plan_object *o, const struct burn_found *found, struct error *err)
{
    o->pin = burn_rules_pin(&o->checksum);
    bool known = found->checksum != NULL && found->checksum[0] != '\0';
    _cleanup_free_ char *stored =
        known ? xprintf("%s:%s", found->checksum_type, found->checksum) : NULL;
    if (o->pin == NULL)
        o->pin = steal(stored);
    else if (known && strcmp(found->checksum_type, checksum_name(o->checksum.type)) == 0 &&
             strcasecmp(stored, o->pin) != 0)
        return burn_rules_changed(o, BURN_OTHER_CHECKSUM, err);
    return 0;
}

int burn_rules_take(struct plan_object *o, const struct burn_found *found, struct error *err)
{
    if (o->wanted_etag != NULL && strcmp(o->wanted_etag, found->etag) != 0)
        return burn_rules_changed(o, BURN_REPLACED, err);
    int rc = burn_rules_size(o, found->size, err);
    if (rc != 0)
        return rc;
    o->etag = xstrdup(found->etag);
    return set_pin(o, found, err);
}

void burn_rules_trust(struct plan_object *o)
{
    o->etag = o->wanted_etag != NULL ? xstrdup(o->wanted_etag) : NULL;
    o->pin = burn_rules_pin(&o->checksum);
}
