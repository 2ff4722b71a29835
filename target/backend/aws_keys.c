#include "target/backend/aws_keys.h"

#include <openssl/crypto.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"
#include "io/file.h"

enum { FILE_MAX = 1 << 20 };

/* --- the file's text -------------------------------------------------------------------------- */

struct span {
    const char *at;
    size_t len;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct span trim(const char *at, size_t len)
{
    while (len > 0 && is_blank(*at)) {
        at++;
        len--;
    }
    while (len > 0 && is_blank(at[len - 1]))
        len--;
    return (struct span){at, len};
}

static bool span_is(struct span s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

static int keep_value(const char *name, struct span value, char *out, size_t size,
                      struct error *err)
{
    if (value.len >= size)
        return error_set(err, E_BACKEND_DENIED, "%s of the credentials file is too long", name);
    for (size_t i = 0; i < value.len; i++) {
        if ((unsigned char)value.at[i] <= ' ' || (unsigned char)value.at[i] >= 0x7f)
            return error_set(err, E_BACKEND_DENIED,
                             "%s of the credentials file has a character that no key has", name);
    }
    memcpy(out, value.at, value.len);
    out[value.len] = '\0';
    return 0;
}

static int take_line(struct span line, struct aws_keys *out, struct error *err)
{
    const char *equals = memchr(line.at, '=', line.len);
    if (equals == NULL)
        return 0;
    struct span name = trim(line.at, (size_t)(equals - line.at));
    struct span value = trim(equals + 1, line.len - (size_t)(equals + 1 - line.at));
    if (span_is(name, "aws_access_key_id"))
        return keep_value("aws_access_key_id", value, out->access, sizeof out->access, err);
    if (span_is(name, "aws_secret_access_key"))
        return keep_value("aws_secret_access_key", value, out->secret, sizeof out->secret, err);
    if (span_is(name, "aws_session_token"))
        return keep_value("aws_session_token", value, out->token, sizeof out->token, err);
    return 0;
}

/* "[default]", also "[profile x]", as AWS's other file has it. */
static bool is_section(struct span line, const char *section)
{
    struct span name = trim(line.at + 1, line.len - 2);
    size_t word = strlen("profile ");
    if (name.len > word && memcmp(name.at, "profile ", word) == 0)
        name = trim(name.at + word, name.len - word);
    return span_is(name, section);
}

int aws_keys_parse(const char *text, const char *section, struct aws_keys *out, struct error *err)
{
    bool ours = false;
    *out = (struct aws_keys){0};
    for (const char *at = text; *at != '\0';) {
        size_t len = strcspn(at, "\n");
        struct span line = trim(at, len);
        at += len + (at[len] == '\n');
        if (line.len == 0 || *line.at == '#' || *line.at == ';')
            continue;
        if (line.len >= 2 && *line.at == '[' && line.at[line.len - 1] == ']')
            ours = is_section(line, section);
        else if (ours && take_line(line, out, err) != 0)
            return E_BACKEND_DENIED;
    }
    if (*out->access != '\0' && *out->secret != '\0')
        return 0;
    return error_set(err, E_BACKEND_DENIED,
                     "section [%s] of the credentials file has no aws_access_key_id with an "
                     "aws_secret_access_key",
                     section);
}

/* --- where they are --------------------------------------------------------------------------- */

static const char *env_or(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : otherwise;
}

static int load_env(struct aws_keys *out, struct error *err)
{
    const struct {
        const char *name;
        char *to;
        size_t size;
    } rows[] = {{"AWS_ACCESS_KEY_ID", out->access, sizeof out->access},
                {"AWS_SECRET_ACCESS_KEY", out->secret, sizeof out->secret},
                {"AWS_SESSION_TOKEN", out->token, sizeof out->token}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *value = env_or(rows[i].name, "");
        if (keep_value(rows[i].name, (struct span){value, strlen(value)}, rows[i].to, rows[i].size,
                       err) != 0)
            return E_BACKEND_DENIED;
    }
    return 0;
}

static char *credentials_path(void)
{
    const char *path = env_or("AWS_SHARED_CREDENTIALS_FILE", NULL);
    return path != NULL ? xstrdup(path) : xprintf("%s/.aws/credentials", env_or("HOME", ""));
}

static int load_file(const char *section, struct aws_keys *out, struct error *err)
{
    _cleanup_free_ char *path = credentials_path();
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    struct error why = ERROR_INIT;
    if (file_read_all(path, FILE_MAX, &text, &why) != 0)
        return error_set(err, E_BACKEND_DENIED,
                         "no keys: neither AWS_ACCESS_KEY_ID nor a readable '%s'", path);
    int code = aws_keys_parse(buf_str(&text), section, out, err);
    OPENSSL_cleanse(text.data, text.len);
    return code == 0 ? 0 : error_wrap(err, "'%s'", path);
}

int aws_keys_load(const char *profile, struct aws_keys *out, struct error *err)
{
    *out = (struct aws_keys){0};
    if (*profile == '\0' && getenv("AWS_ACCESS_KEY_ID") != NULL &&
        getenv("AWS_SECRET_ACCESS_KEY") != NULL)
        return load_env(out, err);
    return load_file(*profile != '\0' ? profile : env_or("AWS_PROFILE", "default"), out, err);
}

void aws_keys_wipe(struct aws_keys *keys)
{
    OPENSSL_cleanse(keys, sizeof *keys);
}
