#include "common/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/parse.h"

enum { V4_BYTES = 4, V6_BYTES = 16, V4_IN_MAPPED = 12, ROWS_MAX = 256, ROW_TEXT_MAX = 64 };

/* An address: of IPv4 the first bytes. */
struct ip {
    bool is_v4;
    uint8_t bytes[V6_BYTES];
};

struct range {
    struct ip first;
    unsigned bits; /* of it that count */
};

struct address_list {
    size_t count;
    struct range rows[];
};

/* --- addresses -------------------------------------------------------------------------------- */

static struct ip v4_of(const uint8_t bytes[static V4_BYTES])
{
    struct ip ip = {.is_v4 = true};
    memcpy(ip.bytes, bytes, V4_BYTES);
    return ip;
}

/* An IPv4 address in IPv6's clothes is one of IPv4: ::ffff:a.b.c.d, and by NAT64 64:ff9b::a.b.c.d.
 */
static struct ip v6_of(const uint8_t bytes[static V6_BYTES])
{
    static const uint8_t mapped[V4_IN_MAPPED] = {[10] = 0xff, [11] = 0xff};
    static const uint8_t nat64[V4_IN_MAPPED] = {0x00, 0x64, 0xff, 0x9b};
    struct ip ip = {.is_v4 = false};
    if (memcmp(bytes, mapped, sizeof mapped) == 0 || memcmp(bytes, nat64, sizeof nat64) == 0)
        return v4_of(bytes + V4_IN_MAPPED);
    memcpy(ip.bytes, bytes, V6_BYTES);
    return ip;
}

static bool ip_of(const struct sockaddr *address, struct ip *out)
{
    if (address->sa_family == AF_INET) {
        uint8_t bytes[V4_BYTES];
        memcpy(bytes, &((const struct sockaddr_in *)address)->sin_addr, sizeof bytes);
        *out = v4_of(bytes);
        return true;
    }
    if (address->sa_family == AF_INET6) {
        *out = v6_of(((const struct sockaddr_in6 *)address)->sin6_addr.s6_addr);
        return true;
    }
    return false;
}

unsigned address_port(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)address)->sin_port);
    if (address->sa_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
    return 0;
}

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    return memcmp(a, b, whole) == 0 &&
           (rest == 0 || ((a[whole] ^ b[whole]) & (0xff << (8 - rest)) & 0xff) == 0);
}

static bool range_has(const struct range *r, const struct ip *ip)
{
    return r->first.is_v4 == ip->is_v4 && same_bits(r->first.bytes, ip->bytes, r->bits);
}

/* --- what is not of the Internet -------------------------------------------------------------- */

#define V4(a, b, c, d)                         \
    {                                          \
        .is_v4 = true, .bytes = { a, b, c, d } \
    }
#define V6(...)                                  \
    {                                            \
        .is_v4 = false, .bytes = { __VA_ARGS__ } \
    }

/* RFC 6890 and its registries. */
static const struct range inner[] = {
    {V4(0, 0, 0, 0), 8},                          /* this host, unspecified */
    {V4(10, 0, 0, 0), 8},                         /* private */
    {V4(100, 64, 0, 0), 10},                      /* shared (RFC 6598) */
    {V4(127, 0, 0, 0), 8},                        /* loopback */
    {V4(169, 254, 0, 0), 16},                     /* link-local */
    {V4(168, 63, 129, 16), 32},                   /* Azure's services for its machines */
    {V4(172, 16, 0, 0), 12},                      /* private */
    {V4(192, 0, 0, 0), 24},                       /* protocols' own */
    {V4(192, 168, 0, 0), 16},                     /* private */
    {V4(198, 18, 0, 0), 15},                      /* benchmarks */
    {V4(224, 0, 0, 0), 4},                        /* multicast */
    {V4(240, 0, 0, 0), 4},                        /* reserved, broadcast */
    {V6(0x00), 96},                               /* unspecified, loopback, compatible with IPv4 */
    {V6(0x00, 0x64, 0xff, 0x9b, 0x00, 0x01), 48}, /* NAT64 of a site (RFC 8215) */
    {V6(0x01, 0x00), 64},                         /* discard */
    {V6(0x20, 0x01, 0x00, 0x00), 32},             /* Teredo: an IPv4 address is in it */
    {V6(0x20, 0x02), 16},                         /* 6to4: the same */
    {V6(0xfc), 7},                                /* unique local */
    {V6(0xfe, 0x80), 10},                         /* link-local */
    {V6(0xfe, 0xc0), 10},                         /* site-local */
    {V6(0xff), 8},                                /* multicast */
};

static bool ip_is_inner(const struct ip *ip)
{
    for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++) {
        if (range_has(&inner[i], ip))
            return true;
    }
    return false;
}

