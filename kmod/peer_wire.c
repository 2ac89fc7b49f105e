// SPDX-License-Identifier: GPL-2.0
/*
 * The two forms of the records in a message. At length each has both tokens and is judged by
 * itself. Packed, what is alike in all is said once, and one proof, which only who knows all the
 * tokens can make, stands for all: sixty-four connections are a few fragments instead of fourteen.
 * docs/protocol.md says why a proof is worth as much as the tokens.
 */
#include <crypto/algapi.h>
#include <crypto/blake2s.h>
#include <linux/mm.h>
#include <repath_peer.h>
#include <uapi/ib_repath.h>

#include "conn.h"
#include "device.h"
#include "lid.h"
#include "local.h"
#include "peer_wire.h"
#include "proc.h"

/* The columns of a packed message, in their order. */
enum column { QPN, PSN, FLAGS, COUNT, COLUMNS };

/* Of each column the least value, and how many bytes what is above it takes. */
struct shape {
	u64 least[COLUMNS];
	u8 width[COLUMNS];
};

static u64 get(const struct repath_conn_rec *rec, enum column column)
{
	switch (column) {
	case QPN:
		return rec->qpn;
	case PSN:
		return rec->psn;
	case FLAGS:
		return rec->flags;
	default:
		return rec->count;
	}
}

static void set(struct repath_conn_rec *rec, enum column column, u64 value)
{
	switch (column) {
	case QPN:
		rec->qpn = value;
		break;
	case PSN:
		rec->psn = value;
		break;
	case FLAGS:
		rec->flags = value;
		break;
	default:
		rec->count = value;
		break;
	}
}

static u32 packed_size(u32 nconns, const u8 width[COLUMNS])
{
	return sizeof(struct repath_wire_packed) +
	       nconns * (sizeof(__be16) + width[QPN] + width[PSN] + width[FLAGS] + width[COUNT]);
}

/* The bytes of the records of a message whose header, and shape, can be read. */
static u32 records_size(const struct repath_wire_msg *wire)
{
	const struct repath_wire_packed *packed = (const void *)(wire + 1);
	u32 nconns = be32_to_cpu(wire->nconns);

	if (wire->form == cpu_to_be32(REPATH_WIRE_PACKED))
		return packed_size(nconns, packed->width);
	return nconns * sizeof(struct repath_wire_rec);
}

/* The proof, begun: what only the two modules know. In the order in which it is told. */
static void prove_conn(struct blake2s_state *state, u64 dst_token, u64 src_token)
{
	const __be64 tokens[] = { cpu_to_be64(dst_token), cpu_to_be64(src_token) };

	blake2s_update(state, (const u8 *)tokens, sizeof(tokens));
}

/* ... and ended: what they are told, all but the proof itself. */
static void prove_message(struct blake2s_state *state, const struct repath_wire_msg *wire, u32 len,
			  u8 proof[REPATH_WIRE_PROOF])
{
	const u8 *rest = (const u8 *)(wire + 1) + REPATH_WIRE_PROOF;

	blake2s_update(state, (const u8 *)wire, sizeof(*wire));
	blake2s_update(state, rest, (const u8 *)wire + len - rest);
	blake2s_final(state, proof);
}

/* --- writing --- */

static void measure(struct shape *shape, const struct repath_conn_rec *recs, u32 nconns)
{
	enum column c;
	u32 i;

	for (c = 0; c < COLUMNS; c++) {
		u64 least = U64_MAX, most = 0;

		for (i = 0; i < nconns; i++) {
			least = min(least, get(recs + i, c));
			most = max(most, get(recs + i, c));
		}
		shape->least[c] = least;
		shape->width[c] = DIV_ROUND_UP(fls64(most - least), 8);
	}
}

static void write_packed(struct repath_wire_packed *packed, const struct shape *shape,
			 const struct repath_conn_rec *recs, u32 nconns)
{
	u8 *to = (u8 *)(packed + 1);
	enum column c;
	int byte;
	u32 i;

	packed->qpn = cpu_to_be32(shape->least[QPN]);
	packed->psn = cpu_to_be32(shape->least[PSN]);
	packed->flags = cpu_to_be32(shape->least[FLAGS]);
	packed->count = cpu_to_be64(shape->least[COUNT]);
	memcpy(packed->width, shape->width, sizeof(packed->width));
	for (i = 0; i < nconns; i++) {
		u64 name = repath_conn_by_id(recs[i].conn_id)->peer_token;

		*to++ = name >> 8;
		*to++ = name;
	}
	for (c = 0; c < COLUMNS; c++)
		for (i = 0; i < nconns; i++)
			for (byte = shape->width[c] - 1; byte >= 0; byte--)
				*to++ = (get(recs + i, c) - shape->least[c]) >> (8 * byte);
}

