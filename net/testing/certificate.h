/* Certificates for tests: signed by themselves, of an elliptic curve, for "localhost" and
 * 127.0.0.1.
 */
#pragma once

#include <stdint.h>

/* Writes DIR/NAME.crt and DIR/NAME.key (0600), valid from now + `from_s` to now + `to_s`. */
void certificate_write(const char *dir, const char *name, int64_t from_s, int64_t to_s);

struct tls;
/* One that is good for a day, in a directory of its own that is gone again when it returns. */
struct tls *certificate_tls(void);
