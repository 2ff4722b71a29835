#include "common/auth/login_proof.h"

#include <inttypes.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/parse.h"

void login_proof(const char *secret, const char *access, int64_t time_ms, const char *nonce,
                 char hex[AUTH_HEX_MAX])
{
    unsigned char mac[AUTH_MAC_BYTES];
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    buf_printf(&text, "dfc-login-1\n%s\n%" PRIi64 "\n%s\n", access, time_ms, nonce);
    auth_hmac(secret, strlen(secret), text.data, text.len, mac);
    format_hex(mac, sizeof mac, hex);
}
