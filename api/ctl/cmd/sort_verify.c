/* sort verify. */
#include "api/ctl/commands.h"

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "sort/local/verify.h"

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
    int stopped; /* what ended the task's reading of the list */
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

/* A shard that is missing ends the task: those behind it are counted still. */
static int tell(struct buckets *b, each_fn *each, void *arg, const struct sort_shard_info *shard,
                struct error *err)
{
    if (b->stopped == 0)
        b->stopped = each(arg, shard, err);
    return b->stopped == E_SHARD_MISSING ? 0 : b->stopped;
}

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
    return tell(b, each, arg, &shard, err);
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
    if (spec->input_kind == SORT_INPUT_PREFIX)
        return list_prefixed(b, each, arg, err);
    int rc = 0;
    if (spec->input_kind == SORT_INPUT_TEMPLATE)
        rc = list_template(b, each, arg, err);
    for (size_t i = 0; rc == 0 && i < spec->input_name_count; i++)
        rc = list_one(b, spec->input_names[i], i, each, arg, err);
    return rc != 0 ? rc : b->stopped;
}

static int source_fetch(void *ctx, bool output, const char *name, int fd, struct error *err)
{
    const struct buckets *b = ctx;
    const char *bucket = output ? b->spec->output_bucket : b->spec->input_bucket;
    struct dfc_error e;
    return dfc_get_fd(b->ctl->client, bucket, name, fd, NULL, NULL, &e) == DFC_OK ? 0
                                                                                  : fail(err, &e);
}

