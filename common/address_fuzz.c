/* Any text is refused with a sentence, or is a list whose every row has the address that it begins
 * with; and an address that is in no row is refused exactly where it is an inner one. */
#include "common/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_address(const struct address_list *l, const struct sockaddr *address)
{
    bool listed = address_list_has(l, address);
    assert(address_is_refused(l, address) == (!listed && address_is_inner(address)));
}

static void check_first(const struct address_list *l, const char *text)
{
    char host[64];
    size_t len = strcspn(text, "/,");
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    if (len == 0 || len >= sizeof host)
        return;
    memcpy(host, text, len);
    host[len] = '\0';
    if (inet_pton(AF_INET, host, &v4.sin_addr) == 1)
        assert(address_list_has(l, (const struct sockaddr *)&v4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct address_list *l;
    struct error err = ERROR_INIT;
    if (size < sizeof v6.sin6_addr)
        return 0;
    memcpy(&v4.sin_addr, data, sizeof v4.sin_addr);
    memcpy(&v6.sin6_addr, data, sizeof v6.sin6_addr);
    _cleanup_free_ char *text =
        xstrndup((const char *)data + sizeof v6.sin6_addr, size - sizeof v6.sin6_addr);
    if (address_list_new(text, &l, &err) != 0) {
        assert(err.message[0] != '\0');
        return 0;
    }
    check_address(l, (const struct sockaddr *)&v4);
    check_address(l, (const struct sockaddr *)&v6);
    check_first(l, text);
    address_list_free(l);
    return 0;
}
