// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A large region that no traffic touches. At the end, when nothing else is under way, the other end READs
 * samples of it by the key that it was told at the start: the first bytes, the last ones, and others all
 * over it, by each queue pair.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rcheck.h"

#define PAGE		4096u
#define SAMPLES_MIN	64

/* What is at byte @at, a multiple of 8, of the ballast of end @from. */
static uint64_t word_at(uint32_t from, uint64_t at)
{
	return msg_hash(at / PAGE ^ (uint64_t)from << 63) + at / 8;
}

static size_t ballast_bytes(const struct check *c)
{
	return (size_t)c->opt.ballast << 20;
}

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* Nobody uses their keys; all the same they are keys that peers of who moves are told. */
static void regions_create(struct check *c)
{
	uint32_t i;

	c->regions = calloc(c->opt.regions + 1, sizeof(*c->regions));
	if (!c->regions)
		err(2, "%u regions", c->opt.regions);
	for (i = 0; i < c->opt.regions; i++) {
		c->regions[i] = ibv_reg_mr(c->pd, c->ballast, PAGE, ACCESS);
		if (!c->regions[i])
			err(2, "register %u regions", c->opt.regions);
	}
}

static void regions_destroy(struct check *c)
{
	uint32_t i;
	int rc;

	for (i = 0; i < c->opt.regions; i++) {
		rc = ibv_dereg_mr(c->regions[i]);
		if (rc)
			fail(c, NULL, "dereg_mr: %s", strerror(rc));
	}
	free(c->regions);
}

void ballast_create(struct check *c)
{
	size_t bytes = ballast_bytes(c), at;

	if (!bytes)
		return;
	c->ballast = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (c->ballast == MAP_FAILED)
		err(2, "%zu bytes of memory", bytes);
	for (at = 0; at < bytes; at += 8)
		*(uint64_t *)((char *)c->ballast + at) = word_at(c->from, at);
	if (c->opt.plant == PLANT_BALLAST)
		*((char *)c->ballast + bytes - 1) ^= 1;
	regions_create(c);
	c->ballast_mr = ibv_reg_mr(c->pd, c->ballast, bytes, ACCESS);
	if (!c->ballast_mr)
		err(2, "register %zu bytes", bytes);
}

/* All of it, by its owner. */
void ballast_check(struct check *c)
{
	size_t at;

	for (at = 0; at < ballast_bytes(c); at += 8)
		if (*(uint64_t *)((char *)c->ballast + at) != word_at(c->from, at)) {
			fail(c, NULL, "the ballast is damaged at byte %zu", at);
			return;
		}
}

void ballast_destroy(struct check *c)
{
	int rc;

	if (!c->ballast_mr)
		return;
	regions_destroy(c);
	rc = ibv_dereg_mr(c->ballast_mr);
	if (rc)
		fail(c, NULL, "dereg_mr: %s", strerror(rc));
	munmap(c->ballast, ballast_bytes(c));
}

/* Two by each queue pair, so that none is left out. */
static uint32_t samples(const struct check *c)
{
	uint32_t n = 2 + 2 * c->traffic.qps;

	if (!c->links[0].remote.ballast_bytes)
		return 0;
	return n < SAMPLES_MIN ? SAMPLES_MIN : n;
}

bool ballast_is_sampled(const struct check *c)
{
	return c->sampled == samples(c);
}

void ballast_sample(struct check *c)
{
	uint32_t i;

	for (i = 0; i < c->traffic.qps && !c->failure[0]; i++) {
		struct link *l = &c->links[i];

		if (l->posted == l->retired && !ballast_is_sampled(c))
			link_post(c, l, MSG_SAMPLE);
	}
}

void sample_fill(struct check *c, struct link *l, struct request *r, struct ibv_send_wr *wr, struct msg *m)
{
	uint64_t bytes = l->remote.ballast_bytes;

	r->len = (c->traffic.size < PAGE ? c->traffic.size : PAGE) & ~7u;
	if (c->sampled == 0)
		r->expect = 0;
	else if (c->sampled == 1)
		r->expect = bytes - r->len;
	else
		r->expect = msg_hash(c->sampled) % (bytes - r->len) & ~7ull;
	c->sampled++;
	wr->opcode = IBV_WR_RDMA_READ;
	wr->wr.rdma.rkey = l->remote.ballast_rkey;
	wr->wr.rdma.remote_addr = l->remote.ballast + r->expect;
	memset(m, MSG_POISON, r->len);
}

void sample_verify(struct check *c, struct link *l, const struct request *r, const void *data)
{
	uint64_t is, wanted;
	uint32_t i;

	for (i = 0; i < r->len; i += 8) {
		memcpy(&is, (const char *)data + i, sizeof(is));
		wanted = word_at(!c->from, r->expect + i);
		if (is == wanted)
			continue;
		fail(c, l, "the other end's ballast: 0x%llx at byte %llu, expected 0x%llx", (unsigned long long)is,
		     (unsigned long long)r->expect + i, (unsigned long long)wanted);
		return;
	}
}
