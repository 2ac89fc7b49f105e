// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A host as the tests need it, over libibumad: hears traps 68 and 69, asks for path records.
 *
 *	host hear [MUTE]	subscribes, says "ready", prints each report, and answers it unless it
 *				is one of the first MUTE (-1: never)
 *	host paths LID...	prints the SA's records of all paths between these
 *
 * A line of hear: TRAP FLAGS MASK SERIAL NUMBER EPOCH SLID DLID SL MTU RATE LIFE GUID OLD_DLID, of paths:
 * SLID DLID SL MTU RATE, or SLID DLID none.
 *
 *	host guid set|delete INDEX GUID	a GUID of this port, as for a VF; prints what it is then
 *
 * GUID 0 is one that the SM chooses.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/umad.h>
#include <iba/ib_types.h>

#include "repath_sm.h"

#define SA_CLASS 3
#define SA_VERSION 2
#define SA_QKEY 0x80010000
#define PATIENCE 2000
#define REPEATS 3

static int port, agent;
static umad_port_t info;
static void *umad;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static ib_sa_mad_t *sa_mad(void)
{
	return umad_get_mad(umad);
}

static void send_to_sa(uint8_t method, uint16_t attribute, uint64_t mask, uint64_t tid)
{
	ib_sa_mad_t *mad = sa_mad();

	mad->base_ver = 1;
	mad->mgmt_class = SA_CLASS;
	mad->class_ver = SA_VERSION;
	mad->method = method;
	mad->trans_id = htobe64(tid);
	mad->attr_id = htons(attribute);
	mad->comp_mask = htobe64(mask);
	umad_set_addr(umad, info.sm_lid, 1, 0, SA_QKEY);
	if (umad_send(port, agent, umad, 256, PATIENCE, REPEATS))
		fail("umad_send");
}

static int receive(int timeout)
{
	int length = 256;

	memset(umad, 0, umad_size() + 256);
	return umad_recv(port, umad, &length, timeout);
}

static void subscribe(void)
{
	ib_inform_info_t *inform = (ib_inform_info_t *)sa_mad()->data;

	memset(umad, 0, umad_size() + 256);
	inform->lid_range_begin = 0xffff;
	inform->is_generic = 1;
	inform->subscribe = 1;
	inform->trap_type = 0xffff;
	inform->g_or_v.generic.trap_num = 0xffff;
	inform->g_or_v.generic.qpn_resp_time_val = htonl(1 << 8 | 18);
	inform->g_or_v.generic.node_type_msb = 0xff;
	inform->g_or_v.generic.node_type_lsb = 0xffff;
	send_to_sa(IB_MAD_METHOD_SET, 3, 0, 1);
	if (receive(REPEATS * PATIENCE) < 0 || sa_mad()->method != IB_MAD_METHOD_GET_RESP || sa_mad()->status)
		fail("not subscribed");
	puts("ready");
}

static void hear(int mute)
{
	subscribe();
	for (;;) {
		struct repath_sm_report *r = (struct repath_sm_report *)sa_mad()->data;

		if (receive(-1) < 0 || sa_mad()->method != IB_MAD_METHOD_REPORT)
			continue;
		if (be16toh(r->trap) == REPATH_SM_UNPATH || be16toh(r->trap) == REPATH_SM_REPATH)
			printf("%u %#x %#llx %u %u %u %u %u %u %u %u %u %#llx %u\n", be16toh(r->trap),
			       r->details.flags, (unsigned long long)be64toh(r->details.comp_mask),
			       be32toh(r->details.serial), be32toh(r->details.number),
			       be32toh(r->details.sm_epoch), be16toh(r->path.slid),
			       be16toh(r->path.dlid), be16toh(r->path.qos_class_sl) & 15,
			       r->path.mtu & 63, r->path.rate & 63, r->path.pkt_life & 63,
			       (unsigned long long)be64toh(*(__be64 *)(r->path.dgid + 8)),
			       be16toh(r->details.old_dlid));
		if (mute && mute--)
			continue;
		mute = mute < 0 ? -1 : mute;
		sa_mad()->method = IB_MAD_METHOD_REPORT_RESP;
		umad_set_addr(umad, ntohs(umad_get_mad_addr(umad)->lid), 1, 0, SA_QKEY);
		if (umad_send(port, agent, umad, 256, 0, 0))
			fail("umad_send");
	}
}

