/* SPDX-License-Identifier: GPL-2.0 */
/* A question where a queue pair is, from RESOLVE until it is answered; of a UD address, kept. */
#ifndef REPATH_RESOLVE_QUESTION_H
#define REPATH_RESOLVE_QUESTION_H

#include <linux/list.h>
#include <repath_peer.h>

#include "xprt.h"

struct repath_device;
struct repath_proc;
struct repath_question;

#define REPATH_ASKED_MAX	8	/* places that one question goes to */
#define REPATH_REFUSED_TRIES	3	/* what is not understood there may have been damaged */

/**
 * struct repath_asked - one place that a question goes to
 * @question: the question; NULL: not used
 * @addr: the place
 * @cookie: only a queue pair of this process is meant; 0: anybody's
 * @answer: what came back; network order
 * @err: no answer: negative errno
 * @status: the answer, enum repath_peer_status
 * @refused: how often it was not understood
 */
struct repath_asked {
	struct repath_question *question;
	struct repath_addr addr;
	u64 cookie;
	struct repath_resolved answer;
	int err;
	u8 status;
	u8 refused;
};

/**
 * struct repath_question - RESOLVE of a process
 * @node: in @questions
 * @of_proc: in repath_proc::asks, while it is wanted
 * @by_id: by @proc and @id
 * @by_token: by @token, of UD addresses
 * @proc: who asks; holds a reference
 * @dev: own device until all have answered; holds a reference
 * @dev_index: its index, never used twice
 * @id: the process's number of it
 * @token: of a UD address; else 0
 * @moved_cookie: who has told last that it has moved; 0: nobody
 * @moved_at: when that was, see struct repath_moved
 * @qpn: the number asked for
 * @src_qpn: own queue pair
 * @type: enum ib_qp_type
 * @gone: not wanted any more; freed when the last answer is there
 * @told: the process knows a place: where nobody answers, that one holds
 * @heard: it was told by the one who has moved, since it was asked
 * @open: places that have not answered
 * @nasked: entries of @asked
 * @place: where the queue pair is, as it has said itself or as it was found, else the address itself
 * @found: where it was found last, else the address itself
 * @asked: the places; [0] is the address itself. Freed when all have answered
 * @later: in repath_proc::unknown, or empty
 * @again: jiffies, when
 * @tries: how often nobody has known it, or its process could not be told
 */
struct repath_question {
	struct list_head node;
	struct list_head of_proc;
	struct hlist_node by_id;
	struct hlist_node by_token;
	struct repath_proc *proc;
	struct repath_device *dev;
	u32 dev_index;
	u64 id;
	u64 token;
	u64 moved_cookie;
	u64 moved_at;
	u32 qpn;
	u32 src_qpn;
	u8 type;
	bool gone;
	bool told;
	bool heard;
	u32 open;
	u32 nasked;
	struct repath_addr place;
	struct repath_addr found;
	struct repath_asked *asked;
	struct list_head later;
	unsigned long again;
	u8 tries;
};

/* resolve.c */
int repath_question_tell(struct repath_question *q, int err, const struct repath_addr *place,
			 u32 qpn, bool moved);
void repath_question_free(struct repath_question *q);

/* resolve_ask.c */
int repath_question_ask(struct repath_question *q, struct repath_device *dev);
void repath_question_found(struct repath_question *q);
void repath_question_is_asked(struct repath_question *q);
int repath_question_init(void);
void repath_question_exit(void);

#endif /* REPATH_RESOLVE_QUESTION_H */
