/* The election of a primary under a lease, as one proxy takes part in it: which call to etcd comes
 * next, and what its answer means.  Pure; proxy/metastore/etcd.c makes the calls.
 *
 *   observe ──▶ somebody is primary, or nobody can say: wait, observe again
 *      ▲   └──▶ nobody is: grant a lease, stand for election under it ──▶ lead
 *      └────────── revoke ◀── resigned, closing, not elected, or the lease is over ◀──┘ (renew)
 *
 * The lease counts from the moment at which its grant or renewal was *sent*, and ends an eighth
 * early: this proxy has stopped before etcd lets another one begin, as far as clocks can be
 * trusted.  Nothing depends on them: every change is fenced (proxy/metastore/etcd_documents.h).
 *
 * Whoever has resigned lets the others go first: it does not stand for the time of a lease.  One
 * that has withdrawn gives the lease back, stands no more, and goes on observing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct election_rules {
    uint64_t ttl_ms;
    bool stands; /* false: it only looks on */
};

enum election_call {
    ELECTION_WAIT, /* for wait_ms, or until it resigns or closes */
    ELECTION_OBSERVE,
    ELECTION_GRANT,
    ELECTION_STAND,
    ELECTION_RENEW,
    ELECTION_REVOKE,
    ELECTION_END, /* it is closed, and holds nothing any more */
};

struct election_step {
    enum election_call call;
    uint64_t wait_ms;
    uint64_t timeout_ms; /* of the call */
    uint64_t lease;      /* that it is about */
};

struct election_answer {
    int code;         /* 0; E_NOT_FOUND: no such lease; E_IN_DOUBT: nobody knows; or a refusal */
    bool nobody;      /* of observe: there is no primary */
    uint64_t lease;   /* of grant */
    uint64_t ttl_s;   /* of grant and renew: that etcd has granted */
    uint64_t elected; /* of stand: the revision with which it was; 0: another one is */
    uint64_t sent_ms; /* when the call was begun */
};

struct election {
    struct election_rules rules;
    enum election_call next; /* after the wait */
    uint64_t wake_ms;
    bool closing;
    bool resigned;     /* the present election; or the next campaign waits */
    bool rests;        /* it has resigned, and lets the others go first */
    uint64_t lease;    /* 0: none */
    uint64_t elected;  /* revision; 0: not primary */
    uint64_t until_ms; /* of the lease, by our clock */
};

void election_init(struct election *e, const struct election_rules *rules);
/* What comes next.  To be asked again after each answer, and while it says WAIT. */
struct election_step election_next(struct election *e, uint64_t now_ms);
/* The call that election_next() named has ended. */
void election_answered(struct election *e, const struct election_answer *a, uint64_t now_ms);
/* The revision under which this proxy is primary now; 0: it is not, and never will be again under
 * the one that was. */
uint64_t election_held(const struct election *e, uint64_t now_ms);
void election_resign(struct election *e);
void election_withdraw(struct election *e);
void election_close(struct election *e);

/* --- a change under an election --------------------------------------------------------------- */

/* A change whose answer does not come is sent again until an answer says what became of it. */
struct election_change {
    bool in_doubt; /* an attempt may have been made, or may yet be */
    uint64_t end_ms;
};

enum election_verdict {
    VERDICT_NONE,      /* the attempt did not bring one */
    VERDICT_FINAL,     /* it says what became of the change */
    VERDICT_OVERTAKEN, /* this attempt did nothing; what an earlier one did cannot be seen any more
                        */
};

enum election_outcome {
    CHANGE_KNOWN,   /* the verdict says what became of it */
    CHANGE_REFUSED, /* it was not made, and will not be */
    CHANGE_AGAIN,
    CHANGE_IN_DOUBT, /* it is given up: nobody can be asked any more */
};
/* An attempt has ended with this code.  Once one is in doubt only a verdict ends the doubt: a later
 * refusal says nothing of the earlier attempt, which may still be on its way. */
enum election_outcome election_change_ended(struct election_change *c, int code,
                                            enum election_verdict verdict, bool leads,
                                            uint64_t now_ms);
