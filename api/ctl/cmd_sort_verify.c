/* sort verify. */
#include "api/ctl/commands.h"

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "sort/verify.h"

#define MEMORY (256u << 20)
#define KEY_MAP_MEMORY (1024u << 20)

DEFINE_CLEANUP(struct dfc_job, dfc_job_free);
DEFINE_CLEANUP(struct dfc_object_info, dfc_object_info_free);
DEFINE_CLEANUP(struct dfc_list, dfc_list_close);

/* Input shards that are not what was sorted. */
struct others {
    uint64_t count;
    char *first;
};

/* The buckets of a sort, as they are now. */
struct buckets {
    struct ctl *ctl;
    const struct sort_spec *spec;
    int64_t begun_ms; /* what is younger was not sorted */
    struct others younger, missing;
};

static void note(struct others *o, const char *name)
{
    if (o->count++ == 0)
        o->first = xstrdup(name);
}

static int fail(struct error *err, const struct dfc_error *e)
{
    int code = e->result == DFC_NOT_FOUND   ? E_OBJECT_NOT_FOUND
               : e->result == DFC_CANCELLED ? E_ABORTED
               : e->result == DFC_CORRUPT   ? E_CORRUPT
                                            : E_NET;
    return error_set(err, code, "%s", e->message);
}

/* --- input ------------------------------------------------------------------------------------ */

typedef int each_fn(void *arg, const struct sort_shard_info *info, struct error *err);

static int list_one(struct buckets *b, const char *name, uint64_t place, each_fn *each, void *arg,
                    struct error *err)
{
    struct dfc_error e;
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *info = NULL;
    struct sort_shard_info shard = {.name = name, .place = place};
    int rc = dfc_head(b->ctl->client, b->spec->input_bucket, name, &info, &e);
    if (rc != DFC_OK && rc != DFC_NOT_FOUND)
        return fail(err, &e);
    shard.missing = info == NULL;
    shard.size = info != NULL ? info->size : 0;
    if (shard.missing)
        note(&b->missing, name);
    else if (info->modified_ms > b->begun_ms)
        note(&b->younger, name);
    return each(arg, &shard, err);
}

static bool text_ends(const char *text, const char *with)
{
    size_t len = strlen(text);
    size_t n = strlen(with);
    return len >= n && strcmp(text + len - n, with) == 0;
}

static int list_prefixed(struct buckets *b, each_fn *each, void *arg, struct error *err)
{
    const struct dfc_list_options options = {.prefix = b->spec->input_prefix};
    struct dfc_error e;
    _cleanup_(dfc_list_closep)
    struct dfc_list *list = NULL;
    const struct dfc_entry *entry = NULL;
    int rc = 0;
    int more = dfc_list_open(b->ctl->client, b->spec->input_bucket, &options, &list, &e);
    while (more >= 0 && rc == 0 && (more = dfc_list_next(list, &entry, &e)) > 0) {
        const struct sort_shard_info shard = {.name = entry->name, .size = entry->size};
        if (!text_ends(entry->name, b->spec->input_extension))
            continue;
        if (entry->modified_ms > b->begun_ms)
            note(&b->younger, entry->name);
        else
            rc = each(arg, &shard, err);
    }
    return rc != 0 || more >= 0 ? rc : fail(err, &e);
}

static int list_template(struct buckets *b, each_fn *each, void *arg, struct error *err)
{
    const struct name_template *t = b->spec->input_template;
    _cleanup_(buf_done)
    struct buf name = BUF_INIT;
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < template_count(t); i++) {
        buf_clear(&name);
        template_name(t, i, &name);
        rc = list_one(b, buf_str(&name), i, each, arg, err);
    }
    return rc;
}

static int source_list(void *ctx, const struct sort_spec *spec, each_fn *each, void *arg,
                       struct error *err)
{
    struct buckets *b = ctx;
    if (spec->input_kind == SORT_INPUT_TEMPLATE)
        return list_template(b, each, arg, err);
    if (spec->input_kind == SORT_INPUT_PREFIX)
        return list_prefixed(b, each, arg, err);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < spec->input_name_count; i++)
        rc = list_one(b, spec->input_names[i], i, each, arg, err);
    return rc;
}

static int source_fetch(void *ctx, bool output, const char *name, int fd, struct error *err)
{
    const struct buckets *b = ctx;
    const char *bucket = output ? b->spec->output_bucket : b->spec->input_bucket;
    struct dfc_error e;
    return dfc_get_fd(b->ctl->client, bucket, name, fd, NULL, NULL, &e) == DFC_OK ? 0
                                                                                  : fail(err, &e);
}

/* --- key map ---------------------------------------------------------------------------------- */

struct feeding {
    int (*feed)(void *arg, const void *data, size_t len, struct error *err);
    void *arg;
    struct error *err;
    int rc;
};

static int feed_piece(void *context, const void *data, size_t size)
{
    struct feeding *f = context;
    f->rc = f->feed(f->arg, data, size, f->err);
    return f->rc != 0 ? -1 : 0;
}

