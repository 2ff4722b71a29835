/* dfc_profile_*, and what clients read. */
#include "api/identity/profile.h"

#include <stdlib.h>

#include "api/failure.h"
#include "api/identity/private_file.h"
#include "api/identity/secret.h"
#include "api/identity/token_cache.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

#define NAME_DEFAULT "default"

static const char *filled(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : NULL;
}

char *dfc_profile_path(void)
{
    const char *config = filled(getenv("XDG_CONFIG_HOME"));
    const char *home = filled(getenv("HOME"));
    if (config != NULL)
        return xprintf("%s/dfc/config.json", config);
    return home != NULL ? xprintf("%s/.config/dfc/config.json", home) : NULL;
}

/* ---- reading ---- */

/* *doc is NULL where there is no file. */
static int read_file(const char *path, json_t **doc, struct dfc_error *err)
{
    _cleanup_(private_text_wipe)
    struct buf text = BUF_INIT;
    struct error e = ERROR_INIT;
    *doc = NULL;
    int rc = private_file_read(path, &text, err);
    if (rc != DFC_OK)
        return rc == DFC_NOT_FOUND ? DFC_OK : rc;
    if (json_parse_secret(text.data, text.len, doc, &e) != 0)
        return failure_set(err, DFC_LOCAL, E_JSON, "'%s': %s", path, e.message);
    if (json_is_object(*doc))
        return DFC_OK;
    json_decref(*doc);
    *doc = NULL;
    return failure_set(err, DFC_LOCAL, E_JSON, "'%s': it must be an object", path);
}

static char *text_of(json_t *row, const char *field)
{
    return xstrdup(filled(json_string_value(json_object_get(row, field))));
}

static const char *current_of(json_t *doc)
{
    return filled(json_string_value(json_object_get(doc, "current")));
}

/* The key of a cluster is no other cluster's business. */
static bool fits(json_t *row, const char *endpoints)
{
    const char *own = filled(json_string_value(json_object_get(row, "endpoints")));
    return endpoints == NULL || (own != NULL && strcmp(own, endpoints) == 0);
}

int profile_load(const char *name, const char *endpoints, struct profile *out,
                 struct dfc_error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_free_ char *path = dfc_profile_path();
    *out = (struct profile){0};
    if (name == NULL)
        name = filled(getenv("DFC_PROFILE"));
    if (name != NULL && name[0] == '\0')
        return DFC_OK;
    int rc = path != NULL ? read_file(path, &doc, err) : DFC_OK;
    if (rc != DFC_OK)
        return rc;
    const char *wanted = name != NULL ? name : current_of(doc);
    json_t *row = wanted != NULL ? json_object_get(json_object_get(doc, "profiles"), wanted) : NULL;
    if (name == NULL && (row == NULL || !fits(row, endpoints)))
        return DFC_OK;
    if (!json_is_object(row))
        return failure_set(err, DFC_NOT_FOUND, E_NOT_FOUND, "there is no profile '%s' in '%s'",
                           wanted, path != NULL ? path : "");
    *out = (struct profile){.endpoints = text_of(row, "endpoints"),
                            .access_key = text_of(row, "access_key"),
                            .secret_key = text_of(row, "secret_key"),
                            .token = text_of(row, "token"),
                            .ca_file = text_of(row, "ca_file")};
    return DFC_OK;
}

void profile_done(struct profile *p)
{
    free(p->endpoints);
    free(p->access_key);
    secret_free(p->secret_key);
    secret_free(p->token);
    free(p->ca_file);
}

/* ---- writing ---- */

static int write_file(const char *path, json_t *doc, struct dfc_error *err)
{
    _cleanup_(secret_freep)
    char *text = json_text(doc);
    return private_file_write(path, text, err);
}

/* The file as it is, or a new document; *path is where it is. */
static int open_file(char **path, json_t **doc, struct dfc_error *err)
{
    *path = dfc_profile_path();
    if (*path == NULL)
        return failure_set(err, DFC_LOCAL, E_INVALID,
                           "neither HOME nor XDG_CONFIG_HOME is set: profiles have no place");
    int rc = read_file(*path, doc, err);
    if (rc == DFC_OK && *doc == NULL)
        *doc = json_object();
    if (rc == DFC_OK && !json_is_object(json_object_get(*doc, "profiles")))
        json_object_set_new(*doc, "profiles", json_object());
    return rc;
}

/* The name that a call means which names none. */
static char *name_of(const char *name, json_t *doc)
{
    if (filled(name) == NULL)
        name = filled(getenv("DFC_PROFILE"));
    if (name == NULL)
        name = current_of(doc);
    return xstrdup(name != NULL ? name : NAME_DEFAULT);
}

int dfc_profile_save(const char *name, const struct dfc_profile *p, char **saved,
                     struct dfc_error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_free_ char *path = NULL;
    int rc = open_file(&path, &doc, err);
    if (rc != DFC_OK)
        return rc;
    _cleanup_free_ char *full = name_of(name, doc);
    json_t *row =
        json_pack("{s:s, s:s*, s:s*, s:s*, s:s*}", "endpoints", p->endpoints, "access_key",
                  filled(p->access_key), "secret_key", filled(p->secret_key), "token",
                  filled(p->token), "ca_file", filled(p->ca_file));
    json_t *profiles = json_object_get(doc, "profiles");
    _cleanup_free_ char *before = text_of(json_object_get(profiles, full), "ca_file");
    if (row != NULL && p->ca_file == NULL && before != NULL)
        json_object_set_new(row, "ca_file", json_string(before));
    if (row == NULL || json_object_set_new(profiles, full, row) != 0)
        return failure_set(err, DFC_INVALID, E_INVALID, "a part of the profile is not UTF-8");
    json_object_set_new(doc, "current", json_string(full));
    rc = write_file(path, doc, err);
    if (rc == DFC_OK && saved != NULL)
        *saved = steal(full);
    return rc;
}

/* Of its key, at all endpoints. */
static void forget_tokens(json_t *row)
{
    const char *access = json_string_value(json_object_get(row, "access_key"));
    const char *secret = json_string_value(json_object_get(row, "secret_key"));
    if (access != NULL && secret != NULL)
        token_cache_remove(access, secret);
}

int dfc_profile_remove(const char *name, char **removed, struct dfc_error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_free_ char *path = NULL;
    int rc = open_file(&path, &doc, err);
    if (rc != DFC_OK)
        return rc;
    _cleanup_free_ char *full = name_of(name, doc);
    const char *current = current_of(doc);
    json_t *profiles = json_object_get(doc, "profiles");
    forget_tokens(json_object_get(profiles, full));
    if (json_object_del(profiles, full) != 0)
        return failure_set(err, DFC_NOT_FOUND, E_NOT_FOUND, "there is no profile '%s' in '%s'",
                           full, path);
    if (current != NULL && strcmp(current, full) == 0)
        json_object_del(doc, "current");
    rc = write_file(path, doc, err);
    if (rc == DFC_OK && removed != NULL)
        *removed = steal(full);
    return rc;
}
