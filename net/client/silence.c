#include "net/client/silence.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* So many probes, or repetitions, without an answer: a lost packet alone proves nothing. */
enum { PROBES = 2, REPETITIONS = 3 };

static void set_number(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof value); /* TCP's own times remain */
}

void silence_watch(int fd, uint64_t silence_ms)
{
    int pause_s = silence_ms < 2000 ? 1 : (int)(silence_ms / 2000);
    set_number(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_number(fd, IPPROTO_TCP, TCP_KEEPIDLE, pause_s);
    set_number(fd, IPPROTO_TCP, TCP_KEEPINTVL, pause_s);
    set_number(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES);
}

bool silence_found(int fd, uint64_t silence_ms)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
           info.tcpi_state == TCP_ESTABLISHED && info.tcpi_unacked > 0 &&
           info.tcpi_retransmits >= REPETITIONS && info.tcpi_last_ack_recv >= silence_ms;
}
