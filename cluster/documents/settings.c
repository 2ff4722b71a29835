#include "cluster/documents/settings.h"

#include <assert.h>
#include <string.h>

#include "common/suggest.h"

const struct param_row cluster_settings_rows[] = {
#define PARAM(kind, field, standard, least, most, text)     \
    {                                                       \
        .name = #field,                                     \
        .type = PARAM_##kind,                               \
        .offset = offsetof(struct cluster_settings, field), \
        .default_text = (standard),                         \
        .min_text = (least),                                \
        .max_text = (most),                                 \
        .help = (text),                                     \
    },
#include "cluster/documents/settings.def"
#undef PARAM
    {.name = NULL},
};

static bool is_setting(const char *name)
{
    for (const struct param_row *row = cluster_settings_rows; row->name != NULL; row++) {
        if (strcmp(row->name, name) == 0)
            return true;
    }
    return false;
}

static void set_defaults(struct cluster_settings *out)
{
    *out = (struct cluster_settings){0};
    int r = params_defaults(cluster_settings_rows, out, NULL);
    assert(r == 0); /* the table's own texts */
    (void)r;
}

void cluster_settings_get(const struct cluster_config *c, struct cluster_settings *out)
{
    set_defaults(out);
    for (size_t i = 0; i < c->count; i++) {
        const struct config_value *v = &c->values[i];
        if (cluster_settings_check(v->name, v->text, NULL) == 0)
            params_set(cluster_settings_rows, out, v->name, v->text, "config", NULL);
    }
}

/* Whoever reads a configuration of a newer release does not ask for words. */
static int unknown(const char *name, struct error *err)
{
    if (err == NULL)
        return E_NOT_FOUND;
    struct suggestion best = SUGGESTION_INIT;
    for (const struct param_row *row = cluster_settings_rows; row->name != NULL; row++)
        suggest(&best, name, row->name);
    return error_set(err, E_NOT_FOUND, "there is no cluster-wide setting '%.64s'%s%s%s", name,
                     best.text != NULL ? "; did you mean '" : "",
                     best.text != NULL ? best.text : "", best.text != NULL ? "'?" : "");
}

int cluster_settings_check_name(const char *name, struct error *err)
{
    return is_setting(name) ? 0 : unknown(name, err);
}

int cluster_settings_check(const char *name, const char *text, struct error *err)
{
    int r = cluster_settings_check_name(name, err);
    if (r != 0)
        return r;
    struct cluster_settings scratch;
    set_defaults(&scratch);
    return params_set(cluster_settings_rows, &scratch, name, text, "the cluster's settings", err);
}
