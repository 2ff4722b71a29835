#include "api/ctl/spec.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "api/ctl/yaml_json.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/jsonx.h"

int spec_parse(const char *text, size_t len, const char *name, json_t **out, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    size_t lead = 0;
    while (lead < len && isspace((unsigned char)text[lead]))
        lead++;
    bool json = lead < len && text[lead] == '{';
    int rc = json ? json_parse(text, len, &doc, err) : yaml_json_parse(text, len, &doc, err);
    if (rc != 0)
        return error_recode(err, E_SPEC, "%s", name);
    if (!json_is_object(doc))
        return error_set(err, E_SPEC, "%s: expected fields with values", name);
    *out = steal(doc);
    return 0;
}

static int read_all(int fd, const char *name, struct buf *out, struct error *err)
{
    for (;;) {
        buf_reserve(out, 64 << 10);
        ssize_t n = read(fd, out->data + out->len, 64 << 10);
        if (n < 0)
            return error_errno(err, errno, "read '%s'", name);
        if (n == 0)
            return 0;
        out->len += (size_t)n;
        out->data[out->len] = '\0';
        if (out->len > SPEC_MAX_BYTES)
            return error_set(err, E_TOO_LARGE, "'%s' is larger than %u MiB", name,
                             SPEC_MAX_BYTES >> 20);
    }
}

int spec_read(const char *path, json_t **out, struct error *err)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    if (path == NULL) {
        *out = json_object();
        return 0;
    }
    if (strcmp(path, "-") == 0) {
        int rc = read_all(STDIN_FILENO, "standard input", &text, err);
        return rc == 0 ? spec_parse(buf_str(&text), text.len, "standard input", out, err) : rc;
    }
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, "open '%s'", path);
    int rc = read_all(fd, path, &text, err);
    return rc == 0 ? spec_parse(buf_str(&text), text.len, path, out, err) : rc;
}

/* ---- flags ---- */

/* How a flag becomes a field. */
enum field_form {
    FORM_TEXT,
    FORM_COUNT,  /* a number; of bytes, too */
    FORM_BOOL,   /* true */
    FORM_BUCKET, /* {"name": …} */
    FORM_INPUT,  /* {"template": …}, {"prefix": …}: the name of the flag */
};

static const struct field_row {
    enum flag_id flag;
    const char *object; /* the object inside the specification, or NULL */
    const char *field;
    enum field_form form;
} field_rows[] = {
    {F_input_bucket, NULL, "input_bck", FORM_BUCKET},
    {F_output_bucket, NULL, "output_bck", FORM_BUCKET},
    {F_template, NULL, "input_format", FORM_INPUT},
    {F_prefix, NULL, "input_format", FORM_INPUT},
    {F_input_extension, NULL, "input_extension", FORM_TEXT},
    {F_output_extension, NULL, "output_extension", FORM_TEXT},
    {F_output_format, NULL, "output_format", FORM_TEXT},
    {F_shard_size, NULL, "output_shard_size", FORM_COUNT},
    {F_wids_index, NULL, "wids_index", FORM_TEXT},
    {F_dali_indexes, NULL, "dali_indexes", FORM_BOOL},
    {F_algorithm, "algorithm", "kind", FORM_TEXT},
    {F_seed, "algorithm", "seed", FORM_TEXT},
    {F_decreasing, "algorithm", "decreasing", FORM_BOOL},
    {F_key_rule, NULL, "key_rule", FORM_TEXT},
    {F_max_mem, NULL, "max_mem_usage", FORM_TEXT},
    {F_missing_shards, NULL, "missing_shards", FORM_TEXT},
    {F_duplicated_records, NULL, "duplicated_records", FORM_TEXT},
    {F_threads, NULL, "extract_concurrency_max_limit", FORM_COUNT},
    {F_threads, NULL, "create_concurrency_max_limit", FORM_COUNT},
    {F_description, NULL, "description", FORM_TEXT},
    {F_dry_run, NULL, "dry_run", FORM_BOOL},
    {F_allow_empty, NULL, "allow_empty", FORM_BOOL},
    {F_extension, "algorithm", "extension", FORM_TEXT},
    {F_content_key_type, "algorithm", "content_key_type", FORM_TEXT},
    {F_ekm_file, NULL, "ekm_file", FORM_TEXT},
    {F_ekm_file_sep, NULL, "ekm_file_sep", FORM_TEXT},
    {F_missing_keys, NULL, "missing_keys", FORM_TEXT},
    {F_unreadable_shards, NULL, "unreadable_shards", FORM_TEXT},
};

static json_t *field_value(const struct field_row *row, const struct args *a)
{
    switch (row->form) {
    case FORM_TEXT:
        return json_string(a->text[row->flag]);
    case FORM_COUNT:
        return json_integer((json_int_t)a->number[row->flag]);
    case FORM_BOOL:
        return json_true();
    case FORM_BUCKET:
        return json_pack("{s:s}", "name", a->text[row->flag]);
    case FORM_INPUT:
        return json_pack("{s:s}", flag_table[row->flag].name, a->text[row->flag]);
    }
    return NULL;
}

static int field_set(json_t *spec, const struct field_row *row, const struct args *a,
                     struct error *err)
{
    json_t *into = spec;
    if (row->object != NULL) {
        into = json_object_get(spec, row->object);
        if (into == NULL || json_is_null(into)) {
            json_object_set_new(spec, row->object, json_object());
            into = json_object_get(spec, row->object);
        }
    }
    /* Fails for what is no object, and for text that is no UTF-8. */
    if (json_object_set_new(into, row->field, field_value(row, a)) == 0)
        return 0;
    return error_set(err, E_SPEC, "--%s cannot set '%s%s%s'", flag_table[row->flag].name,
                     row->object != NULL ? row->object : "", row->object != NULL ? "." : "",
                     row->field);
}

int spec_apply_flags(json_t *spec, const struct args *a, struct error *err)
{
    if (a->given[F_template] && a->given[F_prefix])
        return error_set(err, E_INVALID, "--template and --prefix exclude each other");
    for (size_t i = 0; i < sizeof field_rows / sizeof *field_rows; i++) {
        const struct field_row *row = &field_rows[i];
        int rc = a->given[row->flag] ? field_set(spec, row, a, err) : 0;
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* Is the field (text up to a quote) the row's, or one inside it? */
static bool field_is(const struct field_row *row, const char *field)
{
    char path[64];
    int len = snprintf(path, sizeof path, "%s%s%s", row->object != NULL ? row->object : "",
                       row->object != NULL ? "." : "", row->field);
    return strncmp(field, path, (size_t)len) == 0 && (field[len] == '\'' || field[len] == '.');
}

void spec_name_flags(const struct args *a, char *message, size_t size)
{
    static const char mark[] = "field '";
    const char *at = strstr(message, mark), *field = at != NULL ? at + strlen(mark) : "";
    const char *before = " (flag: ";
    _cleanup_(buf_done)
    struct buf flags = BUF_INIT;
    for (size_t i = 0; i < sizeof field_rows / sizeof *field_rows; i++) {
        if (!command_takes(a->command, field_rows[i].flag) || !field_is(&field_rows[i], field))
            continue;
        buf_printf(&flags, "%s--%s", before, flag_table[field_rows[i].flag].name);
        before = " or ";
    }
    if (flags.len > 0)
        buf_puts(&flags, ")");
    size_t len = strlen(message);
    if (flags.len > 0 && len + flags.len < size)
        memcpy(message + len, buf_str(&flags), flags.len + 1);
}