static int source_key_map(void *ctx, const struct sort_spec *spec,
                          int (*feed)(void *arg, const void *data, size_t len, struct error *err),
                          void *arg, struct error *err)
{
    const struct buckets *b = ctx;
    struct feeding f = {.feed = feed, .arg = arg, .err = err};
    const struct dfc_sink sink = {.write = feed_piece, .context = &f};
    struct dfc_error e;
    if (spec->ekm_object == NULL)
        return error_set(err, E_UNSUPPORTED,
                         "a sort by the key map '%s' is not verified: it may "
                         "have changed since",
                         spec->ekm_file);
    if (dfc_get_sink(b->ctl->client, spec->ekm_bucket, spec->ekm_object, &sink, NULL, NULL, &e) ==
        DFC_OK)
        return 0;
    return f.rc != 0 ? f.rc : fail(err, &e);
}

/* --- the command ------------------------------------------------------------------------------ */

/* The sort's document, and the request in it. */
static int read_job(struct ctl *ctl, const char *id, json_t **doc, struct sort_spec **spec)
{
    struct dfc_error e;
    struct error err = ERROR_INIT;
    _cleanup_(dfc_job_freep)
    struct dfc_job *job = NULL;
    if (dfc_sort_show(ctl->client, id, &job, &e) != DFC_OK)
        return ctl_fail(ctl, &e, NULL);
    if (strcmp(job->state, "finished") != 0)
        error_set(&err, E_JOB_STATE, "job '%s' is %s: only a sort that has finished has an output",
                  id, job->state);
    int code = ctl_parse(ctl, job->document, doc);
    if (code != EXIT_OK)
        return code;
    if (err.code == 0 && sort_spec_parse(json_object_get(*doc, "spec"), spec, &err) == 0 &&
        (*spec)->dry_run)
        error_set(&err, E_JOB_STATE, "job '%s' was a dry run: there is nothing to compare", id);
    return err.code == 0 ? EXIT_OK : ctl_fail_common(ctl, &err, EXIT_FAILED);
}

static const char *work_dir(const struct args *args)
{
    const char *tmp = getenv("TMPDIR");
    if (args->given[F_work])
        return args->text[F_work];
    return tmp != NULL && tmp[0] != '\0' ? tmp : "/var/tmp";
}

static void print_others(const struct buckets *b)
{
    bool all = b->spec->input_kind == SORT_INPUT_PREFIX;
    if (b->younger.count > 0)
        ctl_remark(b->ctl,
                   "dfcctl: %llu input shards are younger than the sort, '%s' the first: %s",
                   (unsigned long long)b->younger.count, b->younger.first,
                   all ? "they are new, or were overwritten, and are left out"
                       : "they were overwritten since it began");
    if (b->missing.count > 0)
        ctl_remark(b->ctl, "dfcctl: %llu input shards do not exist (any more), '%s' the first",
                   (unsigned long long)b->missing.count, b->missing.first);
}

static void print_result(struct ctl *ctl, const char *id, const struct verify_result *r,
                         json_int_t younger)
{
    if (ctl->json) {
        ctl_print_json(ctl, json_pack("{s:s, s:I, s:I, s:b, s:b, s:s, s:I}", "job", id, "shards",
                                      (json_int_t)r->shards, "records", (json_int_t)r->records,
                                      "same_records", r->same_records, "same_order", r->same_order,
                                      "difference", r->difference, "younger_inputs", younger));
        return;
    }
    fprintf(ctl->out, "%s: %llu shards, %llu records: %s\n", id, (unsigned long long)r->shards,
            (unsigned long long)r->records,
            r->same_order && r->same_records ? "the input's, each in its place"
            : r->same_records                ? "the input's, but not in their order"
                                             : "not the input's");
    if (r->difference[0] != '\0')
        fprintf(ctl->out, "first difference: %s\n", r->difference);
}

int sort_verify(struct ctl *ctl, const struct args *args)
{
    const char *id = args->words[0];
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_(sort_spec_freep)
    struct sort_spec *spec = NULL;
    int code = read_job(ctl, id, &doc, &spec);
    if (code != EXIT_OK)
        return code;
    struct buckets buckets = {
        .ctl = ctl,
        .spec = spec,
        .begun_ms = json_integer_value(json_object_get(doc, "created_ms")),
    };
    const struct verify_source source = {.ctx = &buckets,
                                         .list = source_list,
                                         .fetch = source_fetch,
                                         .read_key_map = source_key_map};
    const struct verify_config config = {.spec = spec,
                                         .source = &source,
                                         .work_dir = work_dir(args),
                                         .memory_bytes = MEMORY,
                                         .key_map_bytes = KEY_MAP_MEMORY};
    struct verify_result result;
    struct error err = ERROR_INIT;
    int rc = verify_run(&config, &result, &err);
    print_others(&buckets);
    json_int_t younger = (json_int_t)buckets.younger.count;
    free(buckets.younger.first);
    free(buckets.missing.first);
    if (rc != 0)
        return ctl_fail_common(ctl, &err, rc == E_ABORTED ? EXIT_INTERRUPTED : EXIT_FAILED);
    print_result(ctl, id, &result, younger);
    return result.same_order && result.same_records ? EXIT_OK : EXIT_FAILED;
}