static void ask(unsigned int slid, unsigned int dlid)
{
	ib_path_rec_t *record = (ib_path_rec_t *)sa_mad()->data;
	uint64_t tid = (uint64_t)slid << 16 | dlid;

	for (int tries = 0; tries < 20; tries++) {
		memset(umad, 0, umad_size() + 256);
		record->slid = htons(slid);
		record->dlid = htons(dlid);
		record->num_path = 1;
		send_to_sa(IB_MAD_METHOD_GET, 0x35,
			   REPATH_SM_MASK_SLID | REPATH_SM_MASK_DLID | 1 << 12, tid);
		do {
			if (receive(PATIENCE) < 0)
				fail("no answer");
		} while ((be64toh(sa_mad()->trans_id) & 0xffffffff) != tid);
		if (!umad_status(umad))
			break;
		usleep(100000);
	}
	if (umad_status(umad)) {
		fprintf(stderr, "%u to %u: the SA does not answer\n", slid, dlid);
		exit(1);
	}
	if (sa_mad()->status)
		printf("%u %u none\n", slid, dlid);
	else
		printf("%u %u %u %u %u\n", slid, dlid, ntohs(record->qos_class_sl) & 15,
		       record->mtu & 63, record->rate & 63);
}

/* GUIDInfoRecord: IBA 1.2.1 vol 1, 15.2.5.19; blocks of eight. */
static void change_guid(int set, unsigned int index, uint64_t guid)
{
	ib_guidinfo_record_t *record = (ib_guidinfo_record_t *)sa_mad()->data;
	uint64_t mask = 1 | 1 << 1 | 1ull << (4 + index % 8);	/* LID, block, GUID */

	memset(umad, 0, umad_size() + 256);
	record->lid = htons(info.base_lid);
	record->block_num = index / 8;
	record->guid_info.guid[index % 8] = htobe64(guid);
	send_to_sa(set ? IB_MAD_METHOD_SET : IB_MAD_METHOD_DELETE, 0x30, mask, 1);
	if (receive(PATIENCE) < 0 || umad_status(umad) || sa_mad()->status) {
		fprintf(stderr, "not done: status %#x\n", be16toh(sa_mad()->status));
		exit(1);
	}
	printf("%#llx\n", (unsigned long long)be64toh(record->guid_info.guid[index % 8]));
}

int main(int argc, char **argv)
{
	long methods[16 / sizeof(long)] = { 1 << IB_MAD_METHOD_REPORT };

	int guid = argc == 5 && !strcmp(argv[1], "guid");

	if (argc < 2 || (strcmp(argv[1], "hear") && strcmp(argv[1], "paths") && !guid)) {
		fprintf(stderr, "usage: %s hear [MUTE] | paths LID... | guid set|delete INDEX GUID\n",
			argv[0]);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	umad = calloc(1, umad_size() + 256);
	if (!umad || umad_init())
		fail("umad_init");
	port = umad_open_port(NULL, 0);
	if (port < 0 || umad_get_port(NULL, 0, &info))
		fail("umad_open_port");
	agent = umad_register(port, SA_CLASS, SA_VERSION, 0, methods);
	if (agent < 0)
		fail("umad_register");
	if (!strcmp(argv[1], "hear"))
		hear(argc > 2 ? atoi(argv[2]) : 0);
	if (guid)
		change_guid(!strcmp(argv[2], "set"), atoi(argv[3]), strtoull(argv[4], NULL, 0));
	for (int from = 2; !guid && from < argc; from++)
		for (int to = 2; to < argc; to++)
			if (from != to)
				ask(atoi(argv[from]), atoi(argv[to]));
	umad_unregister(port, agent);
	umad_close_port(port);
	fflush(stdout);
	/* libumad2sim frees what it did not allocate when a program ends. */
	_exit(0);
}
