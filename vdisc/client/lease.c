#include "vdisc/client/lease.h"

#include <stdlib.h>
#include <string.h>

#include "api/failure.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/rng.h"
#include "vdisc/burn_rules.h"

#define BURNS BURN_LEASES "burn/"

enum { UNIQUE = 8, DIGITS = 2 * UNIQUE };

int lease_take(struct lease *l, struct dfc_client *c, const char *bucket, const char *image,
               struct dfc_error *err)
{
    uint8_t bytes[UNIQUE];
    char hex[DIGITS + 1];
    random_bytes(bytes, sizeof bytes);
    format_hex(bytes, sizeof bytes, hex);
    *l = (struct lease){.client = c, .bucket = xstrdup(bucket)};
    l->key =
        image != NULL ? xprintf(BURNS "%s/%s", hex, image) : xprintf(BURN_COLLECTIONS "%s", hex);
    atomic_store(&l->renew_ms, clock_ms() + LEASE_RENEW_MS);
    int rc = dfc_put_memory(c, bucket, l->key, "", 0, NULL, NULL, err);
    if (rc == DFC_OK)
        return DFC_OK;
    free(l->bucket);
    free(l->key);
    *l = (struct lease){.client = NULL};
    return rc;
}

int lease_check(const struct lease *l, struct dfc_error *err)
{
    struct dfc_object_info *info = NULL;
    if (l->client == NULL)
        return DFC_OK;
    int rc = dfc_head(l->client, l->bucket, l->key, &info, err);
    dfc_object_info_free(info);
    if (rc != DFC_NOT_FOUND)
        return rc;
    return failure_set(err, DFC_CONFLICT, E_OBJECT_RESERVED,
                       "object '%s/%s', which says that this is at work, was removed: 'vdisc gc' "
                       "may have removed contents; repeat",
                       l->bucket, l->key);
}

static bool is_write_once(const struct dfc_error *err)
{
    return strcmp(err->code, error_name(E_WRITE_ONCE)) == 0;
}

/* One thread of all.  A bucket of objects that stay keeps the first one, and all contents. */
int lease_renew(struct lease *l, struct dfc_error *err)
{
    const uint64_t now_ms = clock_ms();
    uint_fast64_t due_ms = atomic_load(&l->renew_ms);
    if (l->client == NULL || now_ms < due_ms ||
        !atomic_compare_exchange_strong(&l->renew_ms, &due_ms, now_ms + LEASE_RENEW_MS))
        return DFC_OK;
    int rc = lease_check(l, err);
    if (rc == DFC_OK)
        rc = dfc_put_memory(l->client, l->bucket, l->key, "", 0, NULL, NULL, err);
    return rc != DFC_OK && is_write_once(err) ? DFC_OK : rc;
}

/* A bucket of objects that stay cannot lose it: then the image that is there says that it ended. */
void lease_end(struct lease *l)
{
    struct dfc_error err;
    if (l->client != NULL)
        dfc_delete(l->client, l->bucket, l->key, &err);
    free(l->bucket);
    free(l->key);
    *l = (struct lease){.client = NULL};
}

static int refuse(const char *bucket, const char *key, const char *what, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    burn_rules_busy(bucket, key, what, &e);
    return failure_common(err, DFC_CONFLICT, &e);
}

/* Is the image of this burn there?  1, 0, or a failure. */
static int has_image(struct dfc_client *c, const char *bucket, const char *key,
                     struct dfc_error *err)
{
    struct dfc_object_info *info = NULL;
    const size_t folder = strlen(BURNS) + DIGITS + 1;
    if (strlen(key) <= folder)
        return 0;
    int rc = dfc_head(c, bucket, key + folder, &info, err);
    dfc_object_info_free(info);
    return rc == DFC_OK ? 1 : rc == DFC_NOT_FOUND ? 0 : rc;
}

/* In a bucket of objects that stay it stays, too. */
static int end_old(struct dfc_client *c, const char *bucket, const char *key, struct dfc_error *err)
{
    int rc = dfc_delete(c, bucket, key, err);
    return rc == DFC_NOT_FOUND || (rc != DFC_OK && is_write_once(err)) ? DFC_OK : rc;
}

/* What is at work, and has put its object at `since_ms` or later?  Then it is refused. */
static int look(struct dfc_client *c, const char *bucket, const char *folder, int64_t since_ms,
                struct dfc_error *err)
{
    const bool burns = strcmp(folder, BURNS) == 0;
    const struct dfc_list_options options = {.prefix = folder};
    const struct dfc_entry *entry;
    struct dfc_list *list;
    int rc = dfc_list_open(c, bucket, &options, &list, err);
    if (rc != DFC_OK)
        return rc;
    while ((rc = dfc_list_next(list, &entry, err)) > 0) {
        const bool is_old = entry->modified_ms < since_ms;
        if (is_old && !burns)
            continue;
        rc = is_old  ? end_old(c, bucket, entry->name, err)
             : burns ? has_image(c, bucket, entry->name, err)
                     : 0;
        if (rc == 0 && !is_old)
            rc = refuse(bucket, entry->name, burns ? "a burn" : "'vdisc gc'", err);
        if (rc < 0)
            break;
    }
    dfc_list_close(list);
    return rc;
}

int lease_refuse_collection(struct dfc_client *c, const char *bucket, struct dfc_error *err)
{
    return look(c, bucket, BURN_COLLECTIONS, clock_wall_ms() - BURN_COLLECTION_MS, err);
}

int lease_refuse_burns(struct dfc_client *c, const char *bucket, int64_t since_ms,
                       struct dfc_error *err)
{
    const int64_t fresh_ms = clock_wall_ms() - LEASE_FRESH_MS;
    return look(c, bucket, BURNS, since_ms < fresh_ms ? since_ms : fresh_ms, err);
}
