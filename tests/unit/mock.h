/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A libibverbs.so.1 without hardware, for tests: devices that are connected to each other inside
 * one process. Its own verbs are those of infiniband/verbs.h; this is what a test can do to it.
 *
 * It is stricter than most hardware: a send slot is free again only when a completion at or
 * behind it was polled, a full completion queue loses what comes, a connection needs matching
 * PSNs, lkeys and rkeys are never equal.
 */
#ifndef MOCK_H
#define MOCK_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define MOCK_PKEYS	4

/* Entries of struct verbs_context, and of its ops, that a device may be without. */
#define MOCK_SLOTS(X)								\
	X(query_port) X(query_device_ex) X(query_rt_values) X(create_qp_ex) X(create_cq_ex)	\
	X(create_srq_ex) X(get_srq_num) X(alloc_td) X(dealloc_td) X(alloc_parent_domain)	\
	X(alloc_null_mr) X(advise_mr) X(modify_cq) X(alloc_dm) X(free_dm) X(reg_dm_mr) X(open_xrcd)		\
	X(close_xrcd) X(open_qp) X(create_wq) X(modify_wq) X(destroy_wq)			\
	X(create_rwq_ind_table) X(destroy_rwq_ind_table) X(create_counters)			\
	X(destroy_counters) X(attach_counters_point_flow) X(read_counters)			\
	X(create_flow_action_esp) X(modify_flow_action_esp) X(destroy_flow_action)		\
	X(ibv_create_flow) X(ibv_destroy_flow) X(modify_qp_rate_limit)
#define MOCK_OPS(X)								\
	X(alloc_mw) X(bind_mw) X(dealloc_mw) X(poll_cq) X(req_notify_cq) X(post_srq_recv)	\
	X(post_send) X(post_recv)
#define MOCK_VERB(name) MOCK_VERB_##name,
enum mock_verb { MOCK_SLOTS(MOCK_VERB) MOCK_OPS(MOCK_VERB) MOCK_VERBS };
#undef MOCK_VERB
#define MOCK_WITHOUT(name) (1ull << MOCK_VERB_##name)

/**
 * struct mock_plug - a device to be plugged; zero means the default
 * @name: "mock2"
 * @first_qpn, @first_key: where its numbers start; default: where no number has been before
 * @gid_shift: empty entries in front of the GID table
 * @pkeys: the P_Key table; 0xffff, 0x8001, 0x8002
 * @no_ipv4: only the link-local GID is there; @more_local: and a second one behind all others
 * @without: MOCK_WITHOUT() of verbs that it has not
 * @takes_wr: what it really takes of sends, as their size rounds them up: less than it says; 0: as it says
 * @max_qp_wr, @max_cqe: the device's limits; @limits: all it says, where not zero
 * @down: the port is not ACTIVE
 * @ports: how many; 1
 * @lid: of the first port; each of the others has the sixteenth behind that of the one before; none
 * @no_apm: queue pairs take no alternate path
 * @max_rate: the largest rate limit; any
 * @clock_khz: rate of the stamps of completions; 156250
 * @driver: what a provider has registered with verbs_register_driver(): the device is its; nobody's
 * @hidden_clock: they are there, and nobody can ask what time it is
 */
struct mock_plug {
	const char *name;
	uint32_t first_qpn, first_key;
	unsigned int gid_shift;
	uint16_t pkeys[MOCK_PKEYS];
	bool no_ipv4, more_local, down, no_apm;
	int ports;
	uint16_t lid;
	uint32_t max_rate;
	int max_qp_wr, max_cqe, takes_wr;
	struct ibv_device_attr limits;
	uint64_t without;
	const void *driver;
	uint64_t clock_khz;
	bool hidden_clock;
};

/* mock0 and mock1 are there from the beginning. 0 or an errno. */
int mock_plug(const struct mock_plug *how);
int mock_unplug(const char *name);		/* EBUSY while a context of it is open */
void mock_port_up(const char *name);
/* The next key of the device, and those that follow it; as @first_key. */
void mock_next_key(const char *name, uint32_t key);
/* Adds the IPv4 GID of a device that was plugged without. */
void mock_add_ipv4(const char *name);

