#include "target/backend/aws_keys.h"

#include <openssl/crypto.h>
#include <stdbool.h>
#include <string.h>

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

int aws_keys_take(const char *name, const char *value, size_t len, char *out, size_t size,
                  struct error *err)
{
    if (len >= size)
        return error_set(err, E_BACKEND_DENIED, "%s is too long", name);
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)value[i] <= ' ' || (unsigned char)value[i] >= 0x7f)
            return error_set(err, E_BACKEND_DENIED, "%s has a character that no key has", name);
    }
    memcpy(out, value, len);
    out[len] = '\0';
    return 0;
}

static int take_line(struct span line, struct aws_keys *out, struct error *err)
{
    const struct {
        const char *name;
        char *to;
        size_t size;
    } rows[] = {{"aws_access_key_id", out->access, sizeof out->access},
                {"aws_secret_access_key", out->secret, sizeof out->secret},
                {"aws_session_token", out->token, sizeof out->token}};
    const char *equals = memchr(line.at, '=', line.len);
    if (equals == NULL)
        return 0;
    struct span name = trim(line.at, (size_t)(equals - line.at));
    struct span value = trim(equals + 1, line.len - (size_t)(equals + 1 - line.at));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (span_is(name, rows[i].name))
            return aws_keys_take(rows[i].name, value.at, value.len, rows[i].to, rows[i].size, err);
    }
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
    *out = (struct aws_keys){.token = ""};
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
    int code = *out->access == '\0' && *out->secret == '\0' ? E_NOT_FOUND : E_BACKEND_DENIED;
    return error_set(err, code,
                     "section [%s] of the credentials file has no aws_access_key_id with an "
                     "aws_secret_access_key",
                     section);
}

void aws_keys_wipe(struct aws_keys *keys)
{
    OPENSSL_cleanse(keys, sizeof *keys);
}
