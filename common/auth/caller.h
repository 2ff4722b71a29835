/* The caller's half of a session: what opens one, and the header that signs a request of it.  A
 * node is such a caller (net/auth.h has the drawing), and an operator's client that administers
 * nodes. Pure but for the randomness of the nonce. */
#pragma once

#include <jansson.h>

#include "common/auth/mac.h"
#include "common/auth/cluster_key.h"
#include "common/error.h"

struct auth_caller {
    const struct cluster_key *key;
    const char *node, *boot; /* who calls: words */
};

/* The caller's half of one; the texts are its own. */
struct auth_opening {
    char key_id[CLUSTER_KEY_ID_CHARS + 1];
    char nonce[AUTH_HEX_MAX];
    char node[AUTH_HEX_MAX];      /* of the other side, as it says; "": it has not said it */
    char challenge[AUTH_HEX_MAX]; /* of the other side; "": it gives none */
};

/* The JSON that asks for a challenge; malloc'ed.  The opening begins anew. */
char *auth_caller_ask(const struct auth_caller *c, struct auth_opening *o);
/* Takes the answer to that: the other side's node and challenge.  E_JSON. */
int auth_caller_challenged(struct auth_opening *o, const char *answer, size_t len,
                           struct error *err);
/* The other side refused the question with `code`: is it of the release before this one, which
 * takes a greeting without a challenge? */
bool auth_caller_is_earlier(int code);
/* The JSON of a greeting, in the earlier form where there is no challenge; malloc'ed. */
char *auth_caller_greet(const struct auth_caller *c, struct auth_opening *o);
/* Takes the answer: the session's id (hex) and key.  From here on o->node is proven: the caller
 * compares it with the node that it means.  E_UNAUTHORIZED where the other side has no proof, or is
 * not the node that gave the challenge, E_JSON. */
int auth_caller_opened(const struct auth_caller *c, struct auth_opening *o, const char *answer,
                       size_t len, char id[2 * AUTH_SESSION_BYTES + 1],
                       unsigned char key[AUTH_MAC_BYTES], struct error *err);
/* The texts of these fields (NULL ends them) of a greeting or its answer: words that are short, for
 * they are written into lines.  E_JSON. */
int auth_need_words(json_t *doc, const char *const *fields, const char **const *out,
                    struct error *err);

/* Dfc-Auth's value. */
struct auth_claim {
    char session[2 * AUTH_SESSION_BYTES + 1];
    uint64_t counter;
    char digest[AUTH_HEX_MAX]; /* or "-" */
    char mac[AUTH_HEX_MAX];
};

void auth_claim_text(const struct auth_claim *c, struct buf *out);
bool auth_claim_parse(const char *text, struct auth_claim *out);