static int source_list_outputs(void *ctx, const char *prefix,
                               int (*each)(void *arg, const char *name, struct error *err),
                               void *arg, struct error *err)
{
    const struct buckets *b = ctx;
    const struct dfc_list_options options = {.prefix = prefix};
    struct dfc_error e;
    _cleanup_(dfc_list_closep)
    struct dfc_list *list = NULL;
    const struct dfc_entry *entry = NULL;
    int rc = 0;
    int more = dfc_list_open(b->ctl->client, b->spec->output_bucket, &options, &list, &e);
    while (more >= 0 && rc == 0 && (more = dfc_list_next(list, &entry, &e)) > 0)
        rc = each(arg, entry->name, err);
    return rc != 0 || more >= 0 ? rc : fail(err, &e);
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

/* What the sort itself has counted. */
struct counted {
    uint64_t inputs, shards, records;
};

static uint64_t u64_at(json_t *obj, const char *field)
{
    json_int_t n = json_integer_value(json_object_get(obj, field));
    return n > 0 ? (uint64_t)n : 0;
}

static struct counted counted_by_sort(json_t *doc)
{
    json_t *plan = json_object_get(doc, "plan");
    struct counted c = {.shards = u64_at(plan, "shards"), .records = u64_at(plan, "records")};
    const char *id;
    json_t *target;
    json_object_foreach(json_object_get(doc, "targets"), id, target)
    {
        json_t *extract = json_object_get(json_object_get(target, "status"), "extract");
        c.inputs += u64_at(json_object_get(extract, "shards"), "total");
    }
    return c;
}

/* What was found, against what the sort has counted. */
struct verdict {
    const char *id;
    const struct buckets *buckets;
    const struct verify_result *result;
    struct counted sorted;
    bool counted;    /* the result's records are of shards that were sorted */
    bool comparable; /* and are all of them: places, and what is beside the output, are known */
    bool complete;   /* each record of the sort was compared, and there was one */
    bool right;
};

static struct verdict judge(const char *id, const struct buckets *b, const struct verify_result *r,
                            struct counted sorted, bool was_read)
{
    struct verdict v = {.id = id, .buckets = b, .result = r, .sorted = sorted};
    bool left_out = b->spec->input_kind == SORT_INPUT_PREFIX; /* the younger ones were */
    v.counted = was_read && (left_out || b->younger.count == 0);
    v.comparable = v.counted && r->records == sorted.records;
    v.complete = r->compared > 0 && r->compared == sorted.records && r->records == sorted.records;
    v.right = v.complete && r->same_records && r->same_order && r->strays == 0;
    v.comparable = v.comparable || v.right; /* overwritten with the same bytes */
    return v;
}

static void print_json(struct ctl *ctl, const struct verdict *v)
{
    const struct verify_result *r = v->result;
    bool complete = v->complete && v->comparable;
    json_t *doc =
        json_pack("{s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:b, s:b, s:s}", "job", v->id, "ok",
                  v->right, "comparable", v->comparable, "compared", (json_int_t)r->compared, "of",
                  (json_int_t)v->sorted.records, "shards",
                  (json_int_t)(v->comparable ? r->shards : v->sorted.shards), "records",
                  (json_int_t)r->records, "same_records", complete && r->same_records, "same_order",
                  complete && r->same_order, "difference", v->comparable ? r->difference : "");
    if (!v->counted && !v->right)
        json_object_set_new(doc, "records", json_null());
    json_object_set_new(doc, "input_shards_sorted", json_integer((json_int_t)v->sorted.inputs));
    json_object_set_new(doc, "younger_inputs", json_integer((json_int_t)v->buckets->younger.count));
    json_object_set_new(doc, "missing_inputs", json_integer((json_int_t)v->buckets->missing.count));
    json_object_set_new(doc, "stray_shards",
                        v->comparable ? json_integer((json_int_t)r->strays) : json_null());
    json_object_set_new(doc, "first_stray", json_string_escaped(v->comparable ? r->stray : ""));
    ctl_print_json(ctl, doc);
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* Why records could not be compared; `lead` stands before the first reason. */
static void print_uncompared(FILE *out, const struct verdict *v, const char *lead)
{
    const struct others *younger = &v->buckets->younger, *missing = &v->buckets->missing;
    bool listed = v->buckets->spec->input_kind == SORT_INPUT_PREFIX;
    if (younger->count > 0) {
        fprintf(out, "%s%llu input shard%s overwritten%s after the sort; the first: '%s'\n", lead,
                (unsigned long long)younger->count, younger->count == 1 ? " was" : "s were",
                listed ? " or added" : "", younger->first);
        lead = "";
    }
    if (missing->count > 0) {
        fprintf(out, "%s%llu input shard%s not exist any more; the first: '%s'\n", lead,
                (unsigned long long)missing->count, missing->count == 1 ? " does" : "s do",
                missing->first);
        lead = "";
    }
    uint64_t now = v->result->records;
    if (v->counted && now != v->sorted.records)
        fprintf(out, "%sthe sort read %llu input shards with %llu records; %s%llu %s\n", lead,
                (unsigned long long)v->sorted.inputs, (unsigned long long)v->sorted.records,
                now < v->sorted.records ? "" : "there are ", (unsigned long long)now,
                now < v->sorted.records ? "of these records are still there to compare with"
                                        : "now");
}

static void print_table(struct ctl *ctl, const struct verdict *v)
{
    const struct verify_result *r = v->result;
    if (v->right) {
        fprintf(ctl->out, "OK: %llu shard%s, %llu record%s compared, all equal\n",
                (unsigned long long)r->shards, plural(r->shards), (unsigned long long)r->records,
                plural(r->records));
        return;
    }
    if (!v->comparable) {
        print_uncompared(ctl->out, v, "NOT COMPARABLE: ");
        return;
    }
    fprintf(ctl->out, "FAILED: %llu of %llu record%s compared%s\n", (unsigned long long)r->compared,
            (unsigned long long)v->sorted.records, plural(v->sorted.records),
            !r->same_records || r->difference[0] == '\0' ? ""
                                                         : "; all are there, in another order");
    if (r->difference[0] != '\0')
        fprintf(ctl->out, "first difference: %s\n", r->difference);
    print_uncompared(ctl->out, v, "");
    if (r->strays > 0)
        fprintf(ctl->out,
                "%llu shard%s beside the output match%s its template; the first: '%s' (a reader of "
                "the template takes it for the sort's: delete it)\n",
                (unsigned long long)r->strays, plural(r->strays), r->strays == 1 ? "es" : "",
                r->stray);
}

static int print_result(struct ctl *ctl, const struct verdict *v)
{
    if (ctl->json)
        print_json(ctl, v);
    else
        print_table(ctl, v);
    return v->right ? EXIT_OK : EXIT_FAILED;
}

/* The sort cannot be run again over this input: this says why. */
static int fail_verify(struct ctl *ctl, const struct verdict *v, const struct error *err)
{
    if (!ctl->json)
        print_uncompared(ctl->err, v, "");
    return ctl_fail_common(ctl, err, err->code == E_ABORTED ? EXIT_INTERRUPTED : EXIT_FAILED);
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
                                         .list_outputs = source_list_outputs,
                                         .read_key_map = source_key_map};
    const struct verify_config config = {.spec = spec,
                                         .source = &source,
                                         .work_dir = work_dir(args),
                                         .memory_bytes = MEMORY,
                                         .key_map_bytes = KEY_MAP_MEMORY};
    struct verify_result result;
    struct error err = ERROR_INIT;
    int rc = verify_run(&config, &result, &err);
    const struct verdict v = judge(id, &buckets, &result, counted_by_sort(doc), rc == 0);
    bool told = rc == 0 || rc == E_SHARD_MISSING; /* which the result has among its figures */
    code = told ? print_result(ctl, &v) : fail_verify(ctl, &v, &err);
    free(buckets.younger.first);
    free(buckets.missing.first);
    return code;
}
