#include "target/node/public_guard.h"

#include "access/exposure_gate.h"
#include "access/guard.h"
#include "target/node/target.h"

static struct exposure_gate *gate_of(const struct target *t)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    return exposure_gate_new(t->id, s->access.user_count > 0);
}

int public_guard_start(struct target *t, struct error *err)
{
    const struct guard_config config = {.key_file = t->params.cluster_key_file,
                                        .state = t->state,
                                        .redirect_ttl_ms = t->params.redirect_ttl};
    if (t->exposure == EXPOSURE_AUTH)
        return guard_new(&config, &t->guard, err);
    t->gate = gate_of(t);
    return 0;
}

const struct http_guard *public_guard_hook(const struct target *t)
{
    return t->guard != NULL ? guard_hook(t->guard) : exposure_gate_hook(t->gate);
}

void public_guard_free(struct target *t)
{
    guard_free(t->guard);
    exposure_gate_free(t->gate);
}
