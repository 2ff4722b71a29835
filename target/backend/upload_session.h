/* An object on its way to a backend that takes it in a session, as GCS does: one after the other,
 * and what breaks off goes on where the service has got to.
 *
 *   begin ─▶ its URL ─▶ the bytes ─┬─ 200 ─▶ there
 *              ▲                   └─ broke off ─▶ what have you got? ─┬─ all ─▶ there
 *              └────────────────────────── the rest ◀──────────────────┘
 *
 * The MD5 of the whole goes ahead, and the service compares it: what is there is right.  A session
 * that is given up is aborted.  Its URL is a key: it stands in no message. */
#pragma once

#include "target/backend/upload_types.h"

/* Blocks. */
int upload_session(const struct exchange_env *env, const struct upload *u,
                   const struct checksum_value *md5, char etag[static BACKEND_ETAG_MAX],
                   struct error *err);