static void prove(struct repath_wire_msg *wire, u32 len, const struct repath_conn_rec *recs,
		  u32 nconns)
{
	struct repath_wire_packed *packed = (struct repath_wire_packed *)(wire + 1);
	const struct repath_conn *conn;
	struct blake2s_state state;
	u32 i;

	blake2s_init(&state, REPATH_WIRE_PROOF);
	for (i = 0; i < nconns; i++) {
		conn = repath_conn_by_id(recs[i].conn_id);
		prove_conn(&state, conn->peer_token, conn->token);
	}
	prove_message(&state, wire, len, packed->proof);
}

static void write_at_length(struct repath_wire_rec *to, const struct repath_conn_rec *recs,
			    u32 nconns)
{
	const struct repath_conn *conn;
	u32 i;

	for (i = 0; i < nconns; i++, to++, recs++) {
		conn = repath_conn_by_id(recs->conn_id);
		to->dst_token = cpu_to_be64(conn->peer_token);
		to->src_token = cpu_to_be64(conn->token);
		to->qpn = cpu_to_be32(recs->qpn);
		to->psn = cpu_to_be32(recs->psn);
		to->flags = cpu_to_be32(recs->flags);
		to->count = cpu_to_be64(recs->count);
	}
}

/**
 * repath_wire_write - make a message
 * @way: the connection whose way it goes
 * @recs: about these connections, all of them known, to the same remote process
 * @nconns: how many, at least one
 * @blob: what follows
 * @blob_len: bytes
 * @len: bytes of the message
 *
 * It is packed where that saves a fragment, and the other end has not just failed to understand it.
 *
 * Context: repath_conn_mutex held; may sleep.
 * Return: the message, to be freed with kvfree(), or NULL without memory.
 */
struct repath_wire_msg *repath_wire_write(struct repath_conn *way,
					  const struct repath_conn_rec *recs, u32 nconns,
					  const void *blob, u32 blob_len, u32 *len)
{
	u32 size = nconns * sizeof(struct repath_wire_rec);
	u32 rest = sizeof(struct repath_wire_msg) + blob_len;
	struct repath_wire_msg *wire;
	struct shape shape;
	bool packed = false;

	lockdep_assert_held(&repath_conn_mutex);
	if (!way->remote->at_length) {
		measure(&shape, recs, nconns);
		packed = DIV_ROUND_UP(rest + packed_size(nconns, shape.width), REPATH_FRAG_DATA) <
			 DIV_ROUND_UP(rest + size, REPATH_FRAG_DATA);
	}
	if (packed)
		size = packed_size(nconns, shape.width);
	*len = rest + size;
	wire = kvzalloc(*len, GFP_KERNEL_ACCOUNT);
	if (!wire)
		return NULL;
	wire->nconns = cpu_to_be32(nconns);
	wire->blob_len = cpu_to_be32(blob_len);
	wire->dst_cookie = cpu_to_be64(way->remote->cookie);
	wire->src_cookie = cpu_to_be64(way->proc->cookie);
	/* Where this end is now. */
	repath_local_gid(way->dev, &way->addr, wire->src_gid);
	wire->src_lid = cpu_to_be32(repath_lid(way->dev, way->addr.port));
	if (blob_len)
		memcpy((u8 *)(wire + 1) + size, blob, blob_len);
	if (packed) {
		wire->form = cpu_to_be32(REPATH_WIRE_PACKED);
		write_packed((struct repath_wire_packed *)(wire + 1), &shape, recs, nconns);
		prove(wire, *len, recs, nconns);
	} else {
		wire->form = cpu_to_be32(REPATH_WIRE_AT_LENGTH);
		write_at_length((struct repath_wire_rec *)(wire + 1), recs, nconns);
	}
	return wire;
}

/* --- reading --- */

bool repath_wire_is_well_formed(const struct repath_wire_msg *wire, u32 len)
{
	const struct repath_wire_packed *packed = (const void *)(wire + 1);
	u32 nconns, blob_len;
	enum column c;

	if (len < sizeof(*wire))
		return false;
	nconns = be32_to_cpu(wire->nconns);
	blob_len = be32_to_cpu(wire->blob_len);
	if (!nconns || nconns > REPATH_CONNS_MAX || blob_len > REPATH_BLOB_MAX)
		return false;
	switch (be32_to_cpu(wire->form)) {
	case REPATH_WIRE_AT_LENGTH:
		break;
	case REPATH_WIRE_PACKED:
		if (len < sizeof(*wire) + sizeof(*packed))
			return false;
		for (c = 0; c < COLUMNS; c++)
			if (packed->width[c] > (c == COUNT ? sizeof(u64) : sizeof(u32)))
				return false;
		break;
	default:
		return false;
	}
	return len == sizeof(*wire) + records_size(wire) + blob_len;
}

