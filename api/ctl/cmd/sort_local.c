/* sort local. */
#include "api/ctl/commands.h"

#include "api/ctl/interrupt.h"
#include "api/ctl/print/progress.h"
#include "api/ctl/spec.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/rng.h"
#include "sort/local/local.h"

#define MEMORY_DEFAULT (256u << 20)
#define KEY_MAP_MEMORY (1024u << 20)
#define LOOK_MS 100

static json_int_t int_at(json_t *obj, const char *field)
{
    return json_integer_value(json_object_get(obj, field));
}

/* A key map that is no URL is a file: the engine is told of an object, whose name does not count.
 */
static int take_key_map(json_t *doc, char **path, struct error *err)
{
    static const char *const fields[] = {"ekm_file", "order_file"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *text = json_string_value(json_object_get(doc, fields[i]));
        if (text == NULL || text[0] == '\0' || strstr(text, "://") != NULL)
            continue;
        if (*path != NULL)
            return error_set(err, E_SPEC, "field 'order_file' (ekm_file) is given twice");
        *path = xstrdup(text);
        json_object_set_new(doc, fields[i], json_string("dfc://local/key-map"));
    }
    return 0;
}

static int read_request(const struct args *args, struct sort_spec **spec, char **key_map,
                        struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    int rc = spec_read(args->words[0], &doc, err);
    if (rc == 0)
        rc = spec_apply_flags(doc, args, err);
    if (rc == 0)
        rc = take_key_map(doc, key_map, err);
    if (rc != 0)
        return rc;
    json_object_set_new(doc, "input_bck", json_string("local"));
    json_object_del(doc, "output_bck");
    rc = sort_spec_parse(doc, spec, err);
    if (rc == E_SPEC)
        spec_name_flags(args, err->message, sizeof err->message);
    if (rc != 0 || (*spec)->algorithm != SORT_SHUFFLE || (*spec)->seed_given)
        return rc;
    random_bytes(&(*spec)->seed, sizeof(*spec)->seed);
    (*spec)->seed >>= 1; /* a JSON integer is signed */
    (*spec)->seed_given = true;
    return 0;
}

static void show_progress(struct progress *bar, struct sort_local *s)
{
    _cleanup_json_ json_t *status = sort_local_status(s);
    json_t *read = json_object_get(json_object_get(status, "extract"), "shards");
    json_t *create = json_object_get(status, "create");
    json_t *built = json_object_get(create, "shards");
    json_t *bytes = json_object_get(create, "bytes");
    json_int_t total = int_at(bytes, "total");
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    buf_printf(&text, "%s, read %lld/%lld shards",
               json_string_value(json_object_get(status, "phase")), (long long)int_at(read, "done"),
               (long long)int_at(read, "total"));
    if (total > 0)
        buf_printf(&text, ", built %lld/%lld", (long long)int_at(built, "done"),
                   (long long)int_at(built, "total"));
    progress_show(bar, total > 0 ? 100.0 * (double)int_at(bytes, "done") / (double)total : 0,
                  buf_str(&text));
}

/* The second signal ends the program at once (interrupt.h). */
static int run(struct ctl *ctl, struct sort_local *s, struct error *err)
{
    int rc = sort_local_start(s, err);
    if (rc != 0)
        return rc;
    struct progress *bar = progress_new(ctl, "sort");
    while (!sort_local_wait(s, LOOK_MS)) {
        if (interrupted())
            sort_local_stop(s);
        show_progress(bar, s);
    }
    progress_free(bar);
    return sort_local_end(s, err);
}

static void print_result(struct ctl *ctl, const struct sort_spec *spec, struct sort_local *s)
{
    json_t *status = sort_local_status(s);
    bool shuffled = spec->algorithm == SORT_SHUFFLE;
    size_t i;
    json_t *warning;
    json_array_foreach(json_object_get(status, "warnings"), i, warning)
        ctl_remark(ctl, "dfcctl: warning: %s", json_string_value(warning));
    if (shuffled)
        json_object_set_new(status, "seed", json_integer((json_int_t)spec->seed));
    if (ctl->json) {
        ctl_print_json(ctl, status);
        return;
    }
    char bytes[24];
    json_t *plan = json_object_get(status, "plan");
    fprintf(ctl->out, "%lld shards, %lld records, %s%s", (long long)int_at(plan, "shards"),
            (long long)int_at(plan, "records"),
            ctl_size(ctl, (uint64_t)int_at(plan, "bytes"), bytes),
            spec->dry_run ? "; nothing is stored" : "");
    if (shuffled)
        fprintf(ctl->out, ", seed %llu", (unsigned long long)spec->seed);
    fputc('\n', ctl->out);
    json_decref(status);
}

int sort_local(struct ctl *ctl, const struct args *args)
{
    if (!args->given[F_in] || !args->given[F_out])
        return ctl_usage(ctl, "'sort local' wants --in DIR and --out DIR");
    _cleanup_(sort_spec_freep)
    struct sort_spec *spec = NULL;
    _cleanup_(sort_local_freep)
    struct sort_local *s = NULL;
    _cleanup_free_ char *key_map = NULL;
    struct error err = ERROR_INIT;
    int rc = read_request(args, &spec, &key_map, &err);
    const struct sort_local_config config = {.spec = spec,
                                             .in = args->text[F_in],
                                             .out = args->text[F_out],
                                             .key_map = key_map,
                                             .memory_bytes = MEMORY_DEFAULT,
                                             .key_map_bytes = KEY_MAP_MEMORY};
    if (rc == 0)
        rc = sort_local_new(&config, &s, &err);
    if (rc == 0)
        rc = run(ctl, s, &err);
    if (rc != 0)
        return ctl_fail_common(ctl, &err,
                               interrupted() ? EXIT_INTERRUPTED : exit_of_code(err.code));
    print_result(ctl, spec, s);
    return EXIT_OK;
}
