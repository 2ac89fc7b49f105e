/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is right and wrong with a subnet's routing, in figures and in words. */
#ifndef REPATH_FABRIC_CHECK_H
#define REPATH_FABRIC_CHECK_H

#include "flow.h"

#define TOLD		10	/* of one kind, the rest is counted */
#define CHECK_HOPS	64
#define CHECK_BINS	10

enum check_isolation {
	ISOLATION_NONE,
	ISOLATION_LANES,	/* no two partitions share a lane of a link between switches */
	ISOLATION_LINKS,	/* nor a link */
};

struct partitions;

/**
 * struct check_wants - what is a fault, beside what always is
 * @minimal: a path that is longer than the shortest way
 * @symmetric: a path whose SL is another one than that of the way back
 * @isolation: what partitions must not share
 * @partitions: who they are, or NULL
 */
struct check_wants {
	bool minimal;
	bool symmetric;
	enum check_isolation isolation;
	const struct partitions *partitions;
};

/**
 * struct fault - one thing that is wrong, or worth knowing
 * @kind: one word for scripts
 * @wrong: it is a fault, not only a note
 * @count: paths, or whatever @what counts
 * @what: what is wrong, and where
 * @then: what to do next
 */
struct fault {
	const char *kind;
	bool wrong;
	uint64_t count;
	char *what;
	char *then;
};

/**
 * struct check - the outcome
 * @hosts: ports of hosts that have a LID and a cable
 * @cables: cables, those of hosts too
 * @pairs: ways from a host's port to a LID of another port of a host
 * @unreached: of those, how many do not arrive
 * @management: ways between hosts and switches' own LIDs that do not arrive
 * @looping: LIDs for which the tables have a loop
 * @longer: pairs whose path is longer than the shortest
 * @most_longer: by how many cables at most
 * @hops: pairs by the number of switches that they pass
 * @used: directions of cables between switches that some path takes
 * @unused: and that none takes
 * @least, @most, @mean: paths of those that are used, and of all
 * @bins: directions by paths, in tenths of @most
 * @lanes: bits of the lanes that paths take between switches
 * @asymmetric: pairs of ports whose SLs differ by direction
 * @shared_links, @shared_lanes: directions between switches, and their lanes, in which paths of
 *	several partitions meet
 * @users: by port and lane, as flow.use, bits of the partitions whose paths go there; or NULL
 * @user_words: of each
 * @flow: what takes which link
 * @cycles: credit loops
 * @ncycles: how many
 * @fault: in words, the worst first
 * @faults: how many
 */
struct check {
	const struct fabric *f;
	unsigned int hosts;
	unsigned int cables;
	uint64_t pairs;
	uint64_t unreached;
	uint64_t management;
	unsigned int looping;
	uint64_t longer;
	unsigned int most_longer;
	uint64_t hops[CHECK_HOPS];
	unsigned int used;
	unsigned int unused;
	uint64_t least;
	uint64_t most;
	double mean;
	unsigned int bins[CHECK_BINS];
	uint16_t lanes;
	uint64_t asymmetric;
	unsigned int shared_links;
	unsigned int shared_lanes;
	uint64_t **users;
	unsigned int user_words;
	struct flow flow;
	struct cycle *cycles;
	unsigned int ncycles;
	struct fault *fault;
	unsigned int faults;
};

void check_run(struct check *c, const struct fabric *f, const struct check_wants *wants);
void check_free(struct check *c);
/* Whether something is wrong; notes do not count. */
bool check_failed(const struct check *c);

/* For the parts of the check: adds what they have found. */
void check_tell(struct check *c, const char *kind, bool wrong, uint64_t count, const char *then,
		const char *format, ...) __attribute__((format(printf, 6, 7)));

void check_reach(struct check *c, const struct check_wants *wants);
void check_lanes(struct check *c, const struct check_wants *wants);
void check_isolation(struct check *c, const struct check_wants *wants);

#endif /* REPATH_FABRIC_CHECK_H */
