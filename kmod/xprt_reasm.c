// SPDX-License-Identifier: GPL-2.0
/*
 * Fragments come from anybody who can reach QP1: whatever they say is checked, and what they can
 * make this host keep is bounded in number, bytes and time.
 */
#include <linux/bitmap.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "xprt_reasm.h"

static void drop(struct repath_reasm *r, struct repath_inmsg *msg)
{
	hash_del(&msg->hash);
	list_del(&msg->lru);
	r->count--;
	if (!msg->done) {
		r->open--;
		r->bytes -= msg->total;
	}
	kvfree(msg->data);
	kfree(msg);
}

/* All fragments of it, those that come again and those that are still to come, are answered alike. */
static void close_msg(struct repath_reasm *r, struct repath_inmsg *msg, u8 status)
{
	msg->done = true;
	msg->status = status;
	r->open--;
	r->bytes -= msg->total;
	kvfree(msg->data);
	msg->data = NULL;
}

/**
 * repath_reasm_init - begin with nothing
 * @r: to initialise
 */
void repath_reasm_init(struct repath_reasm *r)
{
	hash_init(r->hash);
	INIT_LIST_HEAD(&r->lru);
	r->count = 0;
	r->open = 0;
	r->bytes = 0;
}

/**
 * repath_reasm_destroy - free everything
 * @r: as initialised
 */
void repath_reasm_destroy(struct repath_reasm *r)
{
	struct repath_inmsg *msg, *next;

	list_for_each_entry_safe(msg, next, &r->lru, lru)
		drop(r, msg);
}

/**
 * repath_reasm_expire - free what is old
 * @r: messages
 * @now: jiffies
 */
void repath_reasm_expire(struct repath_reasm *r, unsigned long now)
{
	struct repath_inmsg *msg, *next;

	list_for_each_entry_safe(msg, next, &r->lru, lru) {
		if (time_before(now, msg->seen + REPATH_REASM_AGE))
			break;
		drop(r, msg);
	}
}

/* Make room for one more by forgetting the oldest answer. */
static bool evict(struct repath_reasm *r)
{
	struct repath_inmsg *msg;

	list_for_each_entry(msg, &r->lru, lru)
		if (msg->done) {
			drop(r, msg);
			return true;
		}
	return false;
}

static struct repath_inmsg *find(struct repath_reasm *r, u64 id)
{
	struct repath_inmsg *msg;

	hash_for_each_possible(r->hash, msg, hash, id)
		if (msg->id == id)
			return msg;
	return NULL;
}

/* Of how many fragments a message is. */
static u32 frags_of(u32 total)
{
	return DIV_ROUND_UP(total, REPATH_FRAG_DATA);
}

/*
 * Make room for a message that is not whole yet, by giving up one that has not gone on: its sender, if there is one, sends it
 * again. Of those that go on none is given up: where more come than there is room for they would end one another, and
 * none become whole.
 */
static bool give_up_one(struct repath_reasm *r)
{
	struct repath_inmsg *msg;

	list_for_each_entry(msg, &r->lru, lru) {
		if (msg->done)
			continue;
		if (frags_of(msg->total) - msg->missing > 1 &&
		    time_before(jiffies, msg->seen + REPATH_REASM_STALL))
			continue;
		close_msg(r, msg, REPATH_PEER_BUSY);
		return true;
	}
	return false;
}

static bool has_room(const struct repath_reasm *r, u32 total)
{
	return r->open < REPATH_REASM_OPEN_MAX && r->bytes + total <= REPATH_REASM_BYTES;
}

static struct repath_inmsg *begin(struct repath_reasm *r, u64 id, u8 type, u32 total)
{
	u32 frags = frags_of(total);
	struct repath_inmsg *msg;

