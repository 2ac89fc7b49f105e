/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Stands in for libshim/ctl.c and the module behind it: everything happens in one process, whose
 * contexts are each other's peers. Messages between them are delivered late, twice, in another
 * order and sometimes reported as not delivered, as the seed says.
 */
#ifndef FAKE_MODULE_H
#define FAKE_MODULE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct fake_faults - what happens to messages, each in percent
 * @seed: of the random sequence
 * @late_us: each message waits for up to so long
 * @spoilt: the first of several records is not taken; @unasked: of a PREPARE
 * @slow, @slow_us: messages of this type (enum repath_msg) take so much longer
 * @old_keys: shims do not know the question how far a table of keys goes
 * @away_us: how long a process whose device is away is looked for
 */
struct fake_faults {
	unsigned int seed, late_us;
	int twice, lost, spoilt, unasked;
	int slow;
	unsigned int slow_us, away_us;
	bool old_keys;
};

void fake_faults_set(const struct fake_faults *f);

/* Where a move is, in the order in which a move passes them. */
enum fake_stage {
	FAKE_CHECK,
	FAKE_SUSPEND,
	FAKE_GATED,
	FAKE_PARKED,
	FAKE_RESUME,
	FAKE_RECREATED,
	FAKE_CONNECTED,
	FAKE_DONE,
	FAKE_ABORT,
	FAKE_STAGES
};

enum fake_fault {
	FAKE_NONE,		/* only looked at */
	FAKE_LOST,		/* the first three */
	FAKE_OVERTAKEN,		/* by those that follow */
	/* A copy, of this move or of the one before, comes when the stage begins: */
	FAKE_DOUBLED,
	FAKE_DELAYED,		/* and the first one did not come when it was sent */
	FAKE_FORGED,		/* from another process */
	FAKE_TRUNCATED,
	FAKE_FAULTS
};

/**
 * struct fake_tap - a hand on all messages of one type
 * @type: enum repath_msg
 */
struct fake_tap {
	int type;
	enum fake_fault fault;
	enum fake_stage stage;
	bool forget;		/* what was kept before */
	bool always;		/* FAKE_LOST: all of them */
};

void fake_tap_set(const struct fake_tap *tap);
/* How many were sent, and how many copies were delivered, since the last set. */
void fake_tap_get(unsigned int *touched, unsigned int *delivered);

/*
 * Each waits at most 10 s for the answer of the shim to the event and returns the
 * errno that it carried; *text, if given, is the reason (static).
 */
int fake_check(const char *dev, const char **text);
int fake_check_start(const char *dev);			/* does not wait */
int fake_check_force(const char *dev, const char **text);
int fake_suspend(const char *dev);			/* after fake_check; until RELEASE */
int fake_suspend_start(const char *dev);		/* does not wait */
int fake_abort(void);					/* until ABORT */
int fake_resume(const char *dev, const char **text);	/* until REPLAY */
/* For two operations at once: those that follow are about this one (0 to 7; 0 at first). */
void fake_use_op(unsigned int op);
int fake_resume_start(const char *dev);			/* does not wait */
int fake_abort_start(void);				/* does not wait */
int fake_wait(int stage);				/* enum repath_stage */
/* The peers of a context's connections are said to have died. */
void fake_gone(const char *dev);
/* The peer of an unmoved queue pair is no READY one: enum repath_conn_state. */
void fake_unready(uint32_t qpn, int state);
/* All processes are known by other numbers, as if their modules had been loaded anew. */
void fake_renumber(void);
/* The control thread reads the module's list of connections. */
void fake_look(void);
/* The module of the host of this queue pair has been loaded anew: its connection has another number there. */
void fake_load_anew(uint32_t qpn);
/*
 * The module of the host of these two queue pairs is unloaded and loaded: the connection of each has the number that the
 * other's had.
 */
void fake_load_swapped(uint32_t a, uint32_t b);
/*
 * The module of this device's host has been loaded anew, and knows all by the numbers that it had for them before: only
 * others know its process by another number, once they look. NULL: by the first one. The string stays.
 */
void fake_known_anew(const char *dev);
/* At most so many keys of a device that were taken back are kept, for peers that have not heard of it. */
void fake_removed_keys_kept(unsigned int max);
/* ... and so many are. */
unsigned int fake_removed_keys(const char *dev);
/* Devices are looked for where they are not: nobody finds another one. */
void fake_hide(bool hidden);
/* The module says that the peer of this queue pair, which is on a move, is looked for elsewhere now. */
void fake_look_elsewhere(uint32_t qpn);
/* What the peer of a queue pair said of its keys before its device ever moved comes again. */
void fake_late_keys(uint32_t qpn);
/* The module goes; the next event is that of a new one. */
void fake_unload(void);
/* The control thread looks when it is woken or wants to, also for what is late. Wakes it. */
void fake_patient(bool patient);
bool fake_is_control(void);		/* is this thread that one? */
/* Waits until no connection is moving: the peers' ends finish a little later than the mover's. */
int fake_settled(void);

/**
 * struct fake_path - a path that has changed; zero: as before
 * @dlid: it leads there, from @slid, 0: any of the port's
 */
struct fake_path {
	uint32_t dlid, slid, new_dlid;
	int sl;
	uint8_t rate, mtu, tclass;
};

/* A queue pair, by the number that its application has, shall be connected anew by a path. */
void fake_cycle_start(uint32_t qpn, const struct fake_path *path);
int fake_cycle_wait(uint32_t qpn);	/* at most 20 s: what the shim answered, or ETIMEDOUT */
int fake_cycle(uint32_t qpn, const struct fake_path *path);
/* A path from a device's port 1 has changed; returns when the shim has heard it. @gid: or NULL */
void fake_repath(const char *dev, const uint8_t *gid, const struct fake_path *path);

/* So many UD addresses are kept by the shim. */
void fake_addresses_kept(unsigned int max);

/* UD queue pairs that have moved are at this LID; 0: at the one that they had. */
void fake_moved_lid(uint32_t lid);

/* All senders of messages are at this LID. */
void fake_peer_lid(uint32_t lid);

/* Others know another queue pair by this number; 0: none. */
void fake_number_known(uint32_t qpn);
void fake_numbers_away(bool away);	/* any number may be one of a process that is away */
/* The next queue pair that goes to RTR is refused with this. */
void fake_refuse(int err);
/* This process's module does not ask for the next @n, and says this; 0: or nothing. */
void fake_no_answer(int err, unsigned int n);

struct repath_counters;
const struct repath_counters *fake_counters(void);	/* of the last answer that had some */

#endif /* FAKE_MODULE_H */
