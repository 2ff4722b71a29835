#include "target/backend/aws_source.h"

#include <openssl/crypto.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/mem.h"
#include "io/file.h"

enum { FILE_MAX = 1 << 20 };

static const char *env_or(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : otherwise;
}

/* --- the environment -------------------------------------------------------------------------- */

static int find_env(const char *profile, bool *found, struct aws_keys *out, struct error *err)
{
    const struct {
        const char *name;
        char *to;
        size_t size;
    } rows[] = {{"AWS_ACCESS_KEY_ID", out->access, sizeof out->access},
                {"AWS_SECRET_ACCESS_KEY", out->secret, sizeof out->secret},
                {"AWS_SESSION_TOKEN", out->token, sizeof out->token}};
    (void)profile;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *value = env_or(rows[i].name, "");
        if (aws_keys_take(rows[i].name, value, strlen(value), rows[i].to, rows[i].size, err) != 0)
            return E_BACKEND_DENIED;
    }
    *found = *out->access != '\0' && *out->secret != '\0';
    if (*found || (*out->access == '\0' && *out->secret == '\0'))
        return 0;
    return error_set(err, E_BACKEND_DENIED, "%s is set, and %s is not",
                     rows[*out->access == '\0'].name, rows[*out->access != '\0'].name);
}

static int find_web_identity(const char *profile, bool *found, struct aws_keys *out,
                             struct error *err)
{
    (void)profile, (void)out;
    *found = env_or("AWS_WEB_IDENTITY_TOKEN_FILE", NULL) != NULL;
    if (*found && env_or("AWS_ROLE_ARN", NULL) == NULL)
        return error_set(err, E_BACKEND_DENIED,
                         "AWS_WEB_IDENTITY_TOKEN_FILE is set, and AWS_ROLE_ARN is not");
    return 0;
}

/* --- the file --------------------------------------------------------------------------------- */

static char *credentials_path(void)
{
    const char *path = env_or("AWS_SHARED_CREDENTIALS_FILE", NULL);
    return path != NULL ? xstrdup(path) : xprintf("%s/.aws/credentials", env_or("HOME", ""));
}

static int read_section(const char *path, const char *section, struct aws_keys *out,
                        struct error *err)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    struct error why = ERROR_INIT;
    if (access(path, F_OK) != 0)
        return error_set(err, E_NOT_FOUND, "no keys: there is no file '%s'", path);
    if (file_read_all(path, FILE_MAX, &text, &why) != 0)
        return error_set(err, E_BACKEND_DENIED, "no keys: '%s' cannot be read", path);
    int code = aws_keys_parse(buf_str(&text), section, out, err);
    OPENSSL_cleanse(text.data, text.len);
    return code == 0 ? 0 : error_wrap(err, "'%s'", path);
}

/* Without a name that was given it is one source of several, and may be absent. */
static int find_file(const char *profile, bool *found, struct aws_keys *out, struct error *err)
{
    _cleanup_free_ char *path = credentials_path();
    const char *named = *profile != '\0' ? profile : env_or("AWS_PROFILE", NULL);
    int code = read_section(path, named != NULL ? named : "default", out, err);
    *found = code == 0;
    if (code == E_NOT_FOUND && named == NULL)
        return 0;
    return code == E_NOT_FOUND ? error_recode(err, E_BACKEND_DENIED, "profile '%s'", named) : code;
}

/* --- those who are asked ---------------------------------------------------------------------- */

static int find_container(const char *profile, bool *found, struct aws_keys *out, struct error *err)
{
    (void)profile, (void)out, (void)err;
    *found = env_or("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", NULL) != NULL ||
             env_or("AWS_CONTAINER_CREDENTIALS_FULL_URI", NULL) != NULL;
    return 0;
}

static int find_instance(const char *profile, bool *found, struct aws_keys *out, struct error *err)
{
    (void)profile, (void)out, (void)err;
    *found = strcasecmp(env_or("AWS_EC2_METADATA_DISABLED", ""), "true") != 0;
    return 0;
}

/* --- all of them ------------------------------------------------------------------------------ */

/* In their order. */
static const struct {
    enum aws_source source;
    int (*find)(const char *profile, bool *found, struct aws_keys *out, struct error *err);
} rows[] = {
    {AWS_ENV, find_env},           {AWS_WEB_IDENTITY, find_web_identity},
    {AWS_FILE, find_file},         {AWS_CONTAINER, find_container},
    {AWS_INSTANCE, find_instance},
};

int aws_source_find(const char *profile, enum aws_source *out, struct aws_keys *keys,
                    struct error *err)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool found = false;
        if (*profile != '\0' && rows[i].source != AWS_FILE)
            continue;
        *keys = (struct aws_keys){.token = ""};
        int code = rows[i].find(profile, &found, keys, err);
        *out = rows[i].source;
        if (code != 0 || found)
            return code;
    }
    _cleanup_free_ char *path = credentials_path();
    return error_set(err, E_BACKEND_DENIED,
                     "no keys: neither AWS_ACCESS_KEY_ID, nor AWS_WEB_IDENTITY_TOKEN_FILE, nor "
                     "section [default] of '%s', nor AWS_CONTAINER_CREDENTIALS_FULL_URI; and "
                     "AWS_EC2_METADATA_DISABLED is true",
                     path);
}