/* Each request is executed so long after it was posted, not before. */
void mock_delay_us(unsigned int us);
/* RESET of a queue pair takes so long, as on hardware. */
void mock_reset_us(unsigned int us);
/* Requests wait, completions that are there can still be polled. */
void mock_stall(bool stalled);
/* Requests are executed at the responder but not completed at the requester (lost answers). */
void mock_hold_acks(bool hold);
/* ... those too that have a result; all come with the next try, when this is over. */
void mock_lose_answers(bool lose);
/* How long a request may go unanswered before IBV_WC_RETRY_EXC_ERR; default 1000. */
void mock_retry_ms(unsigned int ms);
/* Calls of @function ("ibv_reg_mr", "ibv_create_qp", "post_send" ...): after @skip ones that
 * are let through, @times ones fail with @err. */
void mock_fail(const char *function, int err, unsigned int skip, unsigned int times);
/* How many calls are to be failed yet. */
unsigned int mock_failures(void);
void mock_async_event(const char *device, int type);	/* a port event on all contexts */

enum mock_object {
	MOCK_CONTEXT, MOCK_PD, MOCK_MR, MOCK_CHANNEL, MOCK_CQ, MOCK_QP, MOCK_SRQ, MOCK_AH, MOCK_MW,
	MOCK_TD, MOCK_GROUP, MOCK_FIXED, MOCK_OBJECTS
};
unsigned int mock_live(enum mock_object kind);
unsigned int mock_live_total(void);
unsigned int mock_cq_overruns(void);
/* Messages of unknown queue pairs or with a wrong PSN. */
unsigned int mock_strays(void);
uint64_t mock_executed(void);
/* No request of any queue pair in RTS, or begun in SQD, waits to be completed. */
bool mock_quiet(void);
/* The GRH of the last queue pair of a device that went to RTR, or of a datagram that was posted since; GID index 255: none. */
struct ibv_global_route mock_last_grh(const char *device);
/* The P_Key of a queue pair, by its number on its device. */
uint16_t mock_pkey(uint32_t qpn);
/* As a subnet manager does. */
void mock_set_pkey(const char *device, int index, uint16_t pkey);
/* What a device sends on a queue pair, in packets of at most: enum ibv_mtu. */
int mock_path_mtu(uint32_t qpn);
int mock_path_sl(uint32_t qpn);
void mock_path(uint32_t qpn, uint16_t *dlid, uint8_t *sl, uint8_t *rate);
/* Somebody else changes it, as the kernel may. */
void mock_set_path(uint32_t qpn, uint16_t dlid, uint8_t sl, uint8_t rate);
/* All ports have so many low bits of their LIDs for paths. */
void mock_lmc(unsigned int lmc);
/*
 * The paths of all queue pairs of a device lead nowhere any more: those that are ARMED migrate, and their
 * peers when they hear of them. How many did.
 */
unsigned int mock_cut(const char *device);
/* As the module has it by APM: the path by another level is loaded as the alternate one, and used. */
void mock_reroute(uint32_t qpn, uint8_t sl);
/* A failed request takes queue pairs of UD and UC to SQE, as a device should, and not to ERR. */
void mock_sqe(bool on);
/* Rate limits of the queue pairs of a device, in all. */
uint64_t mock_rates(const char *device);
/* The SRQ that a request of XRC was last for. */
uint32_t mock_last_srqn(void);
/* As a CQ was asked for last, by ibv_modify_cq(). */
void mock_last_moderation(unsigned int *count, unsigned int *period);
/* What a device was asked for, of the queue pair that was created last. */
void mock_last_caps(uint32_t *max_send_wr, int *cqe);

/*
 * Null mode, from the next opened device on: post_send and post_recv keep the wr_id and return,
 * poll_cq reports them. No thread, no lock: for counting instructions.
 */
void mock_null_mode(bool on);

#endif /* MOCK_H */
