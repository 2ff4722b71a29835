/* The fields of an external key map: where it is, and how it is read. */
#include "common/jsonx.h"
#include "common/mem.h"
#include "sort/spec/spec_parts.h"

#define FILE_MAX_BYTES 4096
#define SEPARATOR_MAX_BYTES 16

/* A field by its name, or by that of 2020. */
static int get_renamed(json_t *doc, const char *field, const char *old, const char **out,
                       struct error *err)
{
    const char *text = "";
    int rc = json_get_str(doc, "", field, out, err);
    if (rc == 0)
        rc = json_get_str(doc, "", old, &text, err);
    if (rc != 0 || text[0] == '\0')
        return rc;
    if ((*out)[0] != '\0' && strcmp(*out, text) != 0)
        return error_set(err, E_SPEC, "field '%s' (%s) is given twice", old, field);
    *out = text;
    return 0;
}

static bool begins_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

/* "dfc://bucket/object", the way dfcctl writes it, and AIStore's "ais://…". */
static int parse_object(struct sort_spec *s, const char *name, struct error *err)
{
    const char *slash = strchr(name, '/');
    if (slash == NULL || slash == name || slash[1] == '\0')
        return error_set(err, E_SPEC, "field 'ekm_file': '%s' does not name an object",
                         s->ekm_file);
    s->ekm_bucket = xstrndup(name, (size_t)(slash - name));
    s->ekm_object = xstrdup(slash + 1);
    return 0;
}

static int parse_place(struct sort_spec *s, const char *text, struct error *err)
{
    if (strlen(text) > FILE_MAX_BYTES)
        return error_set(err, E_SPEC, "field 'ekm_file' exceeds %d bytes", FILE_MAX_BYTES);
    s->ekm_file = xstrdup(text);
    if (begins_with(text, "http://") || begins_with(text, "https://"))
        return 0;
    if (begins_with(text, "dfc://") || begins_with(text, "ais://"))
        return parse_object(s, text + strlen("dfc://"), err);
    return error_set(
        err, E_SPEC,
        "field 'ekm_file': '%s' is neither http://…, https://… nor dfc://bucket/object", text);
}

static int parse_keys(json_t *doc, struct sort_spec *s, struct error *err)
{
    const char *text = "";
    int rc = json_get_str(doc, "", "ekm_keys", &text, err);
    if (rc != 0 || text[0] == '\0')
        return rc;
    for (int i = SORT_EKM_AUTO; i <= SORT_EKM_REGEX; i++) {
        if (strcmp(text, spec_ekm_names[i]) == 0) {
            s->ekm_keys = (enum sort_ekm_keys)i;
            return 0;
        }
    }
    return error_set(err, E_SPEC, "field 'ekm_keys': '%s' is not one of auto, exact, regex", text);
}

int spec_parse_ekm(json_t *doc, struct sort_spec *s, struct error *err)
{
    const char *file = "";
    const char *separator = "";
    int rc = get_renamed(doc, "ekm_file", "order_file", &file, err);
    if (rc == 0)
        rc = get_renamed(doc, "ekm_file_sep", "order_file_sep", &separator, err);
    if (rc == 0)
        rc = parse_keys(doc, s, err);
    if (rc != 0 || file[0] == '\0')
        return rc;
    if (strlen(separator) > SEPARATOR_MAX_BYTES || strchr(separator, '\n') != NULL)
        return error_set(err, E_SPEC, "field 'ekm_file_sep' has at most %d bytes, and no line feed",
                         SEPARATOR_MAX_BYTES);
    s->ekm_separator = xstrdup(separator[0] != '\0' ? separator : "\t");
    return parse_place(s, file, err);
}
