#include "net/http/peers.h"

#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <xxhash.h>

#include "common/mem.h"
#include "common/rng.h"

enum { CHAINS = 1024 };

struct peer {
    struct peer *next;
    struct network {
        uint64_t bits; /* of an IPv4 address, or the first half of an IPv6 one */
        uint64_t family;
    } network;
    unsigned connections;
};

struct peers {
    unsigned each_max;
    uint64_t seed; /* so that nobody can choose addresses that share a chain */
    pthread_mutex_t lock;
    struct peer *chains[CHAINS];
};

struct peers *peers_new(unsigned each_max)
{
    struct peers *p = xcalloc(1, sizeof *p);
    p->each_max = each_max;
    random_bytes(&p->seed, sizeof p->seed);
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void peers_free(struct peers *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < CHAINS; i++)
        assert(p->chains[i] == NULL);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static struct network network_of(const struct sockaddr *peer)
{
    if (peer->sa_family == AF_INET)
        return (struct network){.bits = ((const struct sockaddr_in *)peer)->sin_addr.s_addr,
                                .family = AF_INET};
    struct network n = {.family = peer->sa_family};
    if (peer->sa_family != AF_INET6)
        return n;
    const struct in6_addr *in6 = &((const struct sockaddr_in6 *)peer)->sin6_addr;
    uint32_t mapped;
    memcpy(&n.bits, in6->s6_addr, sizeof n.bits);
    memcpy(&mapped, in6->s6_addr + 12, sizeof mapped);
    return IN6_IS_ADDR_V4MAPPED(in6) ? (struct network){.bits = mapped, .family = AF_INET} : n;
}

static bool network_same(const struct network *a, const struct network *b)
{
    return a->bits == b->bits && a->family == b->family;
}

static struct peer **find(struct peers *p, struct network network)
{
    size_t chain = XXH3_64bits_withSeed(&network, sizeof network, p->seed) % CHAINS;
    struct peer **at = &p->chains[chain];
    while (*at != NULL && !network_same(&(*at)->network, &network))
        at = &(*at)->next;
    return at;
}

bool peers_enter(struct peers *p, const struct sockaddr *peer)
{
    struct network network = network_of(peer);
    pthread_mutex_lock(&p->lock);
    struct peer **at = find(p, network);
    if (*at == NULL) {
        *at = xcalloc(1, sizeof **at);
        (*at)->network = network;
    }
    bool has_room = (*at)->connections < p->each_max;
    if (has_room)
        (*at)->connections++;
    pthread_mutex_unlock(&p->lock);
    return has_room;
}

void peers_leave(struct peers *p, const struct sockaddr *peer)
{
    pthread_mutex_lock(&p->lock);
    struct peer **at = find(p, network_of(peer));
    assert(*at != NULL && (*at)->connections > 0);
    if (--(*at)->connections == 0) {
        struct peer *gone = *at;
        *at = gone->next;
        free(gone);
    }
    pthread_mutex_unlock(&p->lock);
}

unsigned peers_count(struct peers *p, const struct sockaddr *peer)
{
    pthread_mutex_lock(&p->lock);
    const struct peer *one = *find(p, network_of(peer));
    unsigned connections = one == NULL ? 0 : one->connections;
    pthread_mutex_unlock(&p->lock);
    return connections;
}