bool address_is_inner(const struct sockaddr *address)
{
    struct ip ip;
    return !ip_of(address, &ip) || ip_is_inner(&ip);
}

/* --- hosts ------------------------------------------------------------------------------------ */

static bool read_ip(const char *text, size_t len, struct ip *out)
{
    char host[INET6_ADDRSTRLEN + 1];
    uint8_t bytes[V6_BYTES];
    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    if (len == 0 || len >= sizeof host)
        return false;
    memcpy(host, text, len);
    host[len] = '\0';
    if (inet_pton(AF_INET, host, bytes) == 1)
        *out = v4_of(bytes);
    else if (inet_pton(AF_INET6, host, bytes) == 1)
        *out = v6_of(bytes);
    else
        return false;
    return true;
}

bool address_is_literal(const char *host, size_t len)
{
    struct ip ip;
    return read_ip(host, len, &ip);
}

bool address_is_host(const struct sockaddr *address, const char *host, size_t len)
{
    struct ip a, b;
    return ip_of(address, &a) && read_ip(host, len, &b) && a.is_v4 == b.is_v4 &&
           memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

/* --- lists ------------------------------------------------------------------------------------ */

static unsigned width_of(const struct ip *ip)
{
    return ip->is_v4 ? 8 * V4_BYTES : 8 * V6_BYTES;
}

static bool read_bits(const char *text, size_t len, unsigned most, unsigned *out)
{
    char digits[4];
    uint64_t bits;
    if (len == 0 || len >= sizeof digits)
        return false;
    memcpy(digits, text, len);
    digits[len] = '\0';
    if (parse_u64(digits, &bits, NULL) != 0 || bits > most)
        return false;
    *out = (unsigned)bits;
    return true;
}

static void clear_beyond(struct ip *ip, unsigned bits)
{
    for (unsigned at = bits; at < width_of(ip); at++)
        ip->bytes[at / 8] &= (uint8_t) ~(0x80 >> at % 8);
}

/* The bits of a prefix are counted as they are written: of ::ffff:10.0.0.0/104 8 are IPv4's. */
static bool read_range(const char *text, size_t len, struct range *out)
{
    const char *slash = memchr(text, '/', len);
    size_t host = slash != NULL ? (size_t)(slash - text) : len;
    bool is_v6 = memchr(text, ':', host) != NULL;
    unsigned written = is_v6 ? 8 * V6_BYTES : 8 * V4_BYTES, bits = written;
    if (!read_ip(text, host, &out->first) ||
        (slash != NULL && !read_bits(slash + 1, len - host - 1, written, &bits)))
        return false;
    unsigned beside = is_v6 && out->first.is_v4 ? 8 * V4_IN_MAPPED : 0;
    if (bits < beside)
        return false;
    out->bits = bits - beside;
    return true;
}

static int take_row(const char *text, size_t len, struct range *out, struct error *err)
{
    int shown = (int)(len < ROW_TEXT_MAX ? len : ROW_TEXT_MAX);
    if (!read_range(text, len, out))
        return error_set(err, E_INVALID, "'%.*s' is no network: write 10.0.0.0/8 or fd00::/8",
                         shown, text);
    struct ip cleared = out->first;
    clear_beyond(&cleared, out->bits);
    if (memcmp(cleared.bytes, out->first.bytes, sizeof cleared.bytes) != 0)
        return error_set(
            err, E_INVALID,
            "'%.*s' has bits behind its prefix: set them to 0, or write a longer prefix", shown,
            text);
    return 0;
}

int address_list_new(const char *text, struct address_list **out, struct error *err)
{
    size_t most = 1;
    for (const char *at = text; *at != '\0'; at++)
        most += *at == ',';
    if (most > ROWS_MAX)
        return error_set(err, E_INVALID, "%zu networks are given, the limit is %d", most, ROWS_MAX);
    struct address_list *l = xcalloc(1, sizeof *l + most * sizeof l->rows[0]);
    for (const char *at = text; *text != '\0';) {
        size_t len = strcspn(at, ",");
        int code = take_row(at, len, &l->rows[l->count++], err);
        if (code != 0) {
            address_list_free(l);
            return code;
        }
        if (at[len] == '\0')
            break;
        at += len + 1;
    }
    *out = l;
    return 0;
}

void address_list_free(struct address_list *l)
{
    free(l);
}

bool address_list_has(const struct address_list *l, const struct sockaddr *address)
{
    struct ip ip;
    if (!ip_of(address, &ip))
        return false;
    for (size_t i = 0; i < l->count; i++) {
        if (range_has(&l->rows[i], &ip))
            return true;
    }
    return false;
}

bool address_is_refused(const struct address_list *l, const struct sockaddr *address)
{
    return address_is_inner(address) && !address_list_has(l, address);
}
