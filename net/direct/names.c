#include "net/direct/names.h"

#include <pthread.h>
#include <string.h>

#include "common/mem.h"
#include "net/direct/hash.h"

enum { SLOTS = 256 };

struct name {
    char *authority; /* NULL: none */
    char address[NAMES_ADDRESS_MAX];
    uint64_t since_ms;
};

struct names {
    pthread_mutex_t lock; /* of the slots */
    struct name slots[SLOTS];
};

void names_learn(struct names *n, const char *authority, const char *address, uint64_t now_ms)
{
    if (strlen(address) >= NAMES_ADDRESS_MAX)
        return; /* it is asked for each time */
    pthread_mutex_lock(&n->lock);
    struct name *name = &n->slots[direct_hash(0, authority) % SLOTS];
    if (name->authority == NULL || strcmp(name->authority, authority) != 0) {
        free(name->authority);
        name->authority = xstrdup(authority);
    }
    memcpy(name->address, address, strlen(address) + 1);
    name->since_ms = now_ms;
    pthread_mutex_unlock(&n->lock);
}

bool names_find(struct names *n, const char *authority, uint64_t now_ms,
                char address[NAMES_ADDRESS_MAX])
{
    pthread_mutex_lock(&n->lock);
    const struct name *name = &n->slots[direct_hash(0, authority) % SLOTS];
    bool known = name->authority != NULL && strcmp(name->authority, authority) == 0 &&
                 now_ms - name->since_ms < NAMES_KNOWN_MS;
    if (known)
        memcpy(address, name->address, NAMES_ADDRESS_MAX);
    pthread_mutex_unlock(&n->lock);
    return known;
}

struct names *names_new(void)
{
    struct names *n = xcalloc(1, sizeof *n);
    pthread_mutex_init(&n->lock, NULL);
    return n;
}

void names_free(struct names *n)
{
    if (n == NULL)
        return;
    for (size_t i = 0; i < SLOTS; i++)
        free(n->slots[i].authority);
    pthread_mutex_destroy(&n->lock);
    free(n);
}
