#include "common/auth/cluster_key.h"

#include <ctype.h>
#include <openssl/crypto.h>
#include <string.h>

#include "common/auth/mac.h"
#include "common/auth/secret_file.h"
#include "common/cleanup.h"
#include "common/parse.h"

static void key_of_text(const char *text, size_t len, struct cluster_key *out)
{
    static const char label[] = "dfc-key-1", id_label[] = "dfc-key-id-1";
    unsigned char name[AUTH_MAC_BYTES];
    auth_hmac(label, sizeof label - 1, text, len, out->secret);
    auth_hmac(out->secret, sizeof out->secret, id_label, sizeof id_label - 1, name);
    format_hex(name, CLUSTER_KEY_ID_CHARS / 2, out->id);
}

static size_t trimmed(const char **line, size_t len)
{
    while (len > 0 && isspace((unsigned char)**line)) {
        (*line)++;
        len--;
    }
    while (len > 0 && isspace((unsigned char)(*line)[len - 1]))
        len--;
    return len;
}

static int check_line(const char *line, size_t len, size_t number, struct error *err)
{
    if (len < CLUSTER_KEY_TEXT_MIN || len > CLUSTER_KEY_TEXT_MAX)
        return error_set(err, E_INVALID,
                         "line %zu: a key has %d to %d characters, this one has %zu", number,
                         CLUSTER_KEY_TEXT_MIN, CLUSTER_KEY_TEXT_MAX, len);
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)line[i] <= ' ' || line[i] == 0x7f)
            return error_set(err, E_INVALID, "line %zu: a blank or control character in the key",
                             number);
    }
    return 0;
}

static int add_line(const char *line, size_t len, size_t number, struct cluster_keys *out,
                    struct error *err)
{
    len = trimmed(&line, len);
    if (len == 0 || line[0] == '#')
        return 0;
    int code = check_line(line, len, number, err);
    if (code != 0)
        return code;
    if (out->count == CLUSTER_KEYS_MAX)
        return error_set(err, E_INVALID, "line %zu: more than %d keys", number, CLUSTER_KEYS_MAX);
    key_of_text(line, len, &out->keys[out->count++]);
    return 0;
}

int cluster_keys_parse(const char *text, size_t len, struct cluster_keys *out, struct error *err)
{
    *out = (struct cluster_keys){0};
    size_t number = 1;
    for (size_t at = 0; at < len; number++) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t line = end != NULL ? (size_t)(end - text) - at : len - at;
        int code = add_line(text + at, line, number, out, err);
        if (code != 0)
            return code;
        at += line + 1;
    }
    return out->count > 0 ? 0 : error_set(err, E_INVALID, "there is no key in it");
}

static int read_keys(const char *path, struct cluster_keys *out, struct error *err)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    int code = secret_file_read(path, &text, err);
    if (code == 0)
        code = cluster_keys_parse(buf_str(&text), text.len, out, err);
    if (text.len > 0)
        OPENSSL_cleanse(text.data, text.len);
    return code;
}

int cluster_keys_load(const char *path, struct cluster_keys *out, struct error *err)
{
    struct error why = ERROR_INIT;
    if (read_keys(path, out, &why) != 0)
        return error_set(err, E_INVALID, "cluster key '%s': %s", path, why.message);
    return 0;
}

const struct cluster_key *cluster_keys_find(const struct cluster_keys *keys, const char *id)
{
    for (size_t i = 0; i < keys->count; i++) {
        if (strcmp(keys->keys[i].id, id) == 0)
            return &keys->keys[i];
    }
    return NULL;
}
