#include "access/root_key.h"

#include <openssl/crypto.h>
#include <string.h>

#include "common/auth/key_pair.h"
#include "common/auth/secret_file.h"
#include "common/cleanup.h"

static const char secret_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_";

static int check(const struct key_pair *pair, struct error *err)
{
    if (!access_key_is_valid(pair->access_key))
        return error_set(err, E_INVALID,
                         "an access key has %d capital letters and digits; this one has %zu "
                         "characters, or others",
                         ACCESS_KEY_CHARS, strlen(pair->access_key));
    if (strlen(pair->secret_key) != SECRET_CHARS ||
        strspn(pair->secret_key, secret_alphabet) != SECRET_CHARS)
        return error_set(err, E_INVALID,
                         "a secret key has %d letters, digits, '+', '/', '-' and '_'; this one has "
                         "%zu characters, or others",
                         SECRET_CHARS, strlen(pair->secret_key));
    return 0;
}

int root_key_parse(const char *text, size_t len, struct root_key *out, struct error *err)
{
    _cleanup_(key_pair_done)
    struct key_pair pair;
    int r = key_pair_parse(text, len, &pair, err);
    if (r == 0)
        r = check(&pair, err);
    if (r != 0)
        return r;
    memcpy(out->access, pair.access_key, sizeof out->access);
    memcpy(out->secret, pair.secret_key, sizeof out->secret);
    return 0;
}

int root_key_load(const char *path, struct root_key *out, struct error *err)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    struct error why = ERROR_INIT;
    int r = secret_file_read(path, &text, &why);
    if (r == 0)
        r = root_key_parse(buf_str(&text), text.len, out, &why);
    if (text.data != NULL)
        OPENSSL_cleanse(text.data, text.len);
    return r == 0 ? 0 : error_set(err, E_INVALID, "--root-key-file '%s': %s", path, why.message);
}

void root_key_wipe(struct root_key *key)
{
    OPENSSL_cleanse(key, sizeof *key);
}
