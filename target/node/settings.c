#include "target/node/settings.h"

#include "cluster/documents/state_holder.h"
#include "net/daemon_sources.h"
#include "target/node/target.h"

static const char *text_of(const void *state, const char *name)
{
    const struct cluster_state *s = state;
    return config_get(&s->config, name);
}

void settings_take(struct target *t, const struct cluster_state *s)
{
    daemon_sources_cluster(t->sources, text_of, s);
}

void settings_take_last(struct target *t)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    settings_take(t, s);
}