const void *repath_wire_blob(const struct repath_wire_msg *wire, u32 len)
{
	return (const u8 *)wire + len - be32_to_cpu(wire->blob_len);
}

static bool is_from(const struct repath_conn *conn, const struct repath_proc *proc, u64 src_cookie)
{
	return conn && conn->proc == proc && conn->peer_token && conn->remote &&
	       conn->remote->cookie == src_cookie;
}

static u32 read_at_length(const struct repath_wire_msg *wire, const struct repath_proc *proc,
			  struct repath_conn_rec *recs)
{
	const struct repath_wire_rec *in = (const struct repath_wire_rec *)(wire + 1);
	u64 src_cookie = be64_to_cpu(wire->src_cookie);
	u32 i, n = 0, nconns = be32_to_cpu(wire->nconns);
	const struct repath_conn *conn;

	for (i = 0; i < nconns; i++, in++) {
		conn = repath_conn_by_token(be64_to_cpu(in->dst_token));
		if (!is_from(conn, proc, src_cookie) ||
		    conn->peer_token != be64_to_cpu(in->src_token))
			continue;
		recs[n++] = (struct repath_conn_rec){
			.conn_id = conn->id,
			.qpn = be32_to_cpu(in->qpn),
			.psn = be32_to_cpu(in->psn),
			.flags = be32_to_cpu(in->flags),
			.count = be64_to_cpu(in->count),
		};
	}
	return n;
}

static const u8 *read_column(const u8 *from, enum column column, u64 least, u8 width,
			     struct repath_conn_rec *recs, u32 nconns)
{
	u64 value;
	u32 i;
	u8 k;

	for (i = 0; i < nconns; i++) {
		for (value = 0, k = 0; k < width; k++)
			value = value << 8 | *from++;
		set(recs + i, column, least + value);
	}
	return from;
}

static u32 read_packed(const struct repath_wire_msg *wire, u32 len, const struct repath_proc *proc,
		       struct repath_conn_rec *recs)
{
	const struct repath_wire_packed *packed = (const void *)(wire + 1);
	u64 src_cookie = be64_to_cpu(wire->src_cookie);
	u32 i, nconns = be32_to_cpu(wire->nconns);
	const u8 *from = (const u8 *)(packed + 1);
	const struct repath_conn *conn;
	u8 proof[REPATH_WIRE_PROOF];
	struct blake2s_state state;

	blake2s_init(&state, REPATH_WIRE_PROOF);
	for (i = 0; i < nconns; i++, from += 2) {
		conn = repath_conn_by_name(proc, src_cookie, from[0] << 8 | from[1]);
		if (!is_from(conn, proc, src_cookie))
			return 0;
		prove_conn(&state, conn->token, conn->peer_token);
		recs[i] = (struct repath_conn_rec){ .conn_id = conn->id };
	}
	prove_message(&state, wire, len, proof);
	if (crypto_memneq(proof, packed->proof, sizeof(proof)))
		return 0;
	from = read_column(from, QPN, be32_to_cpu(packed->qpn), packed->width[QPN], recs, nconns);
	from = read_column(from, PSN, be32_to_cpu(packed->psn), packed->width[PSN], recs, nconns);
	from = read_column(from, FLAGS, be32_to_cpu(packed->flags), packed->width[FLAGS], recs,
			   nconns);
	read_column(from, COUNT, be64_to_cpu(packed->count), packed->width[COUNT], recs, nconns);
	return nconns;
}

/**
 * repath_wire_read - what a message says of connections
 * @wire: a well-formed message
 * @len: its bytes
 * @proc: to whom
 * @recs: room for as many as it says to have
 *
 * Context: repath_conn_mutex held.
 * Return: how many records are there, of connections of @proc and by who knows their tokens. Of a
 * packed message all are or none.
 */
u32 repath_wire_read(const struct repath_wire_msg *wire, u32 len, const struct repath_proc *proc,
		     struct repath_conn_rec *recs)
{
	lockdep_assert_held(&repath_conn_mutex);
	if (wire->form == cpu_to_be32(REPATH_WIRE_PACKED))
		return read_packed(wire, len, proc, recs);
	return read_at_length(wire, proc, recs);
}
