// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "vm.h"
#include "vm_answer.h"
#include "vm_socket.h"

/** rsm_vm_answer - the line that is owed to somebody */
void rsm_vm_answer(uint32_t who, const char *format, ...)
{
	char text[RSM_VM_ANSWER];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	rsm_vm_socket_answer(who, text);
}

/** rsm_vm_tell - the same, about a move: what it has come to, and what it takes */
void rsm_vm_tell(uint32_t who, const char *state, const struct rsm_vm_move *m, uint64_t us)
{
	const struct rsm_vm_counts *c = &m->counts;

	rsm_vm_answer(who, "{\"state\":\"%s\",\"lid\":%u,\"other\":%u,\"from\":\"0x%016" PRIx64 "/%u\","
		      "\"to\":\"0x%016" PRIx64 "/%u\",\"switches\":%u,\"smps\":%u,\"closing\":%u,"
		      "\"vswitch_smps\":%u,\"lid_smps\":%u,\"guid_smps\":%u,\"us\":%" PRIu64 "}",
		      state, m->lid, m->other, m->from.sw, m->from.port, m->to.sw, m->to.port,
		      c->switches, c->blocks, c->closing, c->vswitch_blocks, c->lids, c->guids, us);
}
