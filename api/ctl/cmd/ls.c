/* object ls: printed while it arrives, for a bucket may have millions of names. */
#include "api/ctl/commands.h"

#include "api/ctl/names/glob.h"
#include "api/ctl/names/name.h"
#include "api/ctl/print/table.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

#define SIZE_COLUMN 12
#define TIME_COLUMN 21

struct listing {
    struct ctl *ctl;
    const char *glob; /* only names that match it; or NULL */
    uint64_t shown;
    bool begun;       /* JSON: the document's head is printed */
    bool comma;       /* JSON: an entry stands before the next one */
    json_t *prefixes; /* JSON: they follow the entries */
};

static void json_begin(struct listing *l)
{
    if (!l->begun)
        fputs("{\n  \"entries\": [", l->ctl->out);
    l->begun = true;
}

static void json_entry(struct listing *l, const struct dfc_entry *e)
{
    json_begin(l);
    if (e->is_prefix) {
        json_array_append_new(l->prefixes, json_string(e->name));
        return;
    }
    _cleanup_json_ json_t *one =
        json_pack("{s:s, s:I, s:I, s:s, s:{s:s, s:s}}", "name", e->name, "size",
                  (json_int_t)e->size, "modified_ms", (json_int_t)e->modified_ms, "version",
                  e->version, "checksum", "type", e->checksum_type, "value", e->checksum);
    if (e->cold)
        json_object_set_new(one, "cached", json_false());
    _cleanup_free_ char *text = json_text(one);
    fprintf(l->ctl->out, "%s\n    %s", l->comma ? "," : "", text);
    l->comma = true;
}

static void table_entry(struct listing *l, const struct dfc_entry *e)
{
    FILE *out = l->ctl->out;
    char size[24], modified[32];
    if (l->shown == 0 && l->ctl->headers)
        fprintf(out, "%-*s%-*sNAME\n", SIZE_COLUMN, "SIZE", TIME_COLUMN, "MODIFIED");
    table_put_clean(out, e->is_prefix ? "-" : ctl_size(l->ctl, e->size, size), SIZE_COLUMN);
    table_put_clean(out, e->is_prefix ? "-" : ctl_time(e->modified_ms, modified), TIME_COLUMN);
    table_put_clean(out, e->name, 0);
    fputc('\n', out);
}

static int print_entries(struct listing *l, struct dfc_list *list, uint64_t limit,
                         struct dfc_error *err)
{
    const struct dfc_entry *entry;
    int rc = 0;
    while (l->shown < limit && (rc = dfc_list_next(list, &entry, err)) > 0) {
        if (l->glob != NULL && !glob_matches(l->glob, entry->name))
            continue;
        if (l->ctl->json)
            json_entry(l, entry);
        else
            table_entry(l, entry);
        l->shown++;
        if (ferror(l->ctl->out))
            break; /* nobody reads on; the end of the program says so where it matters */
    }
    return rc < 0 ? rc : DFC_OK;
}

static void json_end(struct listing *l, bool incomplete)
{
    _cleanup_free_ char *prefixes = json_text(l->prefixes);
    json_begin(l);
    fprintf(l->ctl->out, "%s],\n  \"prefixes\": %s,\n  \"incomplete\": %s\n}\n",
            l->comma ? "\n  " : "", prefixes, incomplete ? "true" : "false");
}

/* Where nothing has it: the end of a list that is read in parts, and a list of less than the whole
 * bucket, do not tell. */
static bool prefix_is_wrong(const char *prefix, const struct args *args, bool incomplete)
{
    bool whole = !incomplete && !args->given[F_start_after] && !args->given[F_cached];
    bool none_wanted = args->given[F_limit] && args->number[F_limit] == 0;
    return prefix[0] != '\0' && whole && !none_wanted;
}

/* A glob or a prefix is what its user takes for a name. */
static int end_listing(const struct listing *l, const struct args *args, const char *prefix,
                       bool incomplete)
{
    struct error e = ERROR_INIT;
    if ((l->glob == NULL && !prefix_is_wrong(prefix, args, incomplete)) || l->shown > 0 ||
        args->given[F_allow_empty])
        return EXIT_OK;
    if (l->glob != NULL)
        error_set(
            &e, E_NOTHING_MATCHED,
            "no object matches '%s' (--allow-empty accepts that; --prefix takes a name as it is)",
            l->glob);
    else
        error_set(&e, E_NOTHING_MATCHED,
                  "no object has a name that begins with '%s' (--allow-empty accepts that)",
                  prefix);
    return ctl_fail_common(l->ctl, &e, EXIT_NOTHING);
}

static int list_bucket(struct ctl *ctl, const struct args *args, const char *bucket,
                       const struct dfc_list_options *options, const char *glob)
{
    struct dfc_error err;
    struct dfc_list *list;
    struct listing l = {.ctl = ctl, .glob = glob, .prefixes = json_array()};
    bool incomplete = false;
    uint64_t limit = args->given[F_limit] ? args->number[F_limit] : UINT64_MAX;
    _cleanup_free_ char *what = xprintf("list '%s'", bucket);
    int rc = dfc_list_open(ctl->client, bucket, options, &list, &err);
    if (rc == DFC_OK) {
        rc = print_entries(&l, list, limit, &err);
        incomplete = dfc_list_incomplete(list);
        if (ctl->json && (rc == DFC_OK || l.begun))
            json_end(&l, rc != DFC_OK || incomplete);
        else if (incomplete)
            ctl_remark(ctl, "dfcctl: the list is incomplete: a target does not answer");
        dfc_list_close(list);
    }
    json_decref(l.prefixes);
    if (rc == DFC_OK)
        return end_listing(&l, args, options->prefix, incomplete);
    int code = ctl_fail(ctl, &err, what);
    if (strcmp(err.code, error_name(E_NODE_UNREACHABLE)) == 0 && !options->partial)
        ctl_remark(ctl, "dfcctl: --partial lists what the other targets have");
    return code;
}

int object_ls(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    _cleanup_(object_name_done)
    struct object_name n = {0};
    if (args->word_count == 0)
        return bucket_ls(ctl, args);
    if (object_name_parse(args->words[0], &n, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    const char *glob = glob_is(n.key) ? n.key : NULL;
    _cleanup_free_ char *prefix = glob != NULL ? glob_prefix(n.key) : glob_name(n.key);
    if (glob != NULL && args->given[F_delimiter])
        return ctl_usage(ctl, "--delimiter does not go with a pattern such as '%s'", glob);
    if (n.key[0] != '\0' && args->given[F_prefix])
        return ctl_usage(ctl, "the prefix is given twice: '%s' and --prefix", n.key);
    struct dfc_list_options options = {
        .prefix = args->given[F_prefix] ? args->text[F_prefix] : prefix,
        .delimiter = args->text[F_delimiter],
        .start_after = args->text[F_start_after],
        .partial = args->given[F_partial],
        .cached = args->given[F_cached],
        .internal = args->given[F_internal],
    };
    if (glob == NULL && args->given[F_limit] && args->number[F_limit] > 0 &&
        args->number[F_limit] < 1000)
        options.page_size = (uint32_t)args->number[F_limit];
    return list_bucket(ctl, args, n.bucket, &options, glob);
}
