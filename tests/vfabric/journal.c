// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "journal.h"
#include "sma.h"

/* IBA 1.2.1 vol 1, 13.4.5, 15.3.1 */
#define REPORT		0x06
#define REPORT_RESP	0x86
#define SA_DATA		56

enum kind { IS_BLOCK, IS_TOP, IS_TURN, IS_LID, IS_CABLE, IS_STATE, IS_REPORT, IS_ANSWER };

struct entry {
	uint64_t us;
	uint32_t at;		/* node: of a block, top or turn; else port */
	uint32_t more;		/* number of the block or the top, the ports of a turn, the other end of a cable */
	uint8_t kind;
	uint8_t data[64];
};

struct journal {
	uint64_t start;
	uint32_t n, room;
	uint64_t lost;		/* that there was no room for */
	struct entry entries[];
};

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}

static struct entry *add(struct fabric *f, enum kind kind, uint32_t at)
{
	struct journal *j = f->journal;
	struct entry *e;

	if (!j)
		return NULL;
	if (j->n == j->room) {
		j->lost++;
		return NULL;
	}
	e = &j->entries[j->n++];
	e->us = now_us() - j->start + 1;
	e->kind = kind;
	e->at = at;
	return e;
}

void journal_block(struct fabric *f, uint32_t at, uint32_t block)
{
	const struct node *node = &f->nodes[at];
	struct entry *e = add(f, IS_BLOCK, at);

	if (!e)
		return;
	e->more = block;
	for (unsigned int i = 0; i < 64; i++)
		e->data[i] = block * 64 + i < node->lft_room ? node->lft[block * 64 + i] : 255;
}

void journal_top(struct fabric *f, uint32_t at)
{
	struct entry *e = add(f, IS_TOP, at);

	if (e)
		e->more = f->nodes[at].lft_top;
}

/* Of a host @in and @out are 0. */
void journal_turn(struct fabric *f, uint32_t at, unsigned int in, unsigned int out)
{
	const struct node *node = &f->nodes[at];
	struct entry *e = node->shared ? NULL : add(f, IS_TURN, at);

	if (!e)
		return;
	e->more = in << 8 | out;
	for (unsigned int sl = 0; sl < 16 && sl < f->config.sls; sl++)
		e->data[sl] = node->sl2vl[(in * (node->nports + 1) + out) * f->config.sls + sl];
}

void journal_lid(struct fabric *f, uint32_t at)
{
	struct entry *e = add(f, IS_LID, at);

	if (!e)
		return;
	e->more = f->ports[at].lid;
	e->data[0] = f->ports[at].lmc;
}

void journal_cable(struct fabric *f, uint32_t at)
{
	struct entry *e = f->ports[at].peer < f->nports ? add(f, IS_CABLE, at) : NULL;

	if (e)
		e->more = f->ports[at].peer;
}

void journal_state(struct fabric *f, uint32_t at)
{
	struct entry *e = add(f, IS_STATE, at);

	if (!e)
		return;
	e->data[0] = f->ports[at].state;
	e->data[1] = f->ports[at].op_vls;
}

void journal_mad(struct fabric *f, uint32_t at, const uint8_t *mad)
{
	struct entry *e;

	if (mad[1] != CLASS_SA || (mad[3] != REPORT && mad[3] != REPORT_RESP))
		return;
	e = add(f, mad[3] == REPORT ? IS_REPORT : IS_ANSWER, at);
	if (e)
		memcpy(e->data, mad + SA_DATA, sizeof(e->data));
}

static void write_node(struct fabric *f, uint32_t at)
{
	const struct node *node = &f->nodes[at];
	unsigned int first = node->type == NET_SWITCH ? 0 : 1;

	for (unsigned int num = first; num <= node->nports; num++) {
		journal_lid(f, node->first + num);
		if (num && node->first + num < f->ports[node->first + num].peer)
			journal_cable(f, node->first + num);
		if (num)
			journal_state(f, node->first + num);
	}
	if (node->type != NET_SWITCH) {
		journal_turn(f, at, 0, 0);
		return;
	}
	for (unsigned int in = 0; in <= node->nports; in++)
		for (unsigned int out = 0; out <= node->nports; out++)
			journal_turn(f, at, in, out);
	for (uint32_t block = 0; node->lft && block <= node->lft_top / 64; block++)
		journal_block(f, at, block);
	journal_top(f, at);
}

int journal_start(struct fabric *f, uint32_t room)
{
	free(f->journal);
	f->journal = NULL;
	if (!room)
		return 0;
	f->journal = calloc(1, sizeof(*f->journal) + (size_t)room * sizeof(*f->journal->entries));
	if (!f->journal)
		return -1;
	f->journal->room = room;
	f->journal->start = now_us();
	for (uint32_t i = 0; i < f->nnodes; i++)
		write_node(f, i);
	/* 0 is nobody else's. */
	for (uint32_t i = 0; i < f->journal->n; i++)
		f->journal->entries[i].us = 0;
	return 0;
}

static void print_bytes(const uint8_t *data, unsigned int n, FILE *out)
{
	for (unsigned int i = 0; i < n; i++)
		fprintf(out, "%02x", data[i]);
	fputc('\n', out);
}

static void print_entry(const struct fabric *f, const struct entry *e, FILE *out)
{
	fprintf(out, "%llu ", (unsigned long long)e->us);
	switch (e->kind) {
	case IS_BLOCK:
		fprintf(out, "block \"%s\" %u ", f->nodes[e->at].net->id, e->more);
		print_bytes(e->data, 64, out);
		break;
	case IS_TOP:
		fprintf(out, "top \"%s\" %u\n", f->nodes[e->at].net->id, e->more);
		break;
	case IS_TURN:
		fprintf(out, "turn \"%s\" %u %u ", f->nodes[e->at].net->id, e->more >> 8,
			e->more & 0xff);
		print_bytes(e->data, 16, out);
		break;
	case IS_LID:
		fprintf(out, "lid %s %u %u\n", port_name(f, e->at), e->more, e->data[0]);
		break;
	case IS_CABLE:
		fprintf(out, "cable %s %s\n", port_name(f, e->at), port_name(f, e->more));
		break;
	case IS_REPORT:
	case IS_ANSWER:
		fprintf(out, "%s %s ", e->kind == IS_REPORT ? "report" : "answer", port_name(f, e->at));
		print_bytes(e->data, 64, out);
		break;
	default:
		fprintf(out, "state %s %u %u\n", port_name(f, e->at), e->data[0], e->data[1]);
	}
}

void journal_print(const struct fabric *f, FILE *out)
{
	const struct journal *j = f->journal;

	for (uint32_t i = 0; j && i < j->n; i++)
		print_entry(f, &j->entries[i], out);
	if (j && j->lost)
		fprintf(out, "# lost: %llu\n", (unsigned long long)j->lost);
}
