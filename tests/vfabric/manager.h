/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The management plane: MADs find their way hop by hop over links that are up, at once and beside
 * the data (VL15 has no credits that data could take). Clients are programs on the host that
 * attach to a host of the model through ibsim's libumad2sim.
 */
#ifndef VF_MANAGER_H
#define VF_MANAGER_H

#include "fabric.h"

#define NO_CLIENT UINT32_MAX

struct mad_address {
	uint16_t slid, dlid;
	uint32_t sqp, dqp;
};

struct client {
	int fd;			/* -1: free */
	uint32_t id;		/* its pid, names its socket */
	uint32_t port;		/* where it is attached */
	uint8_t is_sm;
	uint8_t classes[32];	/* of which it has sent MADs: bit set */
	uint8_t subscribed;	/* has set an InformInfo: takes Reports */
	uint8_t blocked;	/* its socket is full; queue waits */
	struct sim_request *queue;
	uint32_t nqueue, queue_room;
	uint32_t most;		/* that ever waited */
	uint64_t unread;	/* MADs lost as it had not read so many */
};

struct trap {
	uint32_t node;
	uint8_t notice[64];
	uint64_t tid;
	uint64_t next_ms;
	uint32_t tries;
};

/* A request whose answer has to come from outside of the model, or whose packet a fault has met. */
struct pending {
	uint32_t client;
	uint32_t tries;		/* that are left */
	uint32_t taker;		/* the program that has the request, or NONE */
	uint64_t until_ms;
	struct mad_address to;
	uint8_t mad[256];
};

#define ANSWERED 256	/* requests that were sent again and answered: they are not answered twice */

/* A MAD that is late on a cable. */
struct late {
	uint32_t port;		/* that it left by */
	uint64_t due_ms;
	struct mad_address address;
	uint8_t mad[256];
};

#define MAX_LATE 256

struct manager {
	struct client *clients;
	uint32_t nclients;
	struct trap *traps;
	uint32_t ntraps, trap_room;
	uint64_t next_tid, now_ms;
	int ctl;		/* where clients connect */
	int epoll;
	int fd_limit;
	uint64_t looked_ms;	/* when it was seen last who of the clients is dead */
	char name[64];		/* prefix of the socket names */
	struct pending *pending;
	uint32_t npending;
	uint64_t answered_tids[ANSWERED];
	uint32_t nanswered;
	struct late late[MAX_LATE];
	uint32_t nlate;
	uint64_t delayed;	/* MADs that were late */
	uint64_t faults;	/* and those that a fault has lost, too */
	uint64_t smps;
	uint64_t sets[2][64];	/* answered, directed or by LID, by attribute */
	uint64_t lost;		/* MADs that got nowhere */
	uint64_t gone;		/* to real HCAs */
	uint32_t taker;		/* the program that has taken a request last */
	/* The answers that our own hosts wait for: sa.c */
	uint8_t answer[256];
	uint64_t answer_tid;
	int answered;
};

/* smi.c */
/* A host or switch of the model sends a MAD. */
void mad_send(struct fabric *f, uint32_t port, const struct mad_address *to, uint8_t *mad);
/* A directed-route SMP arrives at a port over the wire. */
void smi_arrive(struct fabric *f, uint32_t port, uint8_t *mad);
/* A LID-routed MAD arrives at a port over the wire. */
void mad_arrive(struct fabric *f, uint32_t port, const struct mad_address *address, uint8_t *mad);
/* MADs that are late go on. Return: ms to the next, or -1. */
int late_go_on(struct fabric *f);

/* trap.c */
void trap_link_state(struct fabric *f, uint32_t node);				/* 128 */
void trap_flow_control(struct fabric *f, uint32_t port);			/* 131 */
void trap_capabilities(struct fabric *f, uint32_t port);			/* 144 */
void trap_description(struct fabric *f, uint32_t node);				/* 144 */
/* LinkWidthEnabled, LinkSpeedEnabled or both have changed at the port. */
void trap_enabled(struct fabric *f, uint32_t port, int width, int speed);	/* 144 */
void trap_repress(struct fabric *f, uint32_t node, const uint8_t *mad);
/* An SMP without the port's M_Key */
void trap_bad_mkey(struct fabric *f, uint32_t port, uint16_t slid, const uint8_t *mad);	/* 256 */
/* Sends again what no SM has repressed; now in ms. Return: ms to the next, or -1. */
int trap_resend(struct fabric *f, uint64_t now);

/* client.c: libumad2sim's protocol */
int clients_open(struct fabric *f, const char *name, int epoll);
void clients_close(struct fabric *f);
void clients_ready(struct fabric *f, uint64_t tag, uint32_t events);
/* A MAD for the programs at a host port. Return: 0 if nobody takes it. */
int clients_take(struct fabric *f, uint32_t port, const struct mad_address *address,
		 const uint8_t *mad);
/* A program's request has not been answered in time. */
void client_give_up(struct fabric *f, uint32_t number, const uint8_t *mad);
/* Drops those that have ended without a word. */
void clients_look(struct fabric *f);
/* The same every now and then. Return: ms to the next time, or -1. */
int clients_tick(struct fabric *f);
int clients_have_sm(const struct fabric *f, uint32_t port);
void clients_print(const struct fabric *f, FILE *file);
int clients_drop(struct fabric *f, uint32_t number);
#define TAG_CTL 1
#define TAG_CLIENT 0x100000000ull

/* pending.c: what the kernel does for a program that waits for an answer */
/* Somebody outside of the model has to answer. */
void pending_expect(struct fabric *f, uint32_t client, const uint8_t *mad);
/* A fault has met the request or its answer: if none comes it is sent again. */
void pending_resend(struct fabric *f, uint32_t client, const struct mad_address *to,
		    const uint8_t *mad);
/* Another program has the request: if it ends before it answers, that is told at once, else after a while. */
void pending_hold(struct fabric *f, uint32_t client, uint32_t taker, const uint8_t *mad);
void pending_taker_gone(struct manager *m, uint32_t taker);
/* A program asks, perhaps with a transaction ID that it has used before: that answer was of another request. */
void pending_asked(struct manager *m, const uint8_t *mad);
/* Whoever comes to have the client's number does not hear of what that one has asked. */
void pending_drop(struct manager *m, uint32_t client);
/* Whether somebody waits for just this answer. */
int pending_waits(const struct manager *m, const uint8_t *mad);
/* An answer has come. Return: 0 if it had one before. */
int pending_came(struct manager *m, const uint8_t *mad);
/* Sends again, or tells who has waited too long. Return: ms to the next look, or -1. */
int pending_expire(struct fabric *f);

/* sa.c */
/**
 * sa_path() - ask the SM's SA for the path between two host ports, as a program there would
 * @wait: lets the server work for some ms; returns 0 to give up
 * Return: 0 with *sl and *dlid set, or -1.
 */
int sa_path(struct fabric *f, uint32_t from, uint32_t to, uint8_t *sl, uint16_t *dlid,
	    int (*wait)(struct fabric *f));

#endif
