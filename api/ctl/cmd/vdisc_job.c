/* vdisc burn --job: the image is made inside the cluster. */
#include <stdlib.h>
#include <string.h>

#include "api/ctl/cmd/vdisc_open.h"
#include "api/ctl/commands.h"
#include "api/ctl/job_wait.h"
#include "api/ctl/names/name.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "vdisc/iso_volume.h"

static int check_flags(const struct ctl *ctl, const struct args *args)
{
    static const enum flag_id others[] = {F_tree, F_parallel, F_entries_max, F_table_max};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (args->given[others[i]])
            return ctl_usage(ctl, "--%s does not go with --job", flag_table[others[i]].name);
    }
    if (args->given[F_input] && strncmp(args->text[F_input], "dfc://", 6) != 0)
        return ctl_usage(ctl,
                         "with --job the list is an object: '%s' is not dfc://BUCKET/KEY; store it "
                         "with 'dfcctl put'",
                         args->text[F_input]);
    if (args->given[F_base] && !args->given[F_store])
        return ctl_usage(ctl,
                         "with --job --base needs --store: contents that are not stored need no "
                         "older image");
    if (args->given[F_no_check] && args->given[F_store])
        return ctl_usage(ctl, "--no-check does not go with --store: the objects are read");
    return EXIT_OK;
}

/* An older image is of the new one's bucket, whose rights are asked for. */
static int put_older(json_t *value, const struct args *args, enum flag_id flag, const char *field,
                     const char *bucket, struct error *err)
{
    _cleanup_(object_name_done)
    struct object_name n = {0};
    if (!args->given[flag])
        return 0;
    int code = object_name_parse(args->text[flag], &n, err);
    if (code == 0 && strcmp(n.bucket, bucket) != 0)
        return error_set(err, E_INVALID,
                         "--%s: '%s' is not in the bucket '%s' of the new image: with --job both "
                         "images must have one bucket",
                         flag_table[flag].name, args->text[flag], bucket);
    if (code == 0)
        json_object_set_new(value, field, json_string(n.key));
    return code;
}

static int put_images(json_t *value, const struct args *args, const char *bucket, struct error *err)
{
    int code = put_older(value, args, F_from, "from", bucket, err);
    if (code == 0)
        code = put_older(value, args, F_base, "base", bucket, err);
    if (code != 0 || args->list_count[F_remove] == 0)
        return code;
    json_t *paths = json_array();
    for (size_t i = 0; i < args->list_count[F_remove]; i++)
        json_array_append_new(paths, json_string(args->list[F_remove][i]));
    json_object_set_new(value, "remove", paths);
    return 0;
}

/* Where the objects are: *bucket, the caller's.  Of an older image alone: in its bucket. */
static int put_source(json_t *value, const struct args *args, const char *to, char **bucket,
                      struct error *err)
{
    _cleanup_(object_name_done)
    struct object_name from = {0};
    const enum flag_id flag = args->given[F_input] ? F_input : F_bucket;
    if (!args->given[flag]) {
        *bucket = xstrdup(to);
        return 0;
    }
    int code = object_name_parse(args->text[flag], &from, err);
    if (code != 0)
        return code;
    json_object_set_new(value, flag == F_input ? "csv" : "prefix", json_string(from.key));
    *bucket = xstrdup(from.bucket);
    return 0;
}

/* Of flags whose fields are called as they are. */
static void put_flags(json_t *value, const struct args *args)
{
    static const enum flag_id flags[] = {F_digest, F_joliet, F_allow_empty};
    static const char *const fields[] = {"digest", "joliet", "allow_empty"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (args->given[flags[i]])
            json_object_set_new(value, fields[i], json_true());
    }
    if (args->given[F_no_check])
        json_object_set_new(value, "check", json_false());
    if (args->given[F_names])
        json_object_set_new(value, "names", json_string(args->text[F_names]));
    if (args->given[F_store])
        json_object_set_new(value, "store", json_string(args->text[F_store]));
}

static int put_date(json_t *value, const struct args *args, struct error *err)
{
    const char *text = args->given[F_date] ? args->text[F_date] : getenv("SOURCE_DATE_EPOCH");
    int64_t date_s = 0;
    if (text == NULL || text[0] == '\0')
        return 0;
    int rc = parse_i64(text, &date_s, err);
    if (rc != 0)
        return error_wrap(err, "%s", args->given[F_date] ? "--date" : "SOURCE_DATE_EPOCH");
    json_object_set_new(value, "date", json_integer((json_int_t)date_s));
    return 0;
}

static void put_identifiers(json_t *value, const struct iso_volume *v)
{
    json_t *texts = json_object();
    for (unsigned i = 0; i < ISO_IDENTIFIERS; i++) {
        if (v->identifiers[i] != NULL)
            json_object_set_new(texts, iso_identifier_name(i), json_string(v->identifiers[i]));
    }
    json_object_set_new(value, "identifiers", texts);
}

int vdisc_burn_job(struct ctl *ctl, const struct args *args, const struct object_name *to,
                   const struct iso_volume *volume)
{
    struct error e = ERROR_INIT;
    struct dfc_error err;
    _cleanup_json_ json_t *value = json_pack("{s:s, s:s}", "image", to->key, "to", to->bucket);
    _cleanup_free_ char *id = NULL, *bucket = NULL;
    int code = check_flags(ctl, args);
    if (code == EXIT_OK)
        code = job_check_wait(ctl, args);
    if (code != EXIT_OK)
        return code;
    if (put_source(value, args, to->bucket, &bucket, &e) != 0 ||
        put_images(value, args, to->bucket, &e) != 0 || put_date(value, args, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    put_flags(value, args);
    put_identifiers(value, volume);
    _cleanup_free_ char *text = json_text(value);
    if (dfc_bucket_burn(ctl->client, bucket, text, &id, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "burn");
    return job_started(ctl, args, id);
}