	/* What is whole at once waits for nothing, and is not kept out by what never becomes whole. */
	while (frags > 1 && !has_room(r, total))
		if (!give_up_one(r))
			return NULL;
	if (r->count >= REPATH_REASM_MAX && !evict(r))
		return NULL;
	msg = kzalloc(struct_size(msg, have, BITS_TO_LONGS(frags)), GFP_KERNEL);
	if (!msg)
		return NULL;
	msg->data = kvmalloc(total, GFP_KERNEL);
	if (!msg->data) {
		kfree(msg);
		return NULL;
	}
	msg->id = id;
	msg->type = type;
	msg->total = total;
	msg->missing = frags;
	hash_add(r->hash, &msg->hash, id);
	list_add_tail(&msg->lru, &r->lru);
	r->count++;
	r->open++;
	r->bytes += total;
	return msg;
}

/**
 * repath_reasm_has - has this fragment come before?
 * @r: messages
 * @frag: fragment; nothing of it need be right
 */
bool repath_reasm_has(struct repath_reasm *r, const struct repath_frag *frag)
{
	struct repath_inmsg *msg = find(r, be64_to_cpu(frag->msg_id));
	u32 offset = be32_to_cpu(frag->offset);

	if (!msg || frag->version != REPATH_PEER_VERSION || msg->type != frag->type ||
	    offset >= msg->total)
		return false;
	/* What was given up is refused like what was never taken. */
	if (msg->done)
		return msg->status != REPATH_PEER_BUSY;
	return test_bit(offset / REPATH_FRAG_DATA, msg->have);
}

/**
 * repath_reasm_add - a fragment has come
 * @r: messages
 * @frag: fragment
 * @len: bytes there are of it; may be more than it says to have
 * @whole: the message, if this fragment was the last one missing; else NULL. It must be given to
 *	repath_reasm_done() before the next call
 *
 * Context: may sleep.
 * Return: the answer to the fragment, enum repath_peer_status, unless *@whole is set.
 */
u8 repath_reasm_add(struct repath_reasm *r, const struct repath_frag *frag, u32 len,
		    struct repath_inmsg **whole)
{
	u32 total, offset, bytes, index;
	struct repath_inmsg *msg;
	u64 id;

	*whole = NULL;
	if (len < offsetof(struct repath_frag, data))
		return REPATH_PEER_MALFORMED;
	if (frag->version != REPATH_PEER_VERSION)
		return REPATH_PEER_VERSION_ERR;
	total = be32_to_cpu(frag->total);
	offset = be32_to_cpu(frag->offset);
	id = be64_to_cpu(frag->msg_id);
	if (frag->type == REPATH_MSG_NONE || frag->type >= __REPATH_MSG_MAX || frag->reserved ||
	    !total || total > REPATH_WIRE_MAX || offset >= total || offset % REPATH_FRAG_DATA)
		return REPATH_PEER_MALFORMED;
	bytes = min_t(u32, REPATH_FRAG_DATA, total - offset);
	if (len < offsetof(struct repath_frag, data) + bytes)
		return REPATH_PEER_MALFORMED;

	repath_reasm_expire(r, jiffies);
	msg = find(r, id);
	if (msg && (msg->total != total || msg->type != frag->type))
		return REPATH_PEER_MALFORMED;
	if (msg && msg->done)
		return msg->status;
	if (!msg)
		msg = begin(r, id, frag->type, total);
	if (!msg)
		return REPATH_PEER_BUSY;

	index = offset / REPATH_FRAG_DATA;
	if (__test_and_set_bit(index, msg->have))
		return REPATH_PEER_OK;
	memcpy(msg->data + offset, frag->data, bytes);
	msg->seen = jiffies;
	list_move_tail(&msg->lru, &r->lru);
	if (!--msg->missing)
		*whole = msg;
	return REPATH_PEER_OK;
}

/**
 * repath_reasm_done - a whole message was dealt with
 * @r: messages
 * @msg: from repath_reasm_add()
 * @status: its answer, which doubles of its fragments get, too
 *
 * What was not taken for want of memory is forgotten, so that it can be sent again.
 */
void repath_reasm_done(struct repath_reasm *r, struct repath_inmsg *msg, u8 status)
{
	if (status == REPATH_PEER_BUSY) {
		drop(r, msg);
		return;
	}
	close_msg(r, msg, status);
}
