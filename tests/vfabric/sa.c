// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Asking the SA for a path, from a host of the model. */
#include <string.h>

#include "manager.h"
#include "sma.h"

#define PATH_RECORD 0x35
#define DATA 56			/* SubnAdm MADs have the record here */
#define MASK_DLID (1 << 4)
#define MASK_SLID (1 << 5)

int sa_path(struct fabric *f, uint32_t from, uint32_t to, uint8_t *sl, uint16_t *dlid,
	    int (*wait)(struct fabric *f))
{
	struct manager *m = f->manager;
	uint8_t mad[256] = { 1, CLASS_SA, 2, SMP_GET };
	struct mad_address address = { 0 };

	if (!m || !f->ports[from].smlid || !f->ports[to].lid)
		return -1;
	m->answer_tid = 0xffffull << 48 | (++m->next_tid & 0xffffffff);
	m->answered = 0;
	put_be64(mad + 8, m->answer_tid);
	put_be16(mad + 16, PATH_RECORD);
	put_be64(mad + 48, MASK_DLID | MASK_SLID);
	put_be16(mad + DATA + 40, f->ports[to].lid);
	put_be16(mad + DATA + 42, f->ports[from].lid);
	address.dlid = f->ports[from].smlid;
	address.dqp = 1;
	address.sqp = 1;
	mad_send(f, from, &address, mad);
	while (!m->answered)
		if (!wait || !wait(f))
			break;
	m->answer_tid = 0;
	if (!m->answered || be16_at(m->answer + 4) || be16_at(m->answer + 16) != PATH_RECORD)
		return -1;
	*dlid = be16_at(m->answer + DATA + 40);
	*sl = m->answer[DATA + 53] & 15;
	return 0;
}
